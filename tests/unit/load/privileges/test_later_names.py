"""Grants are matched by name: names that are other objects at the source by now wait for the window that brings those."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.errors import MissingEvents
from hive_replication.load.privileges.replicate import PrivilegeReport, Replica, replicate_privileges
from hive_replication.load.replica.state import SOURCE, ReplicaState
from hive_replication.metastore.names import partition_values
from hive_replication.metastore.privileges import Grant, Principal, Securable
from hive_replication.metastore.types import FieldSchema, NotificationEvent, Partition, PrincipalType, Table
from tests import model
from tests.messages import row

SOURCE_DATABASE = "source/db"
PAY, OLD = model.NAMES[:2]
BOB, ETL = Principal(PrincipalType.USER, "bob"), Principal(PrincipalType.USER, "etl")
CREATE, INSERT, RENAME, DROP = ("create", 0, 0, 0), ("insert", 0, 0, 0), ("rename", 0, 0, 1), ("drop", 0, 0, 0)
Action = tuple[str, int, int, int]


class Side:
    """A metastore of tables with grants, and a log."""

    views_of_materialized = False

    def __init__(self, tables: Collection[str], grants: Iterable[Grant] = (), log: Sequence[NotificationEvent] = ()) -> None:
        self.names, self.granted, self.log, self.purged = tables, list(grants), log, False
        self.keys: list[FieldSchema] = []

    def table_names(self, _db: str) -> list[str]:
        return list(self.names)

    def tables(self, db: str, names: Iterable[str]) -> list[Table]:
        made = (Table(tableName=name, dbName=db, parameters={SOURCE: SOURCE_DATABASE}, partitionKeys=self.keys) for name in names)
        return [one for one in made if one.tableName in self.names]

    def partitions(self, _db: str, _table: str, names: Iterable[str]) -> list[Partition]:
        return [Partition(values=list(partition_values(name))) for name in names]

    def grants(self, _db: str, tables: Iterable[str], _threads: object) -> list[Grant]:
        asked = {*tables, ""}
        return [one for one in self.granted if one.on.table in asked]

    def grant(self, _db: str, grants: Iterable[Grant]) -> None:
        self.granted.extend(grants)

    def revoke(self, _db: str, grants: Iterable[Grant]) -> None:
        self.granted = [one for one in self.granted if one not in grants]

    def role_names(self) -> list[str]:
        return []

    def current_event_id(self) -> int:
        return len(self.log)

    def events(self, after: int, until: int) -> Iterator[NotificationEvent]:
        if self.purged:
            raise MissingEvents("the log lacks the events 2 to 3")
        yield from self.log[after:until]


def granted(table: str, *values: str) -> Grant:
    return Grant(Securable(table, values), BOB, "SELECT", False, ETL)


def log(*actions: Action) -> list[NotificationEvent]:
    source = model.Source()
    for action in actions:
        source.act(*action)
    return list(map(row, source.events))


def replicated(source: Side, target: Side, state: ReplicaState, *, remove: bool = False, **more: Any) -> PrivilegeReport:
    settings = SimpleNamespace(principals={}, roles=False, remove=remove)
    policy = SimpleNamespace(privileges=settings, owners={}, max_message_bytes=1 << 20)
    side: Any = SimpleNamespace(metastore=target, policy=policy, threads=None)
    side.within_filters = {"db": side}.get
    replica = Replica("db", "db", SOURCE_DATABASE, state, cast("Callable[[str], bool]", bool), **more)
    return replicate_privileges(source, side, replica, lambda: None)  # type: ignore[arg-type]


STANDS = ReplicaState(SOURCE_DATABASE, 2)


@pytest.mark.parametrize("later", [(RENAME, CREATE), (DROP, CREATE), (RENAME, ("rename", 1, 0, 0))])
def test_a_name_that_was_given_to_another_table_waits(later: tuple[Action, ...]) -> None:
    """The grant would stay on the old table for good, under its new name."""
    source = Side([PAY, OLD], [granted(PAY), granted("other"), granted("")], log(CREATE, INSERT, *later))
    source.names = [PAY, OLD, "other"]
    target = Side([PAY, "other"])
    done = replicated(source, target, STANDS)
    assert {one.on.table for one in target.granted} == {"other", ""}
    (told,) = done.problems
    assert told.startswith(f"grants on {PAY} wait for the next window")
    assert done.exit_code == 1

    target.names = [PAY, OLD, "other"]  # the next window
    done = replicated(source, target, ReplicaState(SOURCE_DATABASE, 4))
    assert (done.problems, {one.on.table for one in target.granted}) == ((), {PAY, "other", ""})


def test_nothing_is_revoked_from_it_either() -> None:
    source = Side([PAY, OLD], [], log(CREATE, INSERT, RENAME, CREATE))
    target = Side([PAY], [granted(PAY)])
    assert replicated(source, target, STANDS, remove=True).problems
    assert target.granted == [granted(PAY)]


def test_what_a_table_that_stands_later_has_already_is_no_reason() -> None:
    """As after a repair, and of a load of one table."""
    source = Side([PAY, OLD], [granted(PAY)], log(CREATE, INSERT, DROP, CREATE))
    repaired, alone = Side([PAY]), Side([PAY])
    assert replicated(source, repaired, ReplicaState(SOURCE_DATABASE, 2, at={PAY: 4})).problems == ()
    assert replicated(source, alone, ReplicaState(), stands=4, tables={PAY: PAY}).problems == ()
    assert repaired.granted == alone.granted == [granted(PAY)]


def test_other_events_are_no_reason() -> None:
    source = Side([PAY], [granted(PAY)], log(CREATE, INSERT, INSERT, ("alter", 0, 0, 0), ("create", 2, 0, 0)))
    target = Side([PAY])
    assert replicated(source, target, STANDS).problems == ()
    assert target.granted == [granted(PAY)]


def test_a_partition_that_was_dropped_waits_alone() -> None:
    actions = (("create", 0, 0, 1), *(("insert", 0, part, 0) for part in (0, 1)), ("drop part", 0, 0, 0))
    rows = log(*actions)
    assert [one.eventType for one in rows] == ["CREATE_TABLE", "ADD_PARTITION", "ADD_PARTITION", "DROP_PARTITION"]
    first, second = (partition_values(one)[0] for one in model.PARTS[:2])
    source = Side([PAY], [granted(PAY), granted(PAY, first), granted(PAY, second)], rows)
    target = Side([PAY])
    target.keys = [FieldSchema("p", "string")]
    assert len(replicated(source, target, ReplicaState(SOURCE_DATABASE, 3)).problems) == 1
    assert {one.on.values for one in target.granted} == {(), (second,)}


@pytest.mark.parametrize("broken", ["purged", "unreadable", "database"])
def test_where_nobody_knows_all_wait(broken: str) -> None:
    rows = log(CREATE, INSERT, ("create", 2, 0, 0))
    source, target = Side([PAY], [granted(PAY), granted("")], rows), Side([PAY])
    source.purged = broken == "purged"
    if broken == "unreadable":
        rows[2].message = "{"
    elif broken == "database":
        rows[2].eventType, rows[2].tableName = "DROP_DATABASE", None
    (told,) = replicated(source, target, STANDS).problems
    assert told.startswith("grants wait: ")
    assert target.granted == []


def test_the_log_is_read_only_where_something_differs() -> None:
    source, target = Side([PAY], [granted(PAY)], log(CREATE, INSERT, DROP)), Side([PAY], [granted(PAY)])
    source.purged = True
    assert replicated(source, target, STANDS).problems == ()
