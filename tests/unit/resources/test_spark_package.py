"""The package that executors get, and what becomes of a Spark that does not start. No JVM: a context is stood for."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hive_replication.copy.tasks import CopyTask
from hive_replication.errors import BadRequest, ReplicationError
from hive_replication.events.files import FileRef
from hive_replication.policy import Root
from hive_replication.storage import Storage
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
    monkeypatch.setattr(spark_copier.shutil, "which", lambda *_, **__: "/bin/java")
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


def test_a_context_that_takes_no_job_is_an_error_of_replication(
    copier: SparkCopier, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(PolicySpark, "spark_context", Context())
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    with pytest.raises(ReplicationError, match=r"the Spark job failed: the context was stopped$"):
        list(copier.copier(storage, storage, description="Repl#db").copy([TASK]))
