"""Scans for drift that list what differences of HDFS snapshots name, on real servers: never less is found than by listing all."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import dagster as dg
import hdfs_native
import pytest
import yaml

from hive_replication import failover
from hive_replication.cli.main import run
from hive_replication.connect import Connection
from hive_replication.doctor import examine
from hive_replication.drift import DriftScan
from hive_replication.drift import snapshots as our_snapshots
from hive_replication.drift.baselines import Memory
from hive_replication.drift.directories import CLOCKS_APART
from hive_replication.policy.checks import Drift
from hive_replication.storage import Storage, paths
from hive_replication.storage.hdfs_backend import HdfsBackend
from hive_replication.storage.hdfs_snapshots import create_snapshot, since_snapshot
from hive_replication.storage.webhdfs import WebHdfs
from hive_replication.verify.listing_digest import observe
from repl_assets.catalog.keys import Names
from resources.embedded.cluster import Side
from sensors.drift import tick
from tests.drifting import Drifting
from tests.faults import Killed
from tests.hadoop import administered, hdfs

pytestmark = pytest.mark.servers

DAYS = ("1", "2", "3", "4", "5", "6", "7")
WITH = Drift(snapshots=True)


@pytest.fixture(scope="module")
def parted(connection: Connection, source: Side) -> Drifting:
    """External tables in a database's directory of which snapshots may be made."""
    made = Drifting.of(connection, drift=WITH)
    for table, days in (("parts", DAYS), ("plain", ())):
        external(made, table, *days)
        for day in days or ("",):
            made.origin.insert(table, f"{day or 1}\n", day)
    time.sleep(CLOCKS_APART + 0.1)  # what is copied at once is compared
    made.replica.replicate()
    allow(source, paths.parent(made.origin.location("plain")))
    return made


def external(drifting: Drifting, name: str, *days: str) -> None:
    drifting.origin.create(name, *days)
    metastore = drifting.connection.source.metastore
    found = metastore.table(drifting.origin.database, name)
    assert found is not None
    found.tableType, found.parameters = "EXTERNAL_TABLE", {**(found.parameters or {}), "EXTERNAL": "TRUE"}
    metastore.alter_table(drifting.origin.database, name, found)


def allow(side: Side, uri: str, op: str = "ALLOWSNAPSHOT") -> None:
    administered(side, paths.split(uri)[2], op)


def ours(drifting: Drifting, table: str = "") -> list[str]:
    """Snapshots of the database's directory, or a table's."""
    location = drifting.origin.location(table or "plain")
    place = location if table else paths.parent(location)
    return [paths.name(one.uri) for one in drifting.connection.source.storage.ls(f"{place}/.snapshot")]


@dataclass
class Round:
    """A round of the sensor, or ``hive-repl drift <db>``."""

    drifting: Drifting
    drift: Drift = WITH

    def __post_init__(self) -> None:
        sides = self.drifting.connection.source, self.drifting.connection.target
        policy = sides[0].policy.model_copy(update={"drift": self.drift})
        self.scan = DriftScan(replace(sides[0], policy=policy), sides[1], self.drifting.origin.database, 0.1)
        self.found = {name: one for name in self.scan.names() if (one := self.scan.table(name))}
        self.scan.finish()
        self.snapshots = self.scan.snapshots.created, self.scan.snapshots.deleted

    def drifted(self, table: str = "parts") -> dict[str, str]:
        return {one.partition: one.reason for one in self.found[table].drifted}

    def repaired(self) -> None:
        """Repairs what was found; when it was listed once more, nothing is."""
        assert [why for one in self.found.values() for why in self.drifting.repair(one)] == []
        self.drifting.replica.assert_equal()
        assert Round(self.drifting).drifted() == {}
        quiet = Round(self.drifting)
        assert (quiet.found["parts"].spared, quiet.found["parts"].listings, quiet.snapshots) == (len(DAYS), 0, (1, 1))


def test_all_changes_are_found_and_nothing_else_is_listed(parted: Drifting) -> None:
    storage, at = parted.connection.source.storage, lambda day: parted.origin.location("parts", day)
    first = Round(parted)
    assert (first.found["parts"].spared, first.found["parts"].listings, first.snapshots) == (0, 14, (1, 0))
    assert first.scan.told(first.found.values()) == [
        "snapshots: 1 made, 0 deleted; 0 of 8 directories not listed",
        f"all directories of 2 tables listed: no snapshot of {paths.parent(at(''))} is left of an earlier scan",
    ]
    quiet = Round(parted)
    assert (quiet.found["parts"].spared, quiet.found["plain"].spared, quiet.snapshots) == (7, 1, (1, 1))
    parted.put("parts", "1", "part-0")
    storage.delete(parted.file("parts", "2"))
    storage.write(parted.file("parts", "3"), b"5\n")  # of the same size
    file = parted.file("parts", "4")
    storage.rename(file, f"{file}.renamed")
    for before, after in ((at("5"), f"{at('5')}x"), (at("6"), at("5")), (f"{at('5')}x", at("6"))):
        storage.rename(before, after)
    found = Round(parted)
    changes = {"ds=1": "1 new", "ds=2": "1 gone", "ds=3": "1 changed", "ds=4": "1 new, 1 gone", "ds=5": "1 new, 1 gone"}
    assert found.drifted() == {**changes, "ds=6": "1 new, 1 gone"}
    assert (found.found["parts"].spared, found.found["plain"].spared) == (1, 1)
    found.repaired()


