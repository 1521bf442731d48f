"""Copies and listings by a real Spark standalone cluster: as in local threads, also when executors get lost, come and go."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hive_replication.connect import Connection
from hive_replication.copy.tasks import CopyFailure, CopyResult, CopyTask
from hive_replication.drift.directories import CLOCKS_APART
from hive_replication.drift.findings import Drifted
from hive_replication.drift.scan import DriftScan
from hive_replication.dump.listing import Lister
from hive_replication.errors import Refused
from hive_replication.events.files import FileRef
from hive_replication.parallel import ThresholdCalls
from hive_replication.policy.checks import Witness
from hive_replication.verify import TableComparison, compare_database
from hive_replication.verify.witness import Round, witness
from resources.embedded.java import QUICK
from resources.spark_calls import SparkCalls
from resources.spark_copier import SparkCopier
from tests.dagster_dev import wait_for
from tests.origin import Origin
from tests.spark_cluster import SparkCluster, events, packed_environment
from tests.warehouse import Warehouse

pytestmark = pytest.mark.servers
KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture(scope="module")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    cluster = SparkCluster.start(tmp_path_factory.mktemp("spark"))
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def settings(spark_cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """As a policy's ``spark`` has them."""
    archive = packed_environment(tmp_path_factory.mktemp("packed"))
    return {
        "spark.master": spark_cluster.master,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.executor.extraJavaOptions": " ".join(QUICK),
        "spark.driver.extraJavaOptions": " ".join(QUICK),
        "spark.archives": f"{archive}#environment",
        "spark.pyspark.python": "./environment/bin/python",
    }


class Files:
    """Source files, each in a Spark task of its own, and their replicas."""

    def __init__(self, connection: Connection, name: str) -> None:
        self.source, self.target = connection.source.storage, connection.target.storage
        policy = connection.source.policy
        self.bases = [f"{side.roots[0].uri}{name}" for side in (policy.source, policy.target)]
        self.contents: dict[str, bytes] = {}

    def put(self, sizes: Sequence[int]) -> list[CopyTask]:
        tasks: list[CopyTask] = []
        for size in sizes:
            name = f"t/{len(self.contents)}"
            self.contents[name] = os.urandom(size)
            uri = f"{self.bases[0]}/{name}"
            self.source.write(uri, self.contents[name])
            checksum = self.source.checksum(uri)
            assert checksum is not None
            file = FileRef(uri, checksum.value)
            tasks.append(CopyTask(file, f"{self.bases[1]}/{name}", 1, "db.t", 256 * MIB))  # fills its pack, as far as is known
        return tasks

    def assert_copied(self, tasks: Sequence[CopyTask], answers: Sequence[CopyResult | CopyFailure]) -> None:
        """One proven answer to each task; as many files, each the same, and none beside them but hidden ones."""
        assert [a for a in answers if isinstance(a, CopyFailure)] == []
        assert sorted(a.task.target for a in answers) == sorted(task.target for task in tasks)
        proofs = {(a.task.file.checksum, a.proof.value, a.proof.recorded) for a in answers if isinstance(a, CopyResult)}
        assert proofs == {(task.file.checksum, task.file.checksum, True) for task in tasks}
        found = {status.uri: self.target.read(status.uri) for status in self.target.files(self.bases[1])}
        assert found == {f"{self.bases[1]}/{name}": content for name, content in self.contents.items()}


@pytest.fixture
def files(connection: Connection, unique: str) -> Iterator[Files]:
    files = Files(connection, unique)
    yield files
    for storage, base in zip((files.source, files.target), files.bases, strict=True):
        storage.delete(base, recursive=True)


@contextmanager
def session(settings: Mapping[str, str]) -> Iterator[SparkCopier]:
    from pyspark import SparkContext

    if (other := SparkContext._active_spark_context) is not None:
        other.stop()  # of tests before, in this process: it would be taken again, with its own settings
    copier = SparkCopier.from_settings(settings)
    yield copier
    copier.spark_context().stop()


@pytest.mark.long
def test_executors_act_as_the_account_of_the_driver(settings: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "repl")
    with session(settings) as copier:
        accounts = copier.spark_context().parallelize(range(2), 2).map(lambda _: os.environ.get("HADOOP_USER_NAME")).collect()
    assert accounts == ["repl", "repl"]


def assert_lacks_the_project(environment: Path, folder: Path) -> None:
    """Else it would be no wonder that executors find the code."""
    asked = [environment / "bin/python", "-c", "import pydantic, hive_replication"]
    found = subprocess.run(asked, env={}, cwd=folder, capture_output=True, text=True, check=False)
    assert "No module named 'hive_replication'" in found.stderr


