"""Spark as the data path: ``copy_file`` in executors, hundreds of files in flight in each of their tasks.

``dagster_pyspark`` is imported with this module, because Dagster builds a resource's configuration from the annotation of its
nested resource: 0.2 s on top of Dagster's own import, and neither a JVM nor a session. Both come with the first copy.
"""

# No "from __future__ import annotations": Dagster reads the annotations of a resource as they stand.
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from dagster import ConfigurableResource, ResourceDependency
from dagster_pyspark import LazyPySparkResource  # noqa: TID253 (see above)
from pydantic import PrivateAttr

from hive_replication.copy.packing import pack, partition_packs
from hive_replication.copy.spark_answers import Answers, AnswersParam, copy_partition
from hive_replication.copy.tasks import Check, Copier, CopyFailure, CopyResult, CopyTask
from hive_replication.copy.thread_copier import ThreadCopier
from hive_replication.copy.while_held import go_on
from hive_replication.errors import BadRequest, ReplicationError
from hive_replication.logs import PACKAGE, reason
from hive_replication.policy.secrets import is_reference, resolved_options
from hive_replication.process import account
from hive_replication.storage import Storage
from resources.java import has_java
from resources.spark_package import ship
from resources.spark_waits import told_when_slow, watch

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(f"{PACKAGE}.spark")  # as the engine's, whose messages go to a run's log
_POLL = 0.2  # seconds between two looks for answers
_FEW = 1_000  # files that the driver copies itself where Spark did not

_DEFAULTS = {
    "spark.master": "local[2]",
    "spark.app.name": "hive-replication",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
_LOCAL_DEFAULTS = {"spark.driver.host": "localhost", "spark.driver.bindAddress": "127.0.0.1"}


def spark_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of the session: two local cores unless the policy's ``spark`` says otherwise.

    Executors act on HDFS as the account of the driver, not as that of their workers, which Hadoop's clients would do.
    """
    merged = _DEFAULTS | {"spark.executorEnv.HADOOP_USER_NAME": account()} | dict(settings)
    return (_LOCAL_DEFAULTS if merged["spark.master"].startswith("local") else {}) | merged


class PolicySpark(LazyPySparkResource):
    """The session of a policy: secrets among its settings are read by this process, and not shown on any command line."""

    def _init_session(self) -> None:
        if not self._spark_session:
            settings = {key: str(value) for key, value in self.spark_config.items()}
            _start_jvm({key: value for key, value in settings.items() if not is_reference(value)})
            self._spark_session = _session(resolved_options(settings))


def _session(settings: Mapping[str, str]) -> "SparkSession":
    from pyspark.sql import SparkSession

    return SparkSession.Builder().config(map=dict(settings)).getOrCreate()


def _start_jvm(settings: Mapping[str, str]) -> None:
    """Starts the driver's JVM with settings on its command line; others are told to it when the session is made."""
    from pyspark import SparkConf, SparkContext

    conf = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        conf.set(key, value)
    SparkContext._ensure_initialized(conf=conf)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] (no public way)