def test_what_others_do_to_directories(parted: Drifting) -> None:
    """Renamed away and made anew, emptied, and a table that is renamed and made anew of its partitions."""
    storage, at = parted.connection.source.storage, lambda day: parted.origin.location("parts", day)
    storage.rename(at("1"), f"{at('1')}-old")
    storage.write(f"{at('1')}/new", b"8\n")
    storage.delete(at("6"), recursive=True)
    storage.mkdirs(at("6"))
    table = parted.origin.location("parts")
    found = Round(parted)
    assert (found.drifted().keys(), found.found["parts"].spared) == ({"ds=1", "ds=6"}, 5)
    found.repaired()
    storage.rename(table, f"{table}-old")
    storage.mkdirs(table)
    for day in DAYS:
        storage.rename(f"{table}-old/ds={day}", f"{table}/ds={day}")
    storage.write(parted.file("parts", "3"), b"6\n")
    found = Round(parted)
    assert (found.drifted(), found.found["parts"].spared) == ({"ds=3": "1 changed"}, 0)
    found.repaired()


def test_random_changes_are_always_named(parted: Drifting, unique: str, source: Side, seed: int) -> None:
    """Whatever happens to files and directories: what lists otherwise than before is named by the difference."""
    storage = parted.connection.source.storage
    root = f"{source.hdfs}tmp/{unique}"
    chance = random.Random(seed)
    names = [f"d{one}" for one in range(4)] + [f"d{one}/e{two}" for one in range(2) for two in range(2)]
    for name in names:
        storage.write(f"{root}/{name}/f", b"0")
    allow(source, root)
    for number in range(8):
        storage.about_webhdfs(root, lambda web, path, name=f"s{number}": create_snapshot(web, path, name))
        before = {name: observe(storage, f"{root}/{name}", 0.0).digest for name in names}
        for _ in range(chance.randrange(1, 5)):
            change(storage, root, names, chance)
        found = storage.about_webhdfs(root, lambda web, path, name=f"s{number}": since_snapshot(web, path, name))
        assert found is not None
        after = {name: observe(storage, f"{root}/{name}", 0.0).digest for name in names}
        changed = {name for name in names if before[name] != after[name]}
        assert changed <= {name for name in names if found.touches(name)}


def change(storage: Storage, root: str, names: list[str], chance: random.Random) -> None:
    one, other = chance.sample(names, 2)
    kind = chance.choice(("write", "delete", "file", "swap", "drop"))
    if kind == "write":
        storage.write(f"{root}/{one}/{chance.choice('fgh')}", bytes(chance.randrange(1, 4)))
    elif kind == "delete":
        storage.delete(f"{root}/{one}/{chance.choice('fgh')}")
    elif kind == "drop":
        storage.delete(f"{root}/{one}", recursive=True)
    elif kind == "file" and storage.exists(f"{root}/{one}/f") and not storage.exists(f"{root}/{other}/g"):
        storage.rename(f"{root}/{one}/f", f"{root}/{other}/g")
    elif kind == "swap" and not (one + "/").startswith(other + "/") and not (other + "/").startswith(one + "/"):
        for before, after in ((one, "swapped"), (other, one), ("swapped", other)):
            if storage.exists(f"{root}/{before}") and not storage.exists(f"{root}/{after}"):
                storage.rename(f"{root}/{before}", f"{root}/{after}")


def test_what_no_difference_tells_is_listed_in_time(parted: Drifting) -> None:
    """HDFS tells nothing of a file to which somebody appends who opened it before the snapshot."""
    Round(parted)
    root = parted.connection.source.policy.source.roots[0].uri
    with hdfs_native.Client(root.rstrip("/")).append(paths.split(parted.file("parts", "7"))[2]) as writer:
        assert Round(parted).drifted() == {}
        writer.write(b"7\n")
    assert Round(parted).found["parts"].spared == len(DAYS)
    found = Round(parted, Drift(snapshots=True, list_all_every=0))
    assert (found.drifted(), found.found["parts"].spared) == ({"ds=7": "1 changed"}, 0)
    found.repaired()