@pytest.mark.long
def test_executors_get_the_code_from_the_driver_and_a_lost_one_loses_nothing(
    spark_cluster: SparkCluster, settings: dict[str, str], files: Files, tmp_path: Path
) -> None:
    assert_lacks_the_project(Path(settings["spark.archives"]).parent / "environment", tmp_path)
    tasks = files.put([64 * KIB] * 12)
    with session(settings) as spark:
        context = spark.spark_context()
        (where,) = context.parallelize([0], 1).map(lambda _: str(__import__("hive_replication").__file__)).collect()
        assert "hive_replication.zip" in where
        copier = spark.copier(files.source, files.target, description="Repl#test")
        answers: list[CopyResult | CopyFailure] = []
        lost: list[int] = []
        for answer in copier.copy(tasks):
            answers.append(answer)
            if not lost and (executors := spark_cluster.executors()):
                lost.append(len(answers))
                executors[0].kill()
        left = context.statusTracker().getJobIdsForGroup("Repl#test")
    assert lost
    assert lost[0] < len(tasks)
    assert len(left) == 1  # Spark repeated the tasks, nobody the job.
    files.assert_copied(tasks, answers)


@pytest.mark.long
def test_executors_come_and_go_and_a_speculative_twin_doubles_nothing(
    settings: dict[str, str], files: Files, tmp_path: Path
) -> None:
    log = tmp_path / "events"
    log.mkdir()
    settings = settings | {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": log.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.initialExecutors": "0",
        "spark.dynamicAllocation.maxExecutors": "2",
        "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
        "spark.dynamicAllocation.executorIdleTimeout": "5s",
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.multiplier": "1.1",
    }
    with session(settings) as spark:
        spark.spark_context()
        copier = spark.copier(files.source, files.target, description="Repl#test", bandwidth=4 * MIB)
        tasks: list[CopyTask] = []
        answers: list[CopyResult | CopyFailure] = []
        while not twins(log) and len(tasks) < 8:
            # Each of two tasks reads 2 MiB a second, so that an executor is free when the other has long to go.
            more = files.put([2 * MIB, 16 * MIB])
            tasks += more
            answers += copier.copy(more)
        wait_for("idle executors go", lambda: len(list(events(log, "SparkListenerExecutorRemoved"))) >= 2, seconds=60)
    assert twins(log)
    files.assert_copied(tasks, answers)
    assert len(list(events(log, "SparkListenerExecutorAdded"))) >= 2  # of none at the beginning


def twins(log: Path) -> list[dict[str, Any]]:
    return [event for event in events(log, "SparkListenerTaskStart") if event["Task Info"]["Speculative"]]


def test_directories_are_read_in_executors(
    settings: dict[str, str], connection: Connection, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the witness, ``verify``, a scan for drift and a dump, all with the results of threads."""
    every = Witness(checksums=1_000)  # what two rounds find is the same only where nothing is left to chance
    warehouse = Warehouse(connection, None, unique).with_policy(witness=every)  # type: ignore[arg-type]
    connection, days = warehouse.connection, [str(day) for day in range(70)]
    origin = Origin(connection, unique)
    origin.create_database()
    origin.create("parts", *days)
    for day in days[:3]:
        origin.insert("parts", "1\n", day)
    warehouse.replicate()
    time.sleep(CLOCKS_APART + 0.1)  # what is copied at once is compared
    side = connection.target
    for day, text in (("1", b"22\n"), ("2", b"2\n")):  # longer than before, and as long
        (part,) = side.metastore.partitions(unique, "parts", [f"ds={day}"])
        (replica,) = side.storage.files(str(part.sd.location))
        side.storage.write(replica.uri, text)
    here, compared, drifted, dumped = _read(connection, warehouse)
    with session(settings) as spark:
        executors = SparkCalls(spark, 4, "Repl#test directories")
        for storage in (connection.source.storage, connection.target.storage):
            monkeypatch.setattr(storage, "many", ThresholdCalls(storage.threads, lambda: executors, most=0))
        there, *others = _read(connection, warehouse)
        assert len(spark.spark_context().statusTracker().getJobIdsForGroup("Repl#test directories")) >= 5
        with pytest.raises(Refused, match="lies outside the storage roots of the policy"):
            list(executors.map(Lister(connection.source.storage).files, ["file:///nowhere/x"] * 2))
    assert others == [compared, drifted, dumped]
    assert {(one.table, one.partition) for one in there.wrong} == {("parts", "ds=1"), ("parts", "ds=2")}
    assert {one.text for one in there.wrong} == {one.text for one in here.wrong}
    assert (there.counts, there.digests) == (here.counts, here.digests)
    assert there.counts.directories == 70
    assert compared[0].repairs == ("ds=1", "ds=2")
    assert [one.partition for one in drifted] == ["ds=1"]  # the other was written after its source, as a copy is
    assert sum(len(files) for files in dumped.values()) == 3


def _read(
    connection: Connection, warehouse: Warehouse
) -> tuple[Round, list[TableComparison], set[Drifted], dict[str, tuple[FileRef, ...]]]:
    """What all that lists many directories finds."""
    sides, database = (connection.source, connection.target), warehouse.database
    scanned = DriftScan(*sides, database, settle=0.1).table("parts")
    assert scanned is not None
    partitions = connection.store.open(warehouse.dump().directory).partitions("parts")
    files = {one.name: one.files for one in partitions}
    return witness(*sides, database), list(compare_database(*sides, database)), set(scanned.drifted), files
