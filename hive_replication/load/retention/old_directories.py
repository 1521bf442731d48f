"""The directories that loads left behind, as their journals tell (pure)."""

from __future__ import annotations

from collections.abc import Iterable

from hive_replication.errors import Refused
from hive_replication.load.journal.journal import Entry, LaneFile
from hive_replication.storage import paths


def old_directories(loads: Iterable[tuple[Entry, list[LaneFile]]]) -> dict[str, Entry]:
    """Directories, normalised, that loads left or undone loads had put into use, each with the newest load that says so."""
    found: dict[str, Entry] = {}
    for entry, lanes in loads:
        for lane in lanes:
            placed = lane.record.placed if lane.undone else ()
            found |= dict.fromkeys(map(normal, (*lane.record.left, *placed)), entry)
    return found


def normal(uri: str) -> str:
    """A URI as live locations are spelled: metastores write ``file:/w``. What is no URI that a load goes to stays as it is."""
    try:
        return paths.normalise(uri)
    except Refused:
        return uri
