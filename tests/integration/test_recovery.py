"""Gaps on real servers: holes and purges of the log, a restored source, a restored target; found before anything is applied."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pytest

from hive_replication.connect import Connection, connect
from hive_replication.copy.tasks import Copier, CopyFailure, CopyResult, CopyTask
from hive_replication.dump.command import repl_dump
from hive_replication.errors import MissingEvents, Refused
from hive_replication.load.command import repl_load
from hive_replication.load.replica.state import replica_state
from hive_replication.recover import Recovery, dump_recovery, find_gap, recover, require_history
from hive_replication.statements import ReplDump, ReplLoad
from hive_replication.verify import compare_database
from resources.embedded.cluster import Cluster
from resources.embedded.policy import policy
from resources.embedded.postgresql import Postgresql
from tests.faults import Killed
from tests.origin import Origin

pytestmark = pytest.mark.servers

DATABASE = "gaps"
#: Their metastores are ours; HDFS is that of all tests.
SIDES = ("source-gaps", "target-gaps")


@dataclass
class DyingCopier:
    """Copies some files, then the process ends."""

    copier: Copier
    left: int

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyResult | CopyFailure]:
        for task in tasks:
            if self.left == 0:
                raise Killed
            self.left -= 1
            yield from self.copier.copy([task])


@dataclass
class World:
    """Metastores of our own, a source database, a replica of it, and backups of both metastores from the beginning.

    ``bootstrap`` is the dump that the replica began with.
    """

    cluster: Cluster
    connection: Connection
    origin: Origin
    replica: str
    bootstrap: str = ""

    @classmethod
    def of(cls, cluster: Cluster, replica: str) -> World:
        connection = connect(policy(cluster, {DATABASE: replica}, *SIDES))
        return cls(cluster, connection, Origin(connection, DATABASE), replica)

    def stopped(self, name: str, meanwhile: Callable[[Postgresql], object]) -> None:
        """Does something to a metastore's own database while it is down."""
        self.cluster.down([f"{name}.metastore"])
        meanwhile(self.cluster.database(name))
        self.cluster.up([name])

    def restore(self, name: str) -> None:
        """Puts back the backup of a metastore; its storage stays as it is."""

        self.stopped(name, lambda database: _copy(database, f"{name}-backup", name))

    @property
    def applied(self) -> int:
        return replica_state(self.connection.target.metastore.database(self.replica)).applied or 0

    def dump(self, after: int | None) -> str:
        return repl_dump(self.connection.source, ReplDump(DATABASE, None, after), self.connection.store).directory

    def load(self, directory: str) -> None:
        connection = self.connection
        report = repl_load(connection.target, ReplLoad(directory, self.replica), connection.store, connection.copier)
        assert report.held == ()

    def replicate(self) -> None:
        self.load(self.dump(self.applied or None))

    def recover(self, copier: Copier | None = None, *, dry_run: bool = False) -> Recovery:
        found = recover(self.connection, DATABASE, dry_run=dry_run, copier=copier)
        assert found is not None
        return found

    def recover_and_go_on(self) -> Recovery:
        """A recovery, after which nothing differs, nothing is left to recover from, and events are applied as ever."""
        found = self.recover()
        assert found.load is not None
        assert found.dump is not None
        assert found.load.held == ()
        assert self.applied == found.dump.last_evid
        self.assert_equal()
        connection = self.connection
        assert find_gap(connection.source, connection.target, DATABASE) is None
        self.origin.insert("plain", "7\n")
        self.origin.insert("same", "7\n", "1")
        self.origin.insert("same", "8\n", "1")
        self.replicate()
        self.assert_equal()
        return found

    def assert_equal(self) -> None:
        compared = list(compare_database(self.connection.source, self.connection.target, DATABASE))
        assert {found.table: found.differences for found in compared if found.differences} == {}
        assert len(compared) >= 3

    def refuses(self, directory: str, match: str) -> None:
        """A load is refused, and changes nothing."""
        events = self.connection.target.metastore.current_event_id()
        with pytest.raises(Refused, match=match):
            self.load(directory)
        assert self.connection.target.metastore.current_event_id() == events


@pytest.fixture(scope="module")
def world(cluster: Cluster) -> Iterator[World]:
    servers = Cluster(cluster.directory)
    metastores = [f"{name}.metastore" for name in SIDES]
    try:
        servers.up(SIDES)
        made = World.of(servers, DATABASE)
        made.origin.create_database()
        made.origin.create("plain")
        made.origin.create("parts", "1", "2")
        made.origin.create("same", "1")
        for table, day in (("plain", ""), ("parts", "1"), ("parts", "2"), ("same", "1")):
            made.origin.insert(table, "1\n", day)
        made.bootstrap = made.dump(None)
        made.load(made.bootstrap)
        servers.down(metastores)
        for name in SIDES:
            _copy(servers.database(name), name, f"{name}-backup")
        servers.up(SIDES)
        yield made
    finally:
        servers.down(metastores)


def states(found: Recovery) -> dict[str, str]:
    return {table.table: table.state for table in found.tables}