@pytest.mark.parametrize("step", ["made", "listed", "written", "deleted"])
def test_a_killed_scan_loses_nothing(parted: Drifting, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Round(parted)
    parted.put("parts", "4", f"killed-{step}")
    place: object = Memory if step in ("listed", "written") else our_snapshots
    name = {"made": "create_snapshot", "deleted": "delete_snapshot"}.get(step, "write")
    original = getattr(place, name)

    def killed(*args: object) -> None:
        if step != "listed":
            original(*args)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(place, name, killed)
        with pytest.raises(Killed):
            Round(parted)
    assert len(ours(parted)) == (1 if step == "deleted" else 2)
    found = Round(parted)
    assert (found.drifted(), found.found["parts"].spared, len(ours(parted))) == ({"ds=4": "1 new"}, 6, 1)
    found.repaired()


def test_a_snapshot_that_somebody_deletes_or_renames(parted: Drifting, source: Side) -> None:
    """All is listed again, once."""
    Round(parted)
    place = paths.split(paths.parent(parted.origin.location("plain")))[2]
    for op in ("RENAMESNAPSHOT", "DELETESNAPSHOT"):
        (name,) = ours(parted)
        if op == "DELETESNAPSHOT":
            hdfs(source, "dfs", "-deleteSnapshot", place, name)
        else:
            administered(source, place, op, oldsnapshotname=name, snapshotname="kept")
        parted.put("parts", "5", op)
        found = Round(parted)
        assert (found.drifted(), found.found["parts"].spared) == ({"ds=5": "1 new"}, 0)
        assert "is left of an earlier scan" in found.found["parts"].whole
        found.repaired()
        hdfs(source, "dfs", "-deleteSnapshot", place, "kept") if op == "RENAMESNAPSHOT" else None


def test_directories_without_snapshots_are_listed(connection: Connection, source: Side) -> None:
    """And a directory that Hive deletes with its table has none of ours; those of tables that are gone are deleted."""
    made = Drifting.of(connection, drift=WITH)
    made.origin.create("managed")
    external(made, "own")
    external(made, "never")
    for table in ("managed", "own", "never"):
        made.origin.insert(table, "1\n")
    made.replica.replicate()
    for table in ("managed", "own"):
        allow(source, made.origin.location(table))
    for _ in range(2):
        found = Round(made).found
    assert "Hive could not drop the table" in found["managed"].whole
    assert "allows snapshots to this account" in found["never"].whole
    assert (found["own"].spared, found["own"].whole, len(ours(made, "own")), ours(made, "managed")) == (1, "", 1, [])
    told = {one.verdict: one for one in examine(made.connection) if one.check == f"snapshots of {made.origin.database}"}
    assert told["ok"].found == f"of {paths.split(made.origin.location('own'))[2]}; external tables there: 1"
    assert told["warning"].advice.startswith(f"hdfs dfsadmin -allowSnapshot {paths.split(made.origin.location('never'))[2]}, or")
    place, metastore = made.origin.location("own"), made.connection.source.metastore
    metastore.drop_table(made.origin.database, "own", delete_data=False)
    assert Round(made).snapshots == (0, 1)
    assert made.connection.source.storage.ls(f"{place}/.snapshot") == []


def test_partitions_elsewhere_and_tables_made_anew(parted: Drifting, source: Side, unique: str) -> None:
    """Of a directory outside no difference tells, and what was known of a location does not count for another one."""
    storage, metastore, name = parted.connection.source.storage, parted.connection.source.metastore, parted.origin.database
    (part,) = metastore.partitions(name, "parts", ["ds=2"])
    part.sd.location = f"{source.hdfs}tmp/{unique}/ds=2"
    storage.mkdirs(part.sd.location)
    metastore.alter_partitions(name, "parts", [part])
    before = parted.origin.location("plain")
    metastore.drop_table(name, "plain", delete_data=False)
    storage.delete(before, recursive=True)
    external(parted, "plain")
    parted.origin.insert("plain", "3\n")
    parted.replica.replicate()
    for _ in range(3):
        quiet = Round(parted).found
        assert (quiet["parts"].drifted, quiet["plain"].drifted) == ((), ())
    assert (quiet["parts"].spared, quiet["plain"].spared) == (6, 1)
    for table, day in (("parts", "2"), ("plain", "")):
        parted.put(table, day, "later")
    found = Round(parted)
    assert (found.drifted(), found.drifted("plain"), found.found["parts"].spared) == ({"ds=2": "1 new"}, {"": "1 new"}, 6)
    assert [why for one in found.found.values() for why in parted.repair(one)] == []
    parted.replica.assert_equal()
    (part,) = metastore.partitions(name, "parts", ["ds=2"])
    part.sd.location = f"{parted.origin.location('parts')}/ds=2"
    metastore.alter_partitions(name, "parts", [part])
    parted.replica.replicate()


def test_without_the_setting_snapshots_are_removed(parted: Drifting) -> None:
    Round(parted)
    parted.put("parts", "6", "off")
    found = Round(parted, Drift())
    assert (found.drifted(), found.found["parts"].spared, found.snapshots, ours(parted)) == ({"ds=6": "1 new"}, 0, (0, 1), [])
    assert Round(parted, Drift()).scan.told(found.found.values()) == []
    again = Round(parted)
    assert (again.drifted(), again.found["parts"].spared) == ({"ds=6": "1 new"}, 0)
    again.repaired()


def test_the_sensor_and_the_command(parted: Drifting, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A round of the sensor makes one snapshot, over as many ticks as it takes."""
    Round(parted)
    (before,), drift = ours(parted), Drift(every=100, settle=0.1, budget=0.000001, snapshots=True)
    names, cursor, now = Names.of(parted.connection.source.policy), None, time.time()
    with dg.DagsterInstance.ephemeral() as instance:
        for later, made in enumerate((2, 2, 1)):  # two tables, and the end
            context = dg.build_sensor_context(instance, cursor=cursor)
            assert isinstance(tick(context, parted.connection, names, drift, parted.origin.database, now + later), dg.SkipReason)
            cursor = context.cursor
            assert len(ours(parted)) == made
    assert ours(parted) != [before]
    path = tmp_path / "policy.yaml"
    policy = parted.connection.source.policy.model_dump(mode="json", exclude_defaults=True)
    path.write_text(yaml.safe_dump(policy), encoding="utf-8")
    command = ["drift", parted.origin.database, "--config", str(path)]
    assert run(command) == 0
    assert "snapshots: 1 made, 1 deleted; 8 of 8 directories not listed" in capsys.readouterr().err
    assert run([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["snapshots"], told["tables"][0]["spared"]) == ({"created": 1, "deleted": 1}, 7)


def test_a_failover_deletes_them(connection: Connection, source: Side) -> None:
    made = Drifting.of(connection, drift=WITH)
    external(made, "plain")
    made.origin.insert("plain", "1\n")
    made.replica.replicate()
    allow(source, paths.parent(made.origin.location("plain")))
    Round(made)
    assert len(ours(made)) == 1
    failover.start(made.connection, made.origin.database)
    failover.finish(made.connection, made.origin.database)
    assert ours(made) == []


@pytest.mark.long
def test_the_calls_for_a_thousand_partitions(connection: Connection, source: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files each: what is asked of the source's HDFS, and how many files and directories it lists."""
    made, storage = Drifting.of(connection, drift=WITH), connection.source.storage
    days = [f"{number:04d}" for number in range(1000)]
    made.origin.create("wide", days[0])
    made.origin.add("wide", *days[1:])
    made.replica.replicate()
    root = made.origin.location("wide")
    for side in (connection.source, connection.target):  # empty files, which no DataNode has to take
        places = [part.sd.location for part in side.metastore.partitions(made.origin.database, "wide")]
        files = [f"{place}/{name}" for place in places for name in "ab"]
        list(side.storage.threads.map(lambda uri, side=side: side.storage.create(uri, ()), files))
    allow(source, paths.parent(root))
    asked, listed = Counter[str](), list[str]()

    def counting(place: type, name: str) -> None:
        original = getattr(place, name)

        def count(self: object, path: str, *args: object, **named: object) -> object:
            found = original(self, path, *args, **named)
            of_source = getattr(self, "url", source.hdfs[:-1]) == source.hdfs[:-1]
            if of_source and (path == "/" or f"/{made.origin.database}.db" in path):
                asked[name] += 1
                listed.extend(one.uri for one in found if name != "told")
            return found

        monkeypatch.setattr(place, name, count)

    for place, name in ((HdfsBackend, "walk"), (HdfsBackend, "ls"), (WebHdfs, "told")):
        counting(place, name)

    def counted(drift: Drift, *touched: str) -> tuple[int, int]:
        """Calls, and entries in what they list; files that are written anew have the same content, so nothing has drifted."""
        for day in touched:
            storage.write(f"{root}/ds={day}/a", b"")
        asked.clear()
        listed.clear()
        found = Round(made, drift)
        assert (found.drifted("wide"), found.found["wide"].looked) == ({}, 1000)
        return asked.total(), len(listed)

    counted(WITH)
    # What allows snapshots, ours twice, one made, the difference, one deleted; five directories twice, and the table's.
    assert counted(WITH, *days[:5]) == (6 + 10 + 1, 3 + 20 + 1000)
    counted(WITH)
    assert counted(WITH) == (6, 3)
    assert counted(Drift(), *days[:5]) == (1005 + 1 + 3, 2010 + 1000 + 1)  # and ours is removed
