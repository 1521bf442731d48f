"""Directories of a transactional table or partition: their names, and which of them hold what a reader sees (``AcidUtils``).

::

    base_0000005[_v0000012]                          all writes up to 5
    base_-9223372036854775808[_v0000012]             what was there before the table was made transactional, compacted
    delta_0000006_0000008[_0001][_v0000013]          rows written by 6 to 8, of a multi-statement transaction's statement 1
    delete_delta_0000006_0000006[_0001][_v0000013]   the ids of deleted rows

``_v0000012`` is the transaction of the compaction that made the directory. It says nothing on another warehouse, so a replica has
the directory without it, as Hive's own replicas have.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Literal

from hive_replication.acid.write_ids import WriteIds

_NAME = re.compile(
    r"(?P<plain>(?:base_(?P<base>-9223372036854775808|\d+)|(?P<kind>delta|delete_delta)_(?P<first>\d+)_(?P<last>\d+)(?:_(?P<statement>\d{4}))?))"
    r"(?:_v(?P<visibility>\d+))?"
)


@dataclass(frozen=True, slots=True)
class AcidDirectory:
    """The name of a directory, taken apart.

    Args:
        name: as it is.
        plain: without the compaction's transaction.
        kind: what it holds.
        first, last: write ids; of a base 0 and the last one in it.
        statement: of a delta, the statement's number; -1 where it has none.
        visibility: transaction id of the compaction that made it, 0 where a writer did.
    """

    name: str
    plain: str
    kind: Literal["base", "delta", "delete_delta"]
    first: int
    last: int
    statement: int
    visibility: int

    @classmethod
    def parsed(cls, name: str) -> AcidDirectory | None:
        """Takes a name apart; None where it is no such directory's."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        visibility = int(found["visibility"] or 0)
        if found["base"]:
            return cls(name, found["plain"], "base", 0, max(0, int(found["base"])), -1, visibility)
        kind = "delta" if found["kind"] == "delta" else "delete_delta"
        statement = int(found["statement"]) if found["statement"] else -1
        return cls(name, found["plain"], kind, int(found["first"]), int(found["last"]), statement, visibility)


def of_several_transactions(name: str) -> bool:
    """Whether a writer made a directory for the writes of several transactions: streaming, which goes on writing its files."""
    found = AcidDirectory.parsed(name)
    return found is not None and found.kind != "base" and found.first < found.last and not found.visibility


def base_name(write_id: int) -> str:
    """Name of the base that an INSERT OVERWRITE or a TRUNCATE leaves."""
    return f"base_{write_id:07d}"


def read_by(names: Iterable[str], write_ids: WriteIds, hidden: Container[int] = ()) -> dict[str, str]:
    """The directories that a reader needs, each with its plain name; what compaction made needless is not among them.

    Args:
        names: directories below a table's or partition's own.
        write_ids: what the reader sees.
        hidden: transactions whose compactions the reader does not see.
    """
    parsed = [one for one in map(AcidDirectory.parsed, names) if one is not None and one.visibility not in hidden]
    bases = [one for one in parsed if one.kind == "base" and _is_read(one, write_ids)]
    base = max(bases, key=lambda one: (one.last, one.visibility), default=None)
    needed = [base] if base else []
    for kind in ("delta", "delete_delta"):
        deltas = [one for one in parsed if one.kind == kind and write_ids.sees_any(one.first, one.last)]
        needed += _widest(one for one in deltas if base is None or one.last > base.last)
    return {one.name: _name_without_compaction(one, write_ids) for one in needed}


def _is_read(base: AcidDirectory, write_ids: WriteIds) -> bool:
    """Whether a base is read (``AcidUtils.isValidBase``): a compaction's without open writes, a writer's once it is committed."""
    return write_ids.sees_base(base.last) if base.visibility else write_ids.sees(base.last)


def _name_without_compaction(one: AcidDirectory, write_ids: WriteIds) -> str:
    """The name by which a replica has it: a compaction's base gets that of the last committed write in it.

    Without its compaction's transaction Hive takes it for a writer's, and would not read that of an aborted write.
    """
    if one.kind != "base" or write_ids.sees(one.last):
        return one.plain
    return base_name(next((seen for seen in range(one.last, 0, -1) if write_ids.sees(seen)), one.last))


def has_base(names: Iterable[str]) -> bool:
    """Whether one of the directories is a base, so that files beside them, of before the conversion, are not read."""
    return any(one is not None and one.kind == "base" for one in map(AcidDirectory.parsed, names))


def _widest(deltas: Iterable[AcidDirectory]) -> list[AcidDirectory]:
    """Deltas of one kind without those whose writes a wider one holds."""
    kept: list[AcidDirectory] = []
    for one in sorted(deltas, key=lambda one: (one.first, -one.last, one.statement, -one.visibility)):
        last = kept[-1] if kept else None
        if last is None or one.last > last.last:
            kept.append(one)
        elif (one.first, one.last) == (last.first, last.last) and not one.visibility and one.statement > last.statement >= 0:
            kept.append(one)  # another statement of the same transaction
    return kept