class SparkCopier(ConfigurableResource["SparkCopier"]):
    """Makes copiers that run in Spark executors.

    Executors get this package from the driver; they need its dependencies (not Dagster) and reach both storages themselves.

    Args:
        pyspark: the session, made when the first copy asks for it.
        threads: files in flight in each Spark task.
        tasks: most Spark tasks that copy at a time; 0 for as many as the executors have cores.
    """

    pyspark: ResourceDependency[LazyPySparkResource]
    threads: int = 128
    tasks: int = 0
    _application: str = PrivateAttr(default="")  # that was told to the log

    @classmethod
    def from_settings(cls, settings: Mapping[str, str], *, threads: int = 128, tasks: int | None = None) -> "SparkCopier":
        """A copier with the policy's ``spark`` settings over the defaults."""
        return cls(pyspark=PolicySpark(spark_config=spark_settings(settings)), threads=threads, tasks=tasks or 0)

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
            BadRequest: no Java, or a secret cannot be read.
            ReplicationError: Spark does not start.
        """
        if not has_java():
            raise BadRequest(
                "Spark needs a JDK 17 or 21: set JAVA_HOME, or raise in the policy driver_max_files and driver_max_bytes, "
                "beyond which Spark copies files, and driver_max_directories, beyond which it lists directories"
            )
        # Only spark-submit reads spark.pyspark.python; and without the variable workers run the first python3 of the path.
        python = self.pyspark.spark_config.get("spark.pyspark.python")
        os.environ["PYSPARK_PYTHON"] = python or os.environ.get("PYSPARK_PYTHON", sys.executable)
        try:
            with told_when_slow(str(self.pyspark.spark_config.get("spark.master"))):
                context = self.pyspark.spark_context
            ship(context)
        except ReplicationError:
            raise
        except Exception as error:
            raise ReplicationError(f"Spark does not start: {reason(error)}") from error
        if self._application != context.applicationId:
            self._application = str(context.applicationId)
            _LOG.info("Spark application %s, master %s, UI %s", self._application, context.master, context.uiWebUrl or "off")
            watch(context)
        return context


class _SparkCopier:
    def __init__(self, resource: SparkCopier, worker: ThreadCopier, description: str, bandwidth: float | None) -> None:
        self._resource = resource
        self._worker = worker
        self._description = description
        self._bandwidth = bandwidth
        self._check: Check = go_on

    def checked(self, check: Check) -> Copier:
        """The same, which asks while it waits whether the job may go on."""
        same = copy(self)
        same._check = check  # noqa: SLF001 (its own class)
        return same

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyResult | CopyFailure]:
        """Copies and proves each file; answers come as the Spark tasks end, the last ones of a job that fails from the driver.

        Raises:
            BadRequest: no Java, or a secret cannot be read.
            ReplicationError: Spark does not start, or takes no job.
        """
        packs = pack(tasks)
        if not packs:
            return
        job = self._job(packs)
        waiting: dict[CopyTask, list[CopyTask]] = {}
        for task in chain.from_iterable(packs):
            waiting.setdefault(task, []).append(task)
        for answer in job.answers(self._check):
            asked = waiting.get(answer.task)
            _learn(asked.pop() if asked else None, answer.task)
            yield answer
        yield from self._unanswered([*chain.from_iterable(waiting.values())], job.error)

    def _unanswered(self, tasks: list[CopyTask], error: str) -> Iterator[CopyResult | CopyFailure]:
        """Answers for a job that failed: no table is held for files that nobody tried, or for those of other tables.

        Most jobs fail because their executors went. A file that ends each process that copies it ends the driver, too.
        """
        if not tasks:
            return
        if len(tasks) > _FEW:  # what was copied is found present next time, so there are fewer then
            yield from (CopyFailure(task, f"the Spark job failed: {error}", "unreachable") for task in tasks)
            return
        _LOG.warning("the Spark job failed: %s; its last %d files are copied by the driver", error, len(tasks))
        yield from self._worker.limited(self._bandwidth).checked(self._check).copy(tasks)

    def _job(self, packs: list[list[CopyTask]]) -> "_Job":
        context = self._resource.spark_context()
        # Each task has its part of the bandwidth, so there are no more of them than parts, however many executors come.
        most = self._resource.tasks or (context.defaultParallelism if self._bandwidth else len(packs))
        partitions = partition_packs(packs, most)
        worker = self._worker.limited(self._bandwidth / len(partitions) if self._bandwidth else None)
        name = f"{self._description}: {sum(map(len, packs))} files"
        try:
            return _Job(context, (self._description, name), context.parallelize(partitions, len(partitions)), worker)
        except Exception as error:  # e.g. of a context that ended
            raise ReplicationError(f"the Spark job failed: {reason(error)}") from error


def _learn(asked: CopyTask | None, answered: CopyTask) -> None:
    """Takes over what an executor could not preserve: it notes that in its own copy of what threads here share."""
    if asked and asked.place and answered.place:
        asked.place.preserve.refused.update(answered.place.preserve.refused)


class _Job:
    """A Spark job in a thread of its own, so that its answers are had while it runs."""

    def __init__(
        self, context: "SparkContext", group: tuple[str, str], partitions: "RDD[list[list[CopyTask]]]", worker: ThreadCopier
    ) -> None:
        from pyspark import InheritableThread

        self.error = "a task gave no answer"
        self._context = context
        self._group = group
        self._partitions = partitions
        none: Answers = []
        self._answers = context.accumulator(none, AnswersParam())  # pyright: ignore[reportArgumentType]
        self._copy = partial(copy_partition, worker, self._answers)
        self._thread = InheritableThread(target=self._run, name="spark copy")

    def answers(self, check: Check) -> Iterator[CopyResult | CopyFailure]:
        """Runs the job; its answers as its tasks end. Who stops listening ends it, as does what ``check`` raises."""
        seen, running = 0, True
        self._thread.start()
        try:
            while running:
                self._thread.join(_POLL)
                running = self._thread.is_alive()
                check()
                more = self._answers.value[seen:]
                seen += len(more)
                yield from more
        finally:
            if self._thread.is_alive():
                self._context.cancelJobGroup(self._group[0])
                self._thread.join()
            self._answers.value = []  # Spark keeps it for the life of the process

    def _run(self) -> None:
        try:
            self._context.setJobGroup(*self._group, interruptOnCancel=True)
            self._partitions.foreachPartition(self._copy)
        except Exception as error:  # noqa: BLE001 (every task of a copier gets its answer)
            self.error = reason(error)
