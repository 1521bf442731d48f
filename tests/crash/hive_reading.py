"""What Hive 4.2.0 reads of a transactional table's directory, after its own loop (``AcidUtils.getAcidState``).

It shares no rule with ``hive_replication.acid.directories``, so that an error in that one is seen by what compares with this.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass

from hive_replication.acid.write_ids import WriteIds

_BASE = re.compile(r"base_(-?\d+)(?:_v(\d+))?")
_DELTA = re.compile(r"(?:delete_)?delta_(\d+)_(\d+)(?:_(\d+))?(?:_v(\d+))?")


@dataclass(frozen=True, slots=True)
class _Delta:
    """Rows, or ids of deleted rows, of the writes from the first to the last."""

    name: str
    first: int
    last: int
    statement: int
    compaction: int

    @property
    def turn(self) -> tuple[int, int, int, int, str]:
        """When Hive looks at it (``ParsedDeltaLight.compareTo``)."""
        return self.first, -self.last, self.statement, -self.compaction, self.name

    def goes_with(self, other: _Delta | None) -> bool:
        """Whether one has the rows and the other the deletions of the same writes."""
        if other is None or (self.first, self.last, self.statement) != (other.first, other.last, other.statement):
            return False
        return self.name.startswith("delete_") or other.name.startswith("delete_")


def directories_read(names: Iterable[str], seen: WriteIds, hidden: Container[int] = ()) -> set[str]:
    """Those of the directories that a reader opens.

    Args:
        names: what a table's or a partition's directory holds.
        seen: the reader's valid write ids, of which only the numbers are used.
        hidden: transactions whose compactions it does not see.
    """
    listed = list(names)
    current, *base = max(_bases(listed, seen, hidden), default=(0,))
    read = {str(name) for name in base[1:]}
    in_statements, before = False, None
    for delta in sorted(_deltas(listed, seen, hidden), key=lambda one: one.turn):
        if delta.last > current:
            if not _any_committed(seen, current + 1, delta.last):
                continue
            current, in_statements = delta.last, delta.statement >= 0
        elif not ((delta.last == current and in_statements) or delta.goes_with(before)):
            continue
        read.add(delta.name)
        before = delta
    return read


def _bases(names: Iterable[str], seen: WriteIds, hidden: Container[int]) -> Iterable[tuple[int, bool, str]]:
    """The valid ones: write id, whether a compaction made it, which is preferred to a writer's of the same id, and name."""
    for name in names:
        found = _BASE.fullmatch(name)
        if found is not None and int(found[2] or 0) not in hidden and _valid(int(found[1]), found[2] is not None, seen):
            yield int(found[1]), found[2] is not None, name


def _valid(base: int, compacted: bool, seen: WriteIds) -> bool:
    """``AcidUtils.isValidBase``. That of the lowest open write is valid, too: Hive's own readers wait for its writer's lock."""
    if base in seen.aborted and not compacted:
        return False
    if base < 0 or (seen.open and base <= min(seen.open)):
        return True
    return base <= seen.high and not (seen.open if compacted else base in seen.open)


def _deltas(names: Iterable[str], seen: WriteIds, hidden: Container[int]) -> Iterable[_Delta]:
    for found in filter(None, map(_DELTA.fullmatch, names)):
        first, last, statement, compaction = (int(found[n] or missing) for n, missing in ((1, 0), (2, 0), (3, -1), (4, 0)))
        if compaction not in hidden and _any_committed(seen, first, last):
            yield _Delta(found[0], first, last, statement, compaction)


def _any_committed(seen: WriteIds, first: int, last: int) -> bool:
    """Whether some of the writes are valid (``ValidReaderWriteIdList.isWriteIdRangeValid``)."""
    last = min(last, seen.high)
    return sum(first <= one <= last for one in seen.open | seen.aborted) < last - first + 1
