"""What a failback finds: what both sides changed since the failover, what differs, and what would be dropped."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hive_replication.connect import Connection
from hive_replication.dump.source import Source
from hive_replication.errors import MissingEvents, Refused
from hive_replication.events.event_records import is_function
from hive_replication.failover.changes import Change, changes, untold
from hive_replication.failover.stamp import taken
from hive_replication.load.replica.failover_marks import FailoverMarks, failover_marks
from hive_replication.load.replica.state import has_left, replica_state
from hive_replication.load.report import LoadReport
from hive_replication.metastore.table_kinds import is_partitioned
from hive_replication.policy.model import ConflictPolicy
from hive_replication.progress import Progress
from hive_replication.recover import TableFinding
from hive_replication.verify import TableComparison, compare_database

_SHOWN = 5


@dataclass(frozen=True)
class FailoverReverse:
    """What a failback found and did.

    Args:
        database: the opened database, which is the source now.
        target_database: the old source.
        changed: events of the opened database since it was opened.
        conflicts: events of the old source that the opened database never got; none where an earlier call has settled them.
        conflicting: the tables that they changed, and :attr:`never_equal`.
        never_equal: tables of the old source that the opened database never had as they were, and that differ.
        dropped: tables, and partitions as ``table/partition``, that only the old source has: they are dropped there.
        tables: how both compare.
        loads: what was loaded: the window since the other was opened, and what still differed then.
        done: whether the old source was its replica already.
        problem: why the changes of a side are not known, or "".
    """

    database: str
    target_database: str
    changed: tuple[Change, ...] = ()
    conflicts: tuple[Change, ...] = ()
    conflicting: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    tables: tuple[TableFinding, ...] = ()
    loads: tuple[LoadReport, ...] = ()
    done: bool = False
    problem: str = ""
    never_equal: tuple[str, ...] = ()

    @property
    def different(self) -> tuple[TableFinding, ...]:
        """Tables that are not equal."""
        return tuple(table for table in self.tables if table.state != "equal")

    @property
    def bytes_copied(self) -> int:
        """Bytes that were copied from the opened database."""
        return sum(load.bytes_copied for load in self.loads)

    @property
    def held(self) -> tuple[str, ...]:
        """Tables that are held after it."""
        return tuple(sorted({name for load in self.loads[-1:] for lane in load.held for name in lane.tables}))


def both_changed(connection: Connection, name: str, marks: FailoverMarks, progress: Progress | None = None) -> FailoverReverse:
    """What both sides changed since the other was opened; of a failback that began, what the old source had then was settled.

    Where it is not known what the old source changed, all of its tables that are not equal count as changed there. So do tables
    that the other never had as they were, whatever the log tells.
    """
    target = connection.target
    target_name = target.policy.target_of(name)
    old = target.metastore.database(target_name)
    before = failover_marks(old)
    own, problem = _known(changes(connection.source, name, marks.opened or 0))
    found = FailoverReverse(name, target_name, own, conflicting=tuple(sorted(before.behind)), problem=problem)
    if before.settled is None:
        lost, unknown = _known(changes(old_source(connection), target_name, marks.event or 0, marks.behind, marks.message_hash))
        tables = {table for change in lost for table in change.tables}
        never = set(unequal(connection, name, progress, None if unknown else _never_equal(connection, name, marks) - tables))
        said = "; ".join(filter(None, (problem, unknown)))
        found = replace(found, conflicts=lost, conflicting=tuple(sorted(tables | never)), problem=said)
        found = replace(found, never_equal=() if unknown else tuple(sorted(never)))
    elif not replica_state(old).source:
        late, unknown = _known(written(connection, target_name, before.settled, stamped=True))
        tables = {table for change in late for table in change.tables} | set(
            unequal(connection, name, progress) if unknown else ()
        )
        said = "; ".join(filter(None, (problem, unknown)))
        found = replace(found, conflicts=late, conflicting=tuple(sorted(tables | before.behind.keys())), problem=said)
    return replace(found, dropped=tuple(_dropped(connection, name, kept_aside(connection, found))))


def old_source(connection: Connection) -> Source:
    """The side of the old source, to read its log."""
    return replace(connection.source, metastore=connection.target.metastore, storage=connection.target.storage)


def written(connection: Connection, target_name: str, after: int, *, stamped: bool) -> Iterator[Change]:
    """What was written to the old source after an event of its log.

    Args:
        connection: from the opened database to the old source.
        target_name: the old source.
        after: event id.
        stamped: whether a failback may have marked tables and partitions as replicas since: what only alters them is none then.
    """
    found = changes(old_source(connection), target_name, after)
    return (one for one in found if not (stamped and one.type.startswith("ALTER_")))


def _known(found: Iterator[Change]) -> tuple[tuple[Change, ...], str]:
    """Changes of one side, or why they are not known."""
    try:
        return tuple(found), ""
    except MissingEvents as error:
        return (), str(error)


def kept_aside(connection: Connection, found: FailoverReverse) -> frozenset[str]:
    """Tables that are not taken for replicas: the load gives them another name."""
    return frozenset(found.conflicting if connection.target.policy.conflicts == "keep-aside" else ())


def _dropped(connection: Connection, name: str, aside: frozenset[str]) -> Iterator[str]:
    """What only the old source has, and a failback drops there."""
    source, target = connection.source, connection.target.within_filters(name)
    target_name, there = target.policy.target_of(name), set(source.metastore.table_names(name))
    for table in taken(source, target, target_name, aside):
        name_of_table = table.tableName.lower()
        if name_of_table not in there:
            yield name_of_table
        elif is_partitioned(table):
            kept = set(source.metastore.partition_names(name, name_of_table))
            names = target.metastore.partition_names(target_name, name_of_table)
            yield from (f"{name_of_table}/{one}" for one in names if one not in kept)


def compared(connection: Connection, name: str, progress: Progress | None) -> Iterator[TableFinding]:
    """How both compare, without a mark on the old source."""
    source, target = connection.source, connection.target
    ours = set(source.metastore.table_names(name))
    theirs = set(target.metastore.table_names(target.policy.target_of(name)))
    for one in compare_database(source, target, name, progress=progress):
        yield TableFinding(one.table, _state(one, ours, theirs), one.differences)


def _never_equal(connection: Connection, name: str, marks: FailoverMarks) -> set[str]:
    """Tables and functions of which the opened database may have something that was never the old source's: not by their log.

    Their bootstrap or recovery had failed when it was opened, they stayed as they were, being left out, its policy had left them,
    or they stood so far behind that the log of the old source no longer tells what it wrote to them.
    """
    source = connection.source
    names = filter(source.policy.includes, source.metastore.table_names(name))
    gone = untold(old_source(connection), marks.event or 0, marks.behind)
    left = {table.tableName.lower() for table in source.metastore.tables(name, sorted(names)) if has_left(table)}
    lost = {*gone, *(one for one, at in marks.behind.items() if not at)}
    return left | {one for one in lost if is_function(one) or source.policy.includes(one)}


def unequal(connection: Connection, name: str, progress: Progress | None, only: Collection[str] | None = None) -> Iterator[str]:
    """Tables of the old source that are not equal to those of the opened database, or that only the old source has.

    Args:
        connection: from the opened database to the old source.
        name: the opened database.
        progress: shows the progress.
        only: names to look at; all where None.
    """
    if only is None or any(map(is_function, only)):
        for one in compared(connection, name, progress):
            if one.state in ("differs", "surplus") and (only is None or one.table in only):
                yield one.table
        return
    target = connection.target
    there = set(target.metastore.table_names(target.policy.target_of(name)))
    for table in filter(connection.source.policy.includes, sorted(there & set(only))):
        for one in compare_database(connection.source, target, name, table=table):
            if one.differences:
                yield one.table


def _state(one: TableComparison, ours: set[str], theirs: set[str]) -> Literal["equal", "differs", "missing", "surplus"]:
    if not one.differences:
        return "equal"
    if one.table in ours and one.table not in theirs:
        return "missing"
    return "surplus" if one.table in theirs and one.table not in ours else "differs"


def require_allowed(found: FailoverReverse, conflicts: ConflictPolicy, *, drop: bool) -> None:
    """Nothing is overwritten or dropped that was not named first.

    Raises:
        Refused: something would be.
    """
    again = f"hive-repl failover reverse {found.database}"
    if found.problem and conflicts == "refuse":
        raise Refused(
            f"what was changed since the failover is not known ({found.problem}): {again} --dry-run compares; then set conflicts "
            "in the policy to replace or keep-aside"
        )
    if found.conflicts and conflicts == "refuse":
        raise Refused(
            f"the old source {found.target_database!r} has changes that the opened database never got, in "
            f"{_shown(found.conflicting) or 'the database itself'} (from event {found.conflicts[0].evid} on): save what is "
            "needed, and set conflicts in the policy to replace (the opened database's tables win) or keep-aside (another name)"
        )
    if found.never_equal and conflicts == "refuse":
        raise Refused(
            f"the opened database {found.database!r} never had {_shown(found.never_equal)} as the old source "
            f"{found.target_database!r} has it: it was opened while they were unfinished or far behind, or left out (by its "
            "policy, or by their kind); save what is needed, and set conflicts in the policy to replace (the opened one wins) "
            "or keep-aside (another name)"
        )
    if found.dropped and not drop:
        raise Refused(
            f"only the old source {found.target_database!r} has {_shown(found.dropped)}: {again} --drop drops it there, and "
            "its data is kept for retention_seconds"
        )


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
