"""Files with other checksums and blocks than HDFS's own, quotas and snapshots: proof, or one table held with a sentence."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hive_replication.connect import connect
from hive_replication.copy.proof import Crc32c
from hive_replication.doctor import examine
from hive_replication.load.report import LoadReport
from hive_replication.load.retention.sweep import sweep
from hive_replication.operate import repair
from hive_replication.storage import paths
from hive_replication.verify.witness import witness
from resources.embedded.cluster import Cluster, Side
from resources.embedded.policy import policy
from tests.hadoop import administered, hdfs
from tests.origin import Origin
from tests.warehouse import Warehouse

pytestmark = pytest.mark.servers


@pytest.fixture
def origin(cluster: Cluster, unique: str) -> Origin:
    made = Origin(connect(policy(cluster, {unique: unique})), unique)
    made.create_database()
    return made


@pytest.fixture
def put(origin: Origin, source: Side, tmp_path: Path) -> Callable[..., None]:
    """Writes a file of 2.5 MB into a table's directory by Hadoop's client, with settings for it."""
    (tmp_path / "f").write_bytes(os.urandom(2_500_000))

    def into(table: str, **settings: str) -> None:
        options = [word for key, value in settings.items() for word in ("-D", f"dfs.{key.replace('_', '-')}={value}")]
        hdfs(source, "dfs", *options, "-put", str(tmp_path / "f"), path(origin.location(table)))

    return into


def path(uri: str) -> str:
    return paths.split(uri)[2]


def replicate(origin: Origin, after: int | None = None) -> tuple[int, LoadReport]:
    warehouse = Warehouse(origin.connection, None, origin.database)  # type: ignore[arg-type] (no Hive is needed)
    dump = warehouse.dump(after)
    return dump.last_evid, warehouse.load(dump.directory)


def test_other_checksums_are_proven_and_what_cannot_be_written_holds_its_table(
    origin: Origin, put: Callable[..., None], source: Side, target: Side
) -> None:
    for name in ("plain", "sums", "full", "kept"):
        origin.create(name)
    put("plain")
    put("sums", **{"checksum.type": "CRC32", "bytes_per_checksum": "1024", "blocksize": "1048576"})
    put("full")
    origin.insert("kept", "1\n")
    kept = path(origin.location("kept"))
    hdfs(source, "dfsadmin", "-allowSnapshot", kept)
    hdfs(source, "dfs", "-createSnapshot", kept, "s1")
    _move(origin, "kept", "/.snapshot/s1")
    replica = f"{path(target.warehouse)}/{origin.database}.db/full"
    hdfs(target, "dfs", "-mkdir", "-p", replica)
    hdfs(target, "dfsadmin", "-setSpaceQuota", "1m", replica)

    _, report = replicate(origin)
    assert {one.task.object_name.partition(".")[2]: one.proof.algorithm for one in report.copies} == {
        "plain": "MD5-of-0MD5-of-512CRC32C",
        "sums": "CRC32C",
    }
    held = {one.tables: one.reason for one in report.held}
    assert held.keys() == {("full",), ("kept",)}
    assert "the quota is used up (The DiskSpace quota of" in held["full",]
    assert '".snapshot" is a reserved name' in held["kept",]

    hdfs(target, "dfsadmin", "-clrSpaceQuota", replica)
    _move(origin, "kept", "")
    for table in ("full", "kept"):
        assert repair(origin.connection, f"{origin.database}.{table}").left == ()
    assert witness(origin.connection.source, origin.connection.target, origin.database).wrong == []


def test_composite_checksums_in_events_are_proven_by_the_content(cluster: Cluster, origin: Origin) -> None:
    """As an engine or a metastore records them whose configuration has ``dfs.checksum.combine.mode=COMPOSITE_CRC``."""
    storage, metastore = origin.connection.source.storage, origin.connection.source.metastore
    origin.create("right")
    origin.create("wrong")
    last, _ = replicate(origin)
    for table, recorded in (("right", b"1\n"), ("wrong", b"2\n")):
        uri = f"{origin.location(table)}/f"
        storage.write(uri, b"1\n")
        checksum = Crc32c.of([recorded]).hex
        metastore.fire_insert_event(origin.database, table, values=None, files=[uri], checksums=[checksum], replace=False)
    _, report = replicate(origin, last)
    (copied,) = report.copies
    assert (copied.proof.algorithm, copied.proof.value, copied.proof.recorded) == ("CRC32C", Crc32c.of([b"1\n"]).hex, True)
    (held,) = report.held
    assert held.tables == ("wrong",)
    assert "is another version (CRC32C" in held.reason


def _move(origin: Origin, table: str, to: str) -> None:
    """Makes a table external, at a place below its directory."""
    metastore = origin.connection.source.metastore
    found = metastore.table(origin.database, table)
    assert found is not None
    found.tableType, found.parameters = "EXTERNAL_TABLE", {**(found.parameters or {}), "EXTERNAL": "TRUE"}
    found.sd.location = found.sd.location.removesuffix("/.snapshot/s1") + to
    metastore.alter_table(origin.database, table, found)


def test_doctor_tells_of_quotas_snapshots_and_erasure_coding(origin: Origin, source: Side, target: Side) -> None:
    origin.create("coded")
    origin.create("kept")
    origin.insert("kept", "1\n")
    replicate(origin)
    replica, policy = f"{path(target.warehouse)}/{origin.database}.db", {"ecpolicy": "XOR-2-1-1024k"}
    for side, table in ((source, path(origin.location("coded"))), (target, f"{replica}/coded")):
        administered(side, "/", "ENABLEECPOLICY", **policy)
        administered(side, table, "SETECPOLICY", **policy)
    administered(target, f"{replica}/kept", "ALLOWSNAPSHOT")
    administered(target, replica, "SETQUOTA", namespacequota="3", storagespacequota=str(1 << 40))

    found = list(examine(origin.connection))
    for side in ("source", "target"):
        (defaults,) = (one for one in found if (one.side, one.check) == (side, "HDFS's defaults"))
        assert "dfs.bytes-per-checksum=512, dfs.checksum.type=CRC32C, dfs.checksum.combine.mode=MD5MD5CRC" in defaults.found
        assert defaults.verdict == "ok"
    kinds = [one for one in found if one.check == f"kind of directories of {origin.database}"]
    assert [(one.side, one.verdict) for one in kinds] == [("source", "ok"), ("target", "warning"), ("target", "warning")]
    assert (
        kinds[0].found == f"erasure-coded by XOR-2-1-1024k: {path(origin.location('coded'))}; proven by the CRC32C of every byte"
    )
    assert kinds[1].advice.endswith(f"hdfs ec -setPolicy -replicate -path {replica}/coded")
    assert f"hdfs dfsadmin -disallowSnapshot {replica}/kept" in kinds[2].advice
    names, space = (one for one in found if one.check.startswith("quota of "))
    assert names.verdict == "error"
    assert names.found.endswith(" of 3 files and directories")
    assert names.advice.endswith(f"hdfs dfsadmin -setQuota <number> {replica}")
    assert space.verdict == "ok"


def test_a_replica_with_snapshots_is_left_by_retention_and_nothing_else(origin: Origin, target: Side) -> None:
    for name in ("kept", "gone"):
        origin.create(name)
        origin.insert(name, "1\n")
    last, _ = replicate(origin)
    replica = f"{path(target.warehouse)}/{origin.database}.db"
    administered(target, f"{replica}/kept", "ALLOWSNAPSHOT")
    administered(target, f"{replica}/kept", "CREATESNAPSHOT", snapshotname="s1")
    for name in ("kept", "gone"):
        origin.connection.source.metastore.drop_table(origin.database, name, delete_data=True)
    replicate(origin, last)
    impatient = origin.connection.target.policy.model_copy(update={"grace_seconds": 0, "retention_seconds": 0})
    side = replace(origin.connection.target, policy=impatient)
    for _ in range(2):  # it is known of, and tried again
        found = sweep(side, origin.database)
        assert [one.path.rpartition("/")[2] for one in found if one.problem] == ["kept"]
        assert "snapshot" in str([one.problem for one in found])
    assert not side.storage.exists(f"{target.warehouse}/{origin.database}.db/gone")
    hdfs(target, "dfs", "-deleteSnapshot", f"{replica}/kept", "s1")
    assert not [one for one in sweep(side, origin.database) if one.problem]
    assert not side.storage.exists(f"{target.warehouse}/{origin.database}.db/kept")
