"""Spark as the data path: ``copy_file`` in executors, hundreds of files in flight in each of their tasks.

``dagster_pyspark`` is imported with this module, because Dagster builds a resource's configuration from the annotation of its
nested resource: 0.2 s on top of Dagster's own import, and neither a JVM nor a session. Both come with the first copy.
"""

# No "from __future__ import annotations": Dagster reads the annotations of a resource as they stand.
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dagster import ConfigurableResource, ResourceDependency
from dagster_pyspark import LazyPySparkResource  # noqa: TID253 (see above)

from hive_replication.copy.packing import pack
from hive_replication.copy.tasks import Copier, CopyFailure, CopyResult, CopyTask
from hive_replication.copy.threads import ThreadCopier
from hive_replication.errors import BadRequest
from hive_replication.storage import Storage

if TYPE_CHECKING:
    from pyspark import SparkContext

_DEFAULTS = {
    "spark.master": "local[2]",
    "spark.app.name": "hive-replication",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
_LOCAL_DEFAULTS = {"spark.driver.host": "localhost", "spark.driver.bindAddress": "127.0.0.1"}


def spark_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of the session: two local cores unless the policy's ``spark`` says otherwise."""
    merged = _DEFAULTS | dict(settings)
    return (_LOCAL_DEFAULTS if merged["spark.master"].startswith("local") else {}) | merged


class SparkCopier(ConfigurableResource):
    """Makes copiers that run in Spark executors.

    Executors need this package and its dependencies (not Dagster) and reach both storages themselves.

    Args:
        pyspark: the session, made when the first copy asks for it.
        threads: files in flight in each Spark task.
    """

    pyspark: ResourceDependency[LazyPySparkResource]
    threads: int = 128

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> "SparkCopier":
        """A copier with the policy's ``spark`` settings over the defaults."""
        return cls(pyspark=LazyPySparkResource(spark_config=spark_settings(settings)))

    def copier(self, source: Storage, target: Storage, *, description: str, bandwidth: float | None = None) -> Copier:
        """A copier between two storages.

        Args:
            source: where files and cmroot are read.
            target: where replicas go.
            description: names the Spark jobs, e.g. ``Repl#sales``.
            bandwidth: most bytes per second, of all tasks of a job together; None for as fast as it goes.
        """
        return _SparkCopier(self, ThreadCopier(source, target, threads=self.threads, executor="spark"), description, bandwidth)

    def spark_context(self) -> "SparkContext":
        """The context of the session, which starts with the first call.

        Raises:
            BadRequest: no Java.
        """
        home = os.environ.get("JAVA_HOME")
        if not shutil.which("java", path=str(Path(home, "bin")) if home else None):
            raise BadRequest(
                "Spark needs a JDK 17 or 21: set JAVA_HOME, or raise driver_max_files and driver_max_bytes in the policy"
            )
        # Without it workers run the first python3 of the path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        return self.pyspark.spark_context


class _SparkCopier:
    def __init__(self, resource: SparkCopier, worker: ThreadCopier, description: str, bandwidth: float | None) -> None:
        self._resource = resource
        self._worker = worker
        self._description = description
        self._bandwidth = bandwidth

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyResult | CopyFailure]:
        """Copies and proves each file; answers come when all are done."""
        packs = pack(tasks)
        if not packs:
            return
        context = self._resource.spark_context()
        running = min(len(packs), context.defaultParallelism)  # tasks at a time: as many as the executors have cores
        worker = self._worker.limited(self._bandwidth / running if self._bandwidth else None)
        context.setJobGroup(self._description, f"{self._description}: {sum(map(len, packs))} files", interruptOnCancel=True)
        try:
            # Not toLocalIterator: it runs one partition after the other.
            answers = context.parallelize(packs, len(packs)).mapPartitions(worker.copy_packs).collect()
        except Exception as error:  # noqa: BLE001 (every task gets its answer; what was copied is found present next time)
            reason = f"the Spark job failed: {next(iter(str(error).strip().splitlines()), type(error).__name__)}"
            answers = [CopyFailure(task, reason) for tasks in packs for task in tasks]
        yield from answers
