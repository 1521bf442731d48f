"""The package that executors get, and what becomes of a Spark that does not start. No JVM: a context is stood for."""

from __future__ import annotations

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.copy.preserve import Place, Preserve
from hive_replication.copy.tasks import CopyFailure, CopyResult, CopyTask, Proof
from hive_replication.errors import BadRequest, ReplicationError
from hive_replication.events.files import FileRef
from hive_replication.policy import Root
from hive_replication.storage import Storage
from hive_replication.storage.access import Access
from resources import spark_copier
from resources.spark_calls import SparkCalls
from resources.spark_copier import PolicySpark, SparkCopier
from resources.spark_package import ship

TASK = CopyTask(FileRef("file:///x"), "file:///y", 1, "t", 1)


class Context:
    """Takes a file of each name once, as Spark does."""

    master = "spark://somewhere:7077"

    def __init__(self) -> None:
        self.applicationId, self.uiWebUrl, self.defaultParallelism = "app-1", "", 2
        self.files: list[str] = []

    def addPyFile(self, path: str) -> None:  # noqa: N802 (Spark's name)
        time.sleep(0.05)
        if any(Path(path).name == Path(one).name for one in self.files):
            raise ValueError("File hive_replication.zip was already registered with a different path")
        self.files.append(path)

    def parallelize(self, *_: object) -> object:
        raise ValueError("the context was stopped\nat org.apache.spark.SparkContext")


def test_several_tables_at_once_ship_the_package_once() -> None:
    context: Any = Context()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: ship(context), range(8)))
    assert len(context.files) == 1
    assert Path(context.files[0]).is_file()


@pytest.fixture
def copier(monkeypatch: pytest.MonkeyPatch) -> SparkCopier:
    monkeypatch.setattr(spark_copier, "has_java", lambda: True)
    return SparkCopier.from_settings({"spark.master": Context.master})


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (RuntimeError("Java gateway process exited\nat org.apache"), "Spark does not start: Java gateway process exited$"),
        (BadRequest("the environment has no SECRET"), "^the environment has no SECRET$"),
    ],
)
def test_a_spark_that_does_not_start_is_an_error_of_replication(
    copier: SparkCopier, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, raised: str
) -> None:
    def fail(_: PolicySpark) -> None:
        raise error

    monkeypatch.setattr(PolicySpark, "_init_session", fail)
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    with pytest.raises(ReplicationError, match=raised):
        list(SparkCalls(copier, 1, "Repl#db").map(str, [1]))
    with pytest.raises(ReplicationError, match=raised):
        list(copier.copier(storage, storage, description="Repl#db").copy([TASK]))


def test_without_java_all_settings_that_lead_to_spark_are_named(copier: SparkCopier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_copier, "has_java", lambda: False)
    with pytest.raises(BadRequest, match=r"driver_max_files and driver_max_bytes, .* driver_max_directories"):
        list(SparkCalls(copier, 1, "Repl#db").map(str, [1]))


