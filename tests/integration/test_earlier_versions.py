"""Dumps, journals and replicas that earlier versions wrote: loaded, gone on with and undone by this one."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from hive_replication.connect import Connection, connect
from hive_replication.dump.command import repl_dump
from hive_replication.errors import Refused
from hive_replication.load.command import repl_load
from hive_replication.load.replica.state import replica_state
from hive_replication.load.report import LoadReport
from hive_replication.load.undo.undo import release, undo
from hive_replication.metastore.client import Metastore
from hive_replication.statements import ReplDump, ReplLoad
from resources.embedded.cluster import Cluster, Side
from resources.embedded.policy import policy
from tests.earlier import VERSIONS, Recorded
from tests.fixtures.record import Recorder
from tests.fixtures.record_replica import snapshot

pytestmark = pytest.mark.servers
LAYOUTS = ["tree", "packed"]


class Earlier:
    """What a version recorded, under the name of a database that nobody else has."""

    def __init__(self, connection: Connection, recorded: Recorded, database: str) -> None:
        self.connection, self.recorded, self.value, self.database = connection, recorded, recorded.value, database
        self.source, self.target = connection.source, connection.target

    def dumped(self, name: str) -> str:
        """Writes a dump; its directory."""
        dump = self.value["dumps"][name]
        self.recorded.write(self.connection.store.storage, dump["files"])
        return self.recorded.text(dump["directory"])

    def source_files(self) -> None:
        """What the dumps point at."""
        for files in (self.value.get("source", {}).get("files", {}), self.value["later"]):
            self.recorded.write(self.source.storage, files)

    def load(self, directory: str) -> LoadReport:
        report = repl_load(self.target, ReplLoad(directory), self.connection.store, self.connection.copier)
        assert report.held == ()
        return report

    def then(self, name: str, *, ids: bool = True) -> dict[str, object]:
        """What readers saw of the replica."""
        return self.recorded.picture(self.value["replica"][name], ids=ids)

    def now(self, *, ids: bool = True) -> dict[str, object]:
        return self.recorded.picture(snapshot(self.target, self.database), ids=ids)


def earlier(cluster: Cluster, name: str, version: str, database: str, source: str, target: str) -> Earlier:
    # The policy as it was recorded: of an interrupted dump it is a part of what was asked for.
    connection = connect(policy(cluster, {database: database} if name == "acid" else {"x": "x"}, source, target))
    names = {
        "database": database,
        "source": cluster.side(source).hdfs,
        "target": cluster.side(target).hdfs,
        "identity": connection.source.identity,
    }
    return Earlier(connection, Recorded.read(version, name, **names), database)


@pytest.fixture(params=VERSIONS)
def replica(cluster: Cluster, unique: str, request: pytest.FixtureRequest) -> Iterator[Earlier]:
    made = earlier(cluster, "replica", request.param, unique, "source", "target")
    yield made
    Recorder(made.source.metastore, made.source.storage, unique).drop()


@pytest.fixture(params=VERSIONS)
def acid(cluster: Cluster, source4: Side, target4: Side, unique: str, request: pytest.FixtureRequest) -> Earlier:
    return earlier(cluster, "acid", request.param, unique, source4.name, target4.name)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_dumps_are_loaded(replica: Earlier, layout: str) -> None:
    replica.source_files()
    replica.load(replica.dumped(f"bootstrap {layout}"))
    assert replica.now() == replica.then("bootstrap") != {}
    replica.load(replica.dumped(f"window {layout}"))
    assert replica.now() == replica.then("window") != replica.then("bootstrap")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_interrupted_dump_is_gone_on_with(replica: Earlier, layout: str) -> None:
    """Notes are of event ids of the log that they were made of: those of today's stand for them."""
    replica.recorded.restore(replica.source, replica.value["source"])
    found = replica.value["interrupted"][layout]
    now = replica.source.metastore.current_event_id()
    files = {uri: _noted(data, now, replica.source.reach(now)[1]) for uri, data in found["files"].items()}
    replica.recorded.write(replica.connection.store.storage, files)
    dump = repl_dump(replica.source, ReplDump(replica.database), replica.connection.store)
    assert dump.directory == replica.recorded.text(found["directory"])
    replica.load(dump.directory)
    assert replica.now(ids=False) == replica.then("bootstrap", ids=False)


def _noted(data: str | list[str], evid: int, message_hash: str) -> str | list[str]:
    if isinstance(data, str) and data.startswith('{"evid"'):
        note = json.loads(data)
        reads = {table: [evid, evid] for table in note["reads"]}
        return json.dumps({**note, "evid": evid, "hash": message_hash, "reads": reads})
    return data


def test_an_interrupted_load_is_gone_on_with(replica: Earlier) -> None:
    replica.source_files()
    replica.recorded.restore(replica.target, replica.value["replica"]["half"])
    assert replica.now() == replica.then("half") != replica.then("window")
    report = replica.load(replica.dumped("window packed"))
    assert 0 < sum(report.applied.values()) < len(replica.value["dumps"]["window tree"]["files"])
    assert replica.now() == replica.then("window")


def test_a_load_is_undone_and_done_again(replica: Earlier) -> None:
    replica.recorded.restore(replica.target, replica.value["replica"]["window"])
    done = undo(replica.target, replica.database, None, int(_bootstrap(replica)))
    assert {"RenameTable", "CreateTable", "DropTable", "DropPartitions"} <= {step.kind for step in done.steps}
    assert replica.now() == replica.then("bootstrap")
    release(replica.target, replica.database)
    replica.source_files()
    replica.load(replica.dumped("window tree"))
    assert replica.now() == replica.then("window")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_dumps_of_transactions_are_loaded(acid: Earlier, layout: str) -> None:
    """And a journal tells that a commit cannot be undone."""
    acid.source_files()
    acid.load(acid.dumped(f"bootstrap {layout}"))
    acid.load(acid.dumped(f"window {layout}"))
    assert _contents(acid.target.metastore, acid) == acid.value["expected"]
    location = str(getattr(acid.target.metastore.database(acid.database), "locationUri", ""))
    acid.target.storage.delete(f"{location}/.repl/journal", recursive=True)
    files = acid.value["replica"]["window"]["files"]
    acid.recorded.write(acid.target.storage, {uri: data for uri, data in files.items() if "/.repl/journal/" in uri})
    with pytest.raises(Refused, match="had transactions committed"):
        undo(acid.target, acid.database, None, int(_bootstrap(acid)))


def _bootstrap(one: Earlier) -> str:
    """Event id of the bootstrap."""
    journal = one.value["replica"]["window"]["files"]
    evid = min(int(uri.split("/.repl/journal/")[1].split("-")[0]) for uri in journal if "/.repl/journal/" in uri)
    assert (replica_state(one.target.metastore.database(one.database)).applied or 0) > evid
    return str(evid)


def _contents(metastore: Metastore, one: Earlier) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for table in metastore.tables(one.database, "abp"):
        place = f"{table.sd.location}/"
        files = one.target.storage.files(place.rstrip("/"))
        found[table.tableName] = {file.uri.removeprefix(place): one.target.storage.read(file.uri).decode() for file in files}
    return found