def test_a_restored_source(world: World) -> None:
    """One replica is looked at as soon as the source is back, the other when its log has passed the applied event again."""
    late = World.of(world.cluster, f"{DATABASE}_late")
    world.origin.create("gone")
    for number in range(5):
        world.origin.insert("parts", f"{number}\n", "1")
    world.replicate()
    late.replicate()
    before = world.applied
    world.restore(SIDES[0])
    _state_ids_of_the_other_history_are_overwritten(world, before)
    _passing_the_event_again_is_noticed(late, before)


def _state_ids_of_the_other_history_are_overwritten(world: World, before: int) -> None:
    found = world.recover_and_go_on()
    assert found.gap.kind == "other history"
    assert "ends at event" in found.gap.reason
    assert world.applied < before
    assert states(found) == {"gone": "surplus", "parts": "differs", "plain": "equal", "same": "equal"}
    assert found.load is not None
    assert found.load.bytes_copied == 0  # the partition differs by its state ids only
    world.origin.insert("parts", "5\n", "1")
    world.replicate()
    world.assert_equal()


def _passing_the_event_again_is_noticed(late: World, before: int) -> None:
    """Numbers alone do not tell: the log goes on beyond the applied event, which is another one now."""
    source, target = late.connection.source, late.connection.target
    late.origin.create("other")
    while source.metastore.current_event_id() < before + 2:
        late.origin.insert("other", "3\n")
    assert late.applied == before
    assert late.recover(dry_run=True).dump is None
    with pytest.raises(Refused, match=f"hive-repl recover {DATABASE}"):
        require_history(source, target, DATABASE, before)
    late.refuses(late.dump(before), "another history: hive-repl recover")
    found = late.recover_and_go_on()
    assert found.gap.kind == "other history"
    assert states(found) == {"gone": "surplus", "other": "missing", "parts": "differs", "plain": "differs", "same": "differs"}


def test_a_hole_in_the_log(world: World) -> None:
    """Also: a recovery killed in the middle, and one whose comparison is no longer true."""
    world.replicate()
    first, replica = world.applied, world.connection.target.metastore
    world.origin.insert("plain", "5\n")
    world.origin.insert("parts", "5\n", "1")
    world.origin.insert("parts", "5\n", "2")
    world.stopped(SIDES[0], lambda database: _delete_event(database, first + 2))
    with pytest.raises(MissingEvents, match=f"lacks the events {first + 2} to {first + 2}; hive-repl recover"):
        world.dump(first)
    with pytest.raises(Killed):
        world.recover(DyingCopier(world.connection.copier, 1))
    assert world.applied == first
    gap = find_gap(world.connection.source, world.connection.target, DATABASE)
    assert gap is not None
    _, dump = dump_recovery(world.connection, DATABASE, gap)
    assert replica_state(replica.database(world.replica)).recovery == dump.header.recovery
    world.load(world.bootstrap)  # any other load
    world.refuses(dump.directory, "compared before other loads changed it")
    found = world.recover_and_go_on()
    assert (found.gap.kind, found.gap.applied) == ("missing events", first)
    assert found.dump is not None
    assert found.dump.header.equal == tuple(name for name, state in states(found).items() if state == "equal")
    assert {"plain", "parts"} <= {table.table for table in found.different}
    assert states(found)["same"] == "equal"


@pytest.mark.long
def test_a_restored_target(world: World) -> None:
    """Its metastore is that of the beginning, its storage is newer, and the log has all events: still none is applied."""
    world.origin.create("late", "1")
    world.origin.insert("late", "6\n", "1")
    world.replicate()
    world.origin.insert("plain", "6\n", overwrite=True)
    world.replicate()
    before = world.applied
    world.restore(SIDES[1])
    assert world.applied < before
    connection = world.connection
    with pytest.raises(Refused, match="was loaded up to"):
        require_history(connection.source, connection.target, DATABASE, world.applied)
    world.refuses(world.dump(connection.source.metastore.current_event_id()), "hive-repl recover")
    found = world.recover_and_go_on()
    assert found.gap.kind == "restored target"
    assert states(found)["late"] == "missing"
    assert states(found)["plain"] == "differs"


def test_purged_events(world: World) -> None:
    """The retention of events is shorter than the replica was idle."""
    world.origin.insert("plain", "6\n")
    world.cluster.properties = {SIDES[0]: {"metastore.event.db.listener.timetolive": "1s"}}
    world.stopped(SIDES[0], lambda _: time.sleep(2))
    end = time.monotonic() + 90
    while world.connection.source.metastore.event(world.applied + 1) is not None:
        assert time.monotonic() < end
        time.sleep(0.5)
    with pytest.raises(MissingEvents, match="hive-repl recover"):
        world.dump(world.applied)
    found = world.recover_and_go_on()
    assert found.gap.kind == "missing events"
    assert found.different[0].table == "plain"


def _copy(server: Postgresql, database: str, copy: str) -> None:
    """In the place of a database of that name; nobody may be connected to either."""
    server.run('DROP DATABASE IF EXISTS :"name"', name=copy)
    server.run('CREATE DATABASE :"name" TEMPLATE :"original"', name=copy, original=database)


def _delete_event(server: Postgresql, evid: int) -> None:
    deleted = server.run(f'DELETE FROM "NOTIFICATION_LOG" WHERE "EVENT_ID" = {evid} RETURNING "EVENT_ID"', SIDES[0])
    assert deleted == [str(evid)]