def test_a_context_that_takes_no_job_is_an_error_of_replication(
    copier: SparkCopier, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(PolicySpark, "spark_context", Context())
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    with pytest.raises(ReplicationError, match=r"the Spark job failed: the context was stopped$"):
        list(copier.copier(storage, storage, description="Repl#db").copy([TASK]))


class Elsewhere(Context):
    """Its one executor has copies of what it gets, and the driver those of its answers."""

    def __init__(self) -> None:
        super().__init__()
        self._told = SimpleNamespace(value=[], add=self._add)

    def _add(self, answers: list[CopyResult | CopyFailure]) -> None:
        self._told.value = pickle.loads(pickle.dumps(answers))

    def parallelize(self, partitions: list[list[list[CopyTask]]], _: int) -> Any:  # type: ignore[override]
        there = pickle.loads(pickle.dumps(partitions))
        return SimpleNamespace(foreachPartition=lambda do: do(there))  # pyright: ignore[reportUnknownLambdaType]

    def accumulator(self, *_: object) -> Any:
        return self._told

    def setJobGroup(self, *_: object, **__: object) -> None:  # noqa: N802 (Spark's name)
        pass


def test_what_executors_cannot_preserve_is_told(copier: SparkCopier, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A load by Spark said nothing of groups that its account may not give."""

    def refuse(self: Place, *_: object) -> None:
        self.preserve.refused[":group finance"] = "the group finance is not kept"

    monkeypatch.setattr(PolicySpark, "spark_context", Elsewhere())
    monkeypatch.setattr("pyspark.InheritableThread", Thread)
    monkeypatch.setattr(Place, "wanted", lambda *_, **__: Access("etl", "finance", 6, 4, 0))  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr(Place, "finish", refuse)
    (tmp_path / "a").write_text("a")
    storage, told = Storage((Root(uri=tmp_path.as_uri()),)), dict[str, str]()
    place = Place(Preserve(frozenset({"group"}), told), Access("repl", "staff", 6, 4, 0))
    task = CopyTask(FileRef(f"{tmp_path.as_uri()}/a"), f"{tmp_path.as_uri()}/b", 1, "db.t", 1, place)
    [answer] = copier.copier(storage, storage, description="Repl#db").copy([task])
    assert isinstance(answer, CopyResult)
    assert told == {":group finance": "the group finance is not kept"}


class Failing(Context):
    """Its job ends with an error, after one of its files."""

    def __init__(self, answered: int) -> None:
        super().__init__()
        self._answered, self._told = answered, SimpleNamespace(value=[])

    def parallelize(self, partitions: list[list[list[CopyTask]]], _: int) -> Any:  # type: ignore[override]
        def run(_: object) -> None:
            tasks = [task for partition in partitions for some in partition for task in some]
            proof = Proof("CRC32C", "", recorded=False)
            self._told.value = [CopyResult(task, "source", 1, proof, 1) for task in tasks[: self._answered]]
            raise ValueError("Job aborted: ExecutorLostFailure\nat org.apache.spark")

        return SimpleNamespace(foreachPartition=run)

    def accumulator(self, *_: object) -> Any:
        return self._told

    def setJobGroup(self, *_: object, **__: object) -> None:  # noqa: N802 (Spark's name)
        pass


def test_after_a_job_that_fails_each_of_two_files_with_one_path_has_an_answer(
    copier: SparkCopier, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(PolicySpark, "spark_context", Failing(1))
    monkeypatch.setattr("pyspark.InheritableThread", Thread)
    (tmp_path / "a").write_text("a")
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    tasks = [CopyTask(FileRef(f"{tmp_path.as_uri()}/a"), f"{tmp_path.as_uri()}/b", 1, f"db.{name}", 1) for name in "tu"]
    answers = list(copier.copier(storage, storage, description="Repl#db").copy(tasks))
    assert sorted(answer.task.object_name for answer in answers) == ["db.t", "db.u"]


@pytest.mark.parametrize("few", [3, 2])
def test_a_job_that_fails_holds_no_table_for_files_that_nobody_tried(
    copier: SparkCopier, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, few: int
) -> None:
    """Each table of the window was held for what one file, or the loss of the executors, did to the job."""
    monkeypatch.setattr(PolicySpark, "spark_context", Failing(1))
    monkeypatch.setattr("pyspark.InheritableThread", Thread)  # it asks the JVM of another test for its context
    monkeypatch.setattr(spark_copier, "_FEW", few)
    source, target = (tmp_path / name for name in ("source", "target"))
    source.mkdir()
    for name in "abc":
        (source / name).write_text(name)
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    tasks = [CopyTask(FileRef(f"{source.as_uri()}/{name}"), f"{target.as_uri()}/{name}", 1, f"db.{name}", 1) for name in "abcd"]
    answers = list(copier.copier(storage, storage, description="Repl#db").copy(tasks))
    assert sorted(answer.task.object_name for answer in answers) == ["db.a", "db.b", "db.c", "db.d"]
    failures = [answer for answer in answers if isinstance(answer, CopyFailure)]
    if few < 3:
        assert {one.kind for one in failures} == {"unreachable"}
        assert all("the Spark job failed: Job aborted: ExecutorLostFailure" in one.reason for one in failures)
    else:
        assert {one.kind for one in failures} == {"gone"}  # d, which is nowhere
        assert len(list(target.iterdir())) >= 2
