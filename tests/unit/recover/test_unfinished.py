"""A recovery of tables that a bootstrap could not do: others are neither compared nor read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.connect import Connection
from hive_replication.dump.source import Source
from hive_replication.errors import MissingEvents
from hive_replication.load.replica.state import SOURCE, ReplicaState, with_state
from hive_replication.metastore.types import Database, NotificationEvent, Table
from hive_replication.recover import UNFINISHED, Gap, Recovery, TableFinding, dump_recovery
from tests import model
from tests.moving import POLICY, Draft, moving_source


class Replica:
    """A target of which nothing but its state and the names of its tables is known, and a source that counts its listings."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.model = model.Source()
        for table in range(3):
            self.model.act("create", table, 0, 0)
        self.source: Source = moving_source(self.model, [], [])
        self.listed = list[str]()
        self.compared = 0
        self.state = ReplicaState(f"{self.source.identity}/db", self.model.evid, scope=POLICY.scope("db", acid=False).text)
        self.state = replace(self.state, at={"b": 0}, held={"b": "its directory was missing"})
        self.draft = Draft()
        files: Any = self.source.storage.files

        def counted(location: str) -> Any:
            self.listed.append(location.rpartition("/")[2])
            return files(location)

        monkeypatch.setattr(self.source.storage, "files", counted)
        monkeypatch.setattr("hive_replication.recover.command._mark", lambda *_: None)
        monkeypatch.setattr("hive_replication.recover.command.survey", self.survey)

    def survey(self, *_: object, **__: object) -> list[TableFinding]:
        self.compared += 1
        return [TableFinding("a", "equal"), TableFinding("b", "missing"), TableFinding("c", "equal")]

    def tables(self, _: str, names: Iterable[str]) -> list[Table]:
        return [Table(tableName=name, parameters={SOURCE: self.state.source}) for name in names]

    def recover(self) -> Recovery:
        database = Database(name="db", parameters=with_state({}, self.state))
        metastore = SimpleNamespace(database=lambda _: database, table_names=lambda _: ["a", "c"], tables=self.tables)
        target: Any = SimpleNamespace(policy=POLICY, metastore=metastore)
        store: Any = SimpleNamespace(create=lambda *_, **__: self.draft)
        connection = Connection(self.source, target, store, cast("Any", None))
        return dump_recovery(connection, "db", Gap(UNFINISHED, self.state.applied or 0, "failed for b"))[0]


@pytest.fixture
def replica(monkeypatch: pytest.MonkeyPatch) -> Replica:
    return Replica(monkeypatch)


def test_only_the_tables_that_a_bootstrap_could_not_do_are_listed(replica: Replica) -> None:
    found = replica.recover()
    assert (replica.compared, set(replica.listed), set(replica.draft.tables)) == (0, {"b"}, {"b"})
    assert [(one.table, one.state, one.differences) for one in found.different] == [
        ("b", "missing", ("its directory was missing",))
    ]
    assert found.dump is not None
    assert (found.dump.header.from_evid, found.dump.header.equal) == (replica.state.applied, ("a", "c"))


def test_a_table_of_a_later_event_is_read_with_them(replica: Replica) -> None:
    """The replica stands at the dump's event then: nothing brings it the event."""
    replica.model.act("insert", 2, 0, 0)
    found = replica.recover()
    assert found.dump is not None
    assert (replica.compared, set(replica.draft.tables), found.dump.header.equal) == (0, {"b", "c"}, ("a",))
    assert replica.draft.state() == {name: replica.model.state()[name] for name in "bc"}


@pytest.mark.parametrize("why", ["another policy", "an unknown policy", "no later events"])
def test_all_are_compared_where_others_may_differ(replica: Replica, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if why == "no later events":
        applied, events = replica.model.evid, replica.source.metastore.events

        def purged(after: int, until: int) -> Iterable[NotificationEvent]:
            if after == applied < until:
                raise MissingEvents("purged")
            return events(after, until)

        monkeypatch.setattr(replica.source.metastore, "events", purged)
        replica.draft.abandon = lambda: None  # type: ignore[method-assign]
        replica.model.act("insert", 2, 0, 0)
    else:
        other = POLICY.model_copy(update={"exclude": ("zzz",)}).scope("db").text
        replica.state = replace(replica.state, scope=other if why == "another policy" else "")
    assert [one.table for one in replica.recover().different] == ["b"]
    assert replica.compared == 1
