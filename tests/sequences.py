"""All sequences of changes up to a length over a small warehouse, walked as a tree; see :mod:`tests.model` for what they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.model import NAMES, PARTS, Source

Move = tuple[str, int, int, int]
Moves = Callable[[Source, tuple[Move, ...]], Iterator[Move]]

OF_PARTITION = ("drop part", "insert", "overwrite", "alter part", "truncate")
OF_TABLE = ("insert", "overwrite", "alter", "truncate", "drop")


def fork(source: Source) -> Source:
    """A copy; what never changes is shared."""
    tables = {
        name: replace(tab, parts={key: replace(part) for key, part in tab.parts.items()}) for name, tab in source.tables.items()
    }
    storage = {location: dict(files) for location, files in source.storage.items()}
    return replace(source, tables=tables, storage=storage, events=list(source.events), past=list(source.past))


def one_partitioned(source: Source, past: tuple[Move, ...]) -> Iterator[Move]:
    """One table of two partitions, whose names are exchangeable until both are used."""
    if not source.tables:
        yield "create", 0, 0, 1
        return
    ((name, _),) = source.tables.items()
    table = NAMES.index(name)
    yield from ((kind, table, 0, 0) for kind in ("alter", "rename", "drop"))
    fresh = not any(kind == "create" and extra == 0 for kind, _, _, extra in past)
    yield from _of_partitions(source, table, (0,) if fresh else (0, 1))


def one_plain(source: Source, past: tuple[Move, ...], kinds: tuple[str, ...] = (*OF_TABLE, "rename")) -> Iterator[Move]:
    """One table without partitions."""
    if not source.tables:
        yield "create", 0, 0, 0
    for name in source.tables:
        yield from ((kind, NAMES.index(name), 0, 0) for kind in kinds)


def one_listed(source: Source, past: tuple[Move, ...]) -> Iterator[Move]:
    """One table without partitions, some of whose files are listed only when the dump is made."""
    yield from one_plain(source, past, (*OF_TABLE, "insert unlisted", "relocate"))


def two_tables(source: Source, past: tuple[Move, ...]) -> Iterator[Move]:
    """Two tables of one partition, which change names and exchange partitions."""
    if len(source.tables) < 2:
        name = next(name for name in NAMES if name not in source.tables)
        yield "create", NAMES.index(name), 0, 1
    for name, tab in source.tables.items():
        table = NAMES.index(name)
        yield from ((kind, table, 0, 0) for kind in ("alter", "rename", "drop"))
        yield from (
            move for move in _of_partitions(source, table, (0,)) if move[0] in ("create", "drop part", "insert", "overwrite")
        )
        if tab.parts and any(not other.parts for other in source.tables.values()):
            yield "exchange", table, 0, 0


def _of_partitions(source: Source, table: int, parts: tuple[int, ...]) -> Iterator[Move]:
    tab = source.tables[NAMES[table]]
    there = sorted(tab.parts)
    for part in parts:
        if PARTS[part] not in tab.parts:
            yield "create", table, part, 0
            continue
        for kind in OF_PARTITION:
            yield kind, table, there.index(PARTS[part]) if kind not in ("insert", "overwrite") else part, 0
        if len(parts) == 2 and len(there) == 1:
            yield "rename part", table, 0, 0
