"""Two metastores with one database each, and a connection between them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.connect import Connection
from hive_replication.dump.source import Source
from hive_replication.errors import MissingEvents
from hive_replication.metastore.types import Database, NotificationEvent, Table
from hive_replication.policy import Policy
from hive_replication.policy.model import ConflictPolicy
from tests import model
from tests.messages import row


@dataclass
class Side:
    """A metastore with one database ``db``, and its log."""

    tables_there: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    log: list[NotificationEvent] = field(default_factory=list[NotificationEvent])
    purged: int = 0
    parameters: dict[str, str] = field(default_factory=dict[str, str])
    uri: str = "thrift://a:1"
    location: str = ""
    views_of_materialized: bool = False
    features: Any = field(default_factory=lambda: SimpleNamespace(major=3))

    def uuid(self) -> str:
        return self.uri

    def at_once(self) -> Side:
        return self

    def config_value(self, _name: str, default: str) -> str:
        return default

    def database(self, name: str) -> Database:
        return Database(name=name, locationUri=self.location, parameters=self.parameters)

    def alter_database(self, _name: str, altered: Database, _before: Database | None = None) -> None:
        self.parameters = dict(altered.parameters)

    def table_names(self, _db: str) -> list[str]:
        return list(self.tables_there)

    def table(self, db: str, name: str) -> Table | None:
        return next(self.tables(db, [name]), None)

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


def connected(source: Side, target: Side, conflicts: ConflictPolicy = "refuse") -> Connection:
    """A connection from one to the other."""
    read = Source(source, None, made := policy(conflicts))  # type: ignore[arg-type]
    written: Any = SimpleNamespace(metastore=target, storage=None, policy=made, identity=target.uri)
    written.within_filters = {"db": written}.get
    return cast("Connection", SimpleNamespace(source=read, target=written, copier=None))


def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else loads: no lock of a metastore is asked for."""
    lock = nullcontext(SimpleNamespace(check=lambda: None))
    commands = ("sides", "finish", "grants", "reverse")
    others = ("load.replica.parameter_lock", "load.undo.undo")
    for module in (*(f"failover.{one}" for one in commands), *others):
        monkeypatch.setattr(import_module(f"hive_replication.{module}"), "MetastoreLock", lambda *_, **__: lock)
    monkeypatch.setattr(import_module("hive_replication.load.replica.interrupted"), "is_locked", lambda *_: False)
