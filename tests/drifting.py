"""A replicated database of which others change the source's files."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from hive_replication.connect import Connection
from hive_replication.drift import DriftScan, TableDrift, repair_drift
from tests.origin import Origin
from tests.warehouse import Warehouse


@dataclass
class Drifting:
    """A replicated database, and what others do to its source's files."""

    origin: Origin
    replica: Warehouse

    @classmethod
    def of(cls, connection: Connection, **settings: object) -> Self:
        """A new database, under a policy with other settings."""
        name = f"t{uuid.uuid4().hex[:10]}"
        policy = connection.source.policy.model_copy(update={"databases": {name: name}, **settings})
        source, target = (replace(side, policy=policy) for side in (connection.source, connection.target))
        connection = replace(connection, source=source, target=target)
        made = cls(Origin(connection, name), Warehouse(connection, None, name))  # type: ignore[arg-type]
        made.origin.create_database()
        return made

    @property
    def connection(self) -> Connection:
        return self.origin.connection

    def file(self, table: str, day: str = "") -> str:
        """The first of its files."""
        return self.connection.source.storage.files(self.origin.location(table, day))[0].uri

    def put(self, table: str, day: str, name: str, rows: bytes = b"9\n") -> str:
        uri = f"{self.origin.location(table, day)}/{name}"
        self.connection.source.storage.write(uri, rows)
        return uri

    def scan(self, table: str, meanwhile: Callable[[], object] = lambda: None) -> TableDrift:
        def sleep(seconds: float) -> None:
            meanwhile()
            time.sleep(seconds)

        found = DriftScan(self.connection.source, self.connection.target, self.origin.database, 0.1, sleep).table(table)
        assert found is not None
        return found

    def drifted(self, table: str) -> dict[str, str]:
        return {one.partition: one.reason for one in self.scan(table).drifted}

    def repair(self, found: TableDrift) -> list[str]:
        """Why it is not repaired, if it is not."""
        return repair_drift(self.connection, self.origin.database, found)

    def repaired(self, table: str) -> dict[str, str]:
        """Finds drift and repairs it; then the replica is equal, and nothing is found again."""
        found = self.scan(table)
        assert self.repair(found) == []
        self.replica.assert_equal(only=table)
        assert self.drifted(table) == {}
        return {one.partition: one.reason for one in found.drifted}
