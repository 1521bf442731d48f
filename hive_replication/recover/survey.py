"""Compares a replica with its source, table by table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from hive_replication.acid.write_ids import WriteIds
from hive_replication.dump.source import Source
from hive_replication.events.event_records import is_function
from hive_replication.load.replica.state import ReplicaState, is_ours
from hive_replication.load.replica.target import Target
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.progress import Progress
from hive_replication.verify import TableComparison, compare_database

_OPEN = "a transaction that writes to it is open"
_GIVEN = "write ids of it were given out on one side only"


@dataclass(frozen=True, slots=True)
class TableFinding:
    """The state of one table of the replica.

    Args:
        table: source name.
        state: ``equal`` (it stays; of :func:`unfinished` without a comparison), ``differs`` (it is repaired file by file),
            ``missing`` (it is bootstrapped), ``surplus`` (the source does not have it: it is dropped).
        differences: the first of them, one sentence each.
    """

    table: str
    state: Literal["equal", "differs", "missing", "surplus"]
    differences: tuple[str, ...] = ()


def survey(source: Source, target: Target, database: str, evid: int, *, progress: Progress | None = None) -> list[TableFinding]:
    """Compares all tables: metadata, partitions, and each file by checksum.

    Transactional tables that a transaction is writing to count as different: they are dumped when it has ended.

    Args:
        source: the source side.
        target: the target side.
        database: source database.
        evid: newest event of the source, noted before. State ids beyond it are of another history.
        progress: shows the progress.

    Raises:
        BadRequest: the source does not have the database.
    """
    name = target.policy.target_of(database)
    identity = f"{source.identity}/{database}"
    replicas = list(target.metastore.tables(name, target.metastore.table_names(name)))
    ours = {table.tableName.lower() for table in replicas if is_ours(table, identity)}
    on_source = set(source.metastore.table_names(database))
    transactional = sorted(table.tableName.lower() for table in replicas if is_transactional(table))
    written = _written(source, target, database, [one for one in transactional if one in ours & on_source], compared=True)
    return list(_findings(compare_database(source, target, database, progress=progress), ours, on_source, evid, written))


def unfinished(source: Source, target: Target, database: str, state: ReplicaState) -> list[TableFinding]:
    """What a recovery of unfinished tables finds without a comparison: all other replicas are as events have made them.

    They count as equal at the applied event: a dump that folds the events after it leaves out those that none of these concern.

    Args:
        source: the source side.
        target: the target side.
        database: source database.
        state: of its replica.
    """
    name = target.policy.target_of(database)
    replicas = {table.tableName.lower(): table for table in target.metastore.tables(name, target.metastore.table_names(name))}
    whole = {
        table: image
        for table, image in replicas.items()
        if source.policy.includes(table)
        and is_ours(image, f"{source.identity}/{database}")
        and not (table in state.held or state.is_stale(image))
    }
    written = _written(source, target, database, sorted(table for table, image in whole.items() if is_transactional(image)))
    held = {table: (reason,) for table, reason in state.held.items() if not (is_function(table) or state.waits(table))}
    left = {**{table: (reason,) for table, reason in written.items()}, **held}
    return [
        *(TableFinding(table, "equal") for table in sorted(whole.keys() - written.keys())),
        *(TableFinding(table, "differs" if table in replicas else "missing", reasons) for table, reasons in sorted(left.items())),
    ]


def _written(source: Source, target: Target, database: str, tables: list[str], *, compared: bool = False) -> dict[str, str]:
    """Transactional tables that no comparison finds equal, and why: a transaction that has a write id is open on either side.

    Its end is an event of no database: a dump that begins after its write id was given out would leave it out with the table. One
    that has ended at the source, of which the replica was not told, is open on the target only; or neither side has it open,
    where the replica was to get its write id with its commit: a comparison of files finds what it wrote. So a replica that has
    given out none may be equal to a source that kept those of a dropped table. Later write ids are events of the table.
    """
    if not (tables and source.acid):
        return {}
    here = source.metastore.write_ids(database, tables)
    there = target.metastore.write_ids(target.policy.target_of(database), tables)
    highest = {table: (here.get(table, WriteIds()).high, there.get(table, WriteIds()).high) for table in tables}
    given = {table: _GIVEN for table, (ours, theirs) in highest.items() if ours != theirs and (theirs or not compared)}
    return given | {table: _OPEN for side in (here, there) for table, write_ids in side.items() if write_ids.open}


def _findings(
    compared: Iterator[TableComparison], ours: set[str], on_source: set[str], evid: int, written: Mapping[str, str]
) -> Iterator[TableFinding]:
    for found in compared:
        if is_function(found.table):
            continue  # a recovery's dump has all functions
        if found.table not in ours:
            yield TableFinding(found.table, "missing", found.differences)
        elif found.table not in on_source:
            yield TableFinding(found.table, "surplus", found.differences)
        elif found.differences:
            yield TableFinding(found.table, "differs", found.differences)
        elif found.last_id > evid:
            yield TableFinding(found.table, "differs", (f"state id {found.last_id} is of another history",))
        elif found.table in written:
            yield TableFinding(found.table, "differs", (written[found.table],))
        else:
            yield TableFinding(found.table, "equal")
