"""A failover that begins when all of the source is gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from hive_replication import recorded
from hive_replication.connect import Reachable, reachable_servers
from hive_replication.direction import failover_open, failover_status
from hive_replication.errors import BadRequest, Refused
from hive_replication.load.replica.failover_marks import failover_marks
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Database
from hive_replication.policy import Policy, Root
from hive_replication.storage import Storage
from tests.unit.failover.fakes import Side, log, policy, without_locks

CREATE = ("create", 0, 0, 0)


class Lost(Side):
    """The target, which is all that is left: its databases by name."""

    def __init__(self, **replicas: ReplicaState) -> None:
        super().__init__(log=log(CREATE), uri="thrift://b:1")
        self.databases = {name: state.parameters() for name, state in replicas.items()}

    def database(self, name: str) -> Any:
        return Database(name=name, parameters=self.databases[name]) if name in self.databases else None

    def alter_database(self, name: str, altered: Database, _before: Database | None = None) -> None:
        self.databases[name] = dict(altered.parameters)


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Policy, Lost]]:
    """A policy with a pattern, whose source and dump root, on the source's HDFS, are gone; who asks that one waits for ever."""
    target = Lost(dr_sales=ReplicaState("thrift://a:1/sales", 2), dr_hr=ReplicaState("thrift://a:1/people", 2))
    without_locks(monkeypatch)
    monkeypatch.setattr(reachable_servers, "reach", lambda _: Reachable(source="it is switched off"))
    monkeypatch.setattr(Metastore, "of", lambda *_, **__: target)
    for module, patience in ((reachable_servers, "_TIMEOUT"), (recorded, "PATIENCE")):
        monkeypatch.setattr(module, patience, 0.2)
    over = threading.Event()
    monkeypatch.setattr(Storage, "exists", lambda *_: over.wait())
    root = "hdfs://127.0.0.1:1/"
    made = policy().model_copy(update={"dump_root": f"{root}dumps", "databases": {"*": "dr_*"}})
    yield made.model_copy(update={"source": made.source.model_copy(update={"roots": (Root(uri=root),)})}), target
    over.set()


def test_a_pattern_does_not_keep_a_database_from_being_opened_when_all_of_the_source_is_gone(
    lost: tuple[Policy, Lost], caplog: pytest.LogCaptureFixture
) -> None:
    """Nor does a NameNode that never answers; which databases the pattern had is not known."""
    made, target = lost
    assert failover_status(made, "Sales").phase == "replicating"
    assert failover_open(made, "Sales").phase == "opened"
    assert failover_marks(target.database("dr_sales")).origin == "thrift://a:1/sales"
    assert "the record of the failover open could not be kept" in caplog.text
    with pytest.raises(BadRequest, match="'dr_other' is no finished replica of 'other'"):
        failover_open(made, "other")
    with pytest.raises(Refused, match="'dr_hr' is a replica of thrift://a:1/people, not of a 'hr'"):
        failover_open(made, "hr")  # a database whose name on the target is another's is none of the pattern
    with pytest.raises(BadRequest, match="has no database 'x'"):
        failover_open(made.model_copy(update={"databases": {"s*": "dr_*"}}), "x")
