"""What may be the data of a replica that the target's metastore does not show: nobody can tell whether a table lies there."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from hive_replication.errors import Refused
from hive_replication.load.journal.journal import Entry, LaneFile
from hive_replication.load.layout.directories import is_token
from hive_replication.load.retention.removals import What
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.table_filter import FILTER, filter_hook
from hive_replication.storage import paths


class HiddenData:
    """What retention leaves alone in a database where the metastore may hide tables.

    Args:
        metastore: the target's.
        loads: those in the journal, with the directories that their lanes left.
    """

    def __init__(self, metastore: Metastore, loads: Iterable[tuple[Entry, list[LaneFile]]]) -> None:
        self._metastore = metastore
        self._left = {e.token for e, lanes in loads if e.status != "undone" and not any(lane.undone for lane in lanes)}

    @cached_property
    def _hook(self) -> str:
        return filter_hook(self._metastore.config_value)

    def require_unused(self, what: What, directory: str) -> None:
        """Makes sure that a directory of ``.repl`` is no table's, though none points at it that is shown.

        Retired data is none's where the journal still tells that its load left it, and was not undone. No journal tells for how
        long a replica has lain where its data was staged.

        Args:
            what: its kind.
            directory: of staged data, or of what a load or an event retired.

        Raises:
            Refused: it may be a table's that the metastore hides.
        """
        name = paths.name(directory)
        known = what != "staging" and (not is_token(name) or name in self._left)
        if not known and self._hook:
            raise Refused(
                f"{directory} may be the data of a table that the target's metastore hides from this account ({FILTER}=true with "
                f"{self._hook}): delete it by hand if no table lies there"
            )
