"""Parameters of a target database that somebody edited: one clear error for that database, and the others go on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.connect import Connection
from hive_replication.dump.source import Source
from hive_replication.errors import Refused
from hive_replication.lag.reader import LagReader
from hive_replication.load.replica.repl_status import repl_status
from hive_replication.load.replica.state import ReplicaState, object_id, replica_state
from hive_replication.load.replica.target import Target
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Database, Table
from hive_replication.parallel import Threads
from hive_replication.policy import Policy
from sensors.notification_log.log_scan import states
from tests.lags import POLICY

EDITED = [
    ("applied.id", "soon"),
    ("applied.id", "1500.0"),
    ("applied.id", "Infinity"),
    ("applied.id", ""),
    ("applied.id", "²"),
    ("applied.id", str(2**63)),
    ("applied.id", "9" * 5_000),
    ("applied.event", "x"),
    ("applied.event", "5:x:hash"),
    ("undone", "soon"),
    ("at.orders", "-1"),
    ("origins", "[1]"),
    ("origins", "[" * 100_000),
]


def edited(name: str, value: str) -> Database:
    good = ReplicaState("uuid/sales", 5, origins=("one",)).parameters()
    return Database(name="sales", parameters={**good, f"hive_replication.{name}": value})


@pytest.mark.parametrize(("name", "value"), EDITED, ids=lambda value: str(value)[:20])
def test_an_edited_parameter_is_named(name: str, value: str) -> None:
    with pytest.raises(Refused, match=f"the parameter hive_replication.{name} of the database 'sales' is ") as error:
        replica_state(edited(name, value))
    assert len(str(error.value)) < 400
    metastore = cast("Metastore", SimpleNamespace(database=lambda _: edited(name, value)))
    with pytest.raises(Refused, match="set it back"):
        repl_status(metastore, "sales")


@pytest.mark.parametrize(("value", "evid"), [("12", 12), ("", 0), ("²", 0), ("x", 0), ("9" * 5_000, 0), (str(2**63), 0)])
def test_an_edited_id_of_an_object_is_none(value: str, evid: int) -> None:
    assert object_id(Table(parameters={"repl.last.id": value})) == evid


class TwoDatabases:
    """Two databases, of which one was edited."""

    def database(self, name: str) -> Database | None:
        if name == "sales":
            return edited("applied.id", "soon")
        return Database(name=name, parameters=ReplicaState("uuid/other", 7).parameters())


class Log:
    """A source's log without new events."""

    def current_event_id(self) -> int:
        return 7

    def events(self, *_: int) -> list[Any]:
        return []

    def database(self, name: str) -> Database:
        return Database(name=name, parameters={})


def test_lags_and_sensors_of_other_databases_go_on() -> None:
    policy: Policy = POLICY.model_copy(update={"databases": {"sales": "sales", "other": "other"}})
    source = cast(
        "Source",
        SimpleNamespace(metastore=Log(), policy=policy, storage=SimpleNamespace(threads=None), threads=Threads(1, "table")),
    )
    target = cast("Target", SimpleNamespace(metastore=TwoDatabases(), policy=policy))
    assert list(states(cast("Connection", SimpleNamespace(source=source, target=target)))) == ["other"]
    sales, other = _lags(source, target)
    assert "hive_replication.applied.id of the database 'sales' is 'soon'" in sales.gap
    assert (other.applied, other.gap) == (7, "")


def _lags(source: Source, target: Target) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hive_replication.lag.reader.history_gap", lambda *_: None)
        patch.setattr("hive_replication.lag.sizes.FileSizes.look_up", lambda *_: None)
        return LagReader(source, target).read()
