"""One database on two sides, of which either may be the source: what tests of failovers do to it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from hive_replication import failover
from hive_replication.connect import Connection, Reachable, connect
from hive_replication.dump.command import repl_dump
from hive_replication.errors import Unreachable
from hive_replication.load.command import repl_load
from hive_replication.load.replica.state import replica_state
from hive_replication.load.report import LoadReport
from hive_replication.metastore.connection import Connections
from hive_replication.statements import ReplDump, ReplLoad
from hive_replication.verify import compare_database
from resources.embedded.cluster import Cluster
from resources.embedded.policy import policy
from tests.origin import Origin

AWAY = Reachable(source="it was switched off")


@dataclass
class Direction:
    """Replication of a database in one direction."""

    connection: Connection
    database: str

    @property
    def replica(self) -> str:
        """The target database."""
        return self.connection.target.policy.target_of(self.database)

    @property
    def origin(self) -> Origin:
        """Writes on the side that is read."""
        return Origin(self.connection, self.database, itertools.count(next(_NUMBERS) * 1000))

    def with_policy(self, **settings: object) -> Direction:
        made = self.connection.source.policy.model_copy(update=settings)
        sides = {side: replace(getattr(self.connection, side), policy=made) for side in ("source", "target")}
        return replace(self, connection=replace(self.connection, **sides))

    def replicate(self) -> LoadReport:
        """A window, or the bootstrap."""
        sides = self.connection
        applied = replica_state(sides.target.metastore.database(self.replica)).applied
        dump = repl_dump(sides.source, ReplDump(self.database, None, applied), sides.store)
        statement = ReplLoad(dump.directory, self.replica)
        report = repl_load(sides.target, statement, sides.store, sides.copier, source=sides.source.metastore)
        assert report.held == ()
        return report

    def fail_over(self, **options: Any) -> failover.FailoverStatus:
        """A planned failover in this direction."""
        started = failover.start(self.connection, self.database, **options)
        assert started.status.phase == "ready"
        return failover.finish(self.connection, self.database)

    def parameters(self, *, source: bool) -> dict[str, str]:
        sides = self.connection
        found = sides.source.metastore.database(self.database) if source else sides.target.metastore.database(self.replica)
        assert found is not None
        return dict(found.parameters or {})

    def differences(self) -> dict[str, tuple[str, ...]]:
        found = compare_database(self.connection.source, self.connection.target, self.database)
        return {one.table: one.differences for one in found if one.differences}

    def status(self, reach: Reachable | None = None) -> failover.FailoverStatus:
        return failover.status(self.connection, self.database, reach)


_NUMBERS = itertools.count(1)


def both_ways(cluster: Cluster, database: str, source: str = "source", target: str = "target") -> tuple[Direction, Direction]:
    """A database replicated from one side to the other, and back."""
    return tuple(  # type: ignore[return-value]
        Direction(connect(policy(cluster, {database: database}, *sides)), database)
        for sides in ((source, target), (target, source))
    )


@contextmanager
def killed_after(monkeypatch: pytest.MonkeyPatch, writes: int, *, before: bool) -> Iterator[None]:
    """The process loses all servers after it changed a metastore some times, before or after one more change."""
    real, left = Connections.write, itertools.count(writes, -1)

    def write(self: Connections, *arguments: Any, **options: Any) -> None:
        number = next(left)
        if number > 0 or (number == 0 and not before):
            real(self, *arguments, **options)
        if number <= 0:
            raise Unreachable("killed here")

    with monkeypatch.context() as patch:
        patch.setattr(Connections, "write", write)
        yield
