"""What a failback may overwrite, and what it names first: by logs, and by comparison where they do not tell."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.connect import Connection
from hive_replication.dump.source import Source, message_hash
from hive_replication.errors import MissingEvents, Refused
from hive_replication.failover import reverse_findings
from hive_replication.failover.changes import changes
from hive_replication.failover.reverse_findings import both_changed, kept_aside, require_allowed
from hive_replication.failover.status import status
from hive_replication.load.replica.failover_marks import FailoverMarks
from hive_replication.metastore.types import Database, NotificationEvent, Table
from hive_replication.policy import Policy
from hive_replication.policy.model import ConflictPolicy
from hive_replication.verify import TableComparison
from tests import model
from tests.messages import row

A, B, C = model.NAMES
CREATE, INSERT = ("create", 0, 0, 0), ("insert", 0, 0, 0)


@dataclass
class Side:
    """A metastore with one database ``db``, and its log."""

    tables_there: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    log: list[NotificationEvent] = field(default_factory=list[NotificationEvent])
    purged: int = 0
    parameters: dict[str, str] = field(default_factory=dict[str, str])
    uri: str = "thrift://a:1"
    views_of_materialized: bool = False
    features: Any = field(default_factory=lambda: SimpleNamespace(major=3))

    def uuid(self) -> str:
        return self.uri

    def database(self, name: str) -> Database:
        return Database(name=name, parameters=self.parameters)

    def table_names(self, _db: str) -> list[str]:
        return list(self.tables_there)

    def tables(self, db: str, names: Collection[str]) -> Iterator[Table]:
        for name, parameters in self.tables_there.items():
            if name in names:
                yield Table(tableName=name, dbName=db, tableType="MANAGED_TABLE", parameters=parameters, partitionKeys=[])

    def current_event_id(self) -> int:
        return len(self.log)

    def event(self, evid: int) -> NotificationEvent | None:
        return self.log[evid - 1] if self.purged < evid <= len(self.log) else None

    def events(self, after: int, until: int) -> Iterator[NotificationEvent]:
        if after < self.purged:
            raise MissingEvents(f"the log lacks the events {after + 1} to {self.purged}")
        yield from self.log[after:until]


def log(*actions: tuple[str, int, int, int]) -> list[NotificationEvent]:
    source = model.Source()
    for action in actions:
        source.act(*action)
    return list(map(row, source.events))


def policy(conflicts: ConflictPolicy = "refuse") -> Policy:
    return Policy.model_validate(
        {
            "source": {"metastore": "thrift://s:1", "roots": [{"uri": "hdfs://src:8020/"}]},
            "target": {"metastore": "thrift://t:1", "roots": [{"uri": "hdfs://dst:8020/"}]},
            "dump_root": "hdfs://dst:8020/dumps",
            "databases": {"db": "db"},
            "conflicts": conflicts,
        }
    )


def back(opened: Side, old: Side, conflicts: ConflictPolicy = "refuse") -> Connection:
    """From the opened database to the old source."""
    source = Source(opened, None, made := policy(conflicts))  # type: ignore[arg-type]
    target: Any = SimpleNamespace(metastore=old, storage=None, policy=made, identity=old.uri)
    target.within_filters = {"db": target}.get
    return cast("Connection", SimpleNamespace(source=source, target=target))


@pytest.fixture
def different(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of tables whose comparison finds a difference."""
    found = set[str]()

    def compare(source: Source, target: Any, name: str, *, table: str | None = None, progress: object = None) -> Iterable[Any]:
        del progress
        names = {*source.metastore.table_names(name), *target.metastore.table_names(name)} if table is None else {table}
        return [TableComparison(one, differences=("content",) if one in found else ()) for one in sorted(names)]

    monkeypatch.setattr(reverse_findings, "compare_database", compare)
    return found


OLD = log(CREATE, INSERT, ("create", 1, 0, 0))
MARKS = FailoverMarks(endpoint="TARGET", event=2, origin="thrift://a:1/db", opened=1, kind="UNPLANNED")


@pytest.mark.parametrize("purged", [0, 3])
def test_what_the_old_source_changed_is_a_conflict_whatever_the_other_log_tells(purged: int) -> None:
    opened = Side({A: {}, B: {}}, log(CREATE, INSERT, INSERT, INSERT), purged=purged)
    found = both_changed(back(opened, Side({A: {}, B: {}}, OLD)), "db", MARKS)
    assert (found.conflicting, bool(found.problem), len(found.changed)) == ((B,), purged > 0, 0 if purged else 3)


def test_where_its_changes_are_unknown_all_that_differs_is_kept_aside(different: set[str]) -> None:
    different |= {A, C, "d"}
    opened, old = Side({A: {}, B: {}, "d": {}}, log(CREATE)), Side({A: {}, B: {}, C: {}}, OLD, purged=3)
    made = back(opened, old, "keep-aside")
    found = both_changed(made, "db", MARKS)
    assert found.problem == "the log lacks the events 3 to 3"
    assert (found.conflicting, found.dropped) == ((A, C), ()), "only the opened database has d"
    assert kept_aside(made, found) == {A, C}
    assert both_changed(back(opened, old, "replace"), "db", MARKS).dropped == (C,)


def test_an_old_source_with_another_history_is_recognised(different: set[str]) -> None:
    """Restored from a backup, it went on, so that its log has other events of the same ids."""
    different.add(B)
    marks = replace(MARKS, message_hash=message_hash(OLD[1].message))
    restored = Side({A: {}, B: {}}, log(CREATE, ("create", 1, 0, 0), ("insert", 1, 0, 0)))
    opened = Side({A: {}, B: {}}, log(CREATE))
    found = both_changed(back(opened, restored), "db", marks)
    assert found.problem.startswith("event 2 of thrift://a:1 is another one than the replica has")
    assert found.conflicting == (B,)
    with pytest.raises(Refused, match="is not known"):
        require_allowed(found, "refuse", drop=True)

    opened.parameters = marks.parameters()
    there = back(restored, opened)
    assert status(there, "db").problem == found.problem
    assert both_changed(back(opened, restored), "db", MARKS).problem == "", "an earlier version did not keep the hash"
    restored.purged = 2
    assert list(changes(there.source, "db", 2, {}, marks.message_hash)), "it is not there any more: nobody can compare"


def test_an_old_source_seen_from_the_way_back_is_not_asked_by_its_own_event_ids() -> None:
    marks = FailoverMarks(endpoint="SOURCE", event=900, successor="thrift://b:1/db", opened=1, message_hash="00")
    opened = Side({A: {}}, log(CREATE, INSERT), parameters=MARKS.parameters(), uri="thrift://b:1")
    found = status(back(opened, Side({A: {}}, OLD, parameters=marks.parameters())), "db")
    assert (found.phase, found.event, [one.evid for one in found.not_replicated]) == ("to be reversed", 1, [2])
