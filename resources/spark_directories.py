"""Directories that the witness lists, in Spark executors: by the same functions as threads of this process do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hive_replication.errors import ReplicationError
from hive_replication.storage import Storage
from hive_replication.verify.witness import ThreadReader
from hive_replication.verify.witness.files import Directories, FileFacts

if TYPE_CHECKING:
    from resources.spark_copier import SparkCopier

_PER_TASK = 64  # directories of a Spark task, at least: fewer would cost more than listing them


class SparkReader:
    """Reads directories in Spark executors.

    Args:
        spark: the session, which starts with the first call.
        source: of the source.
        target: of the target.
        description: names the Spark jobs, e.g. ``Repl#sales``.
    """

    def __init__(self, spark: SparkCopier, source: Storage, target: Storage, description: str) -> None:
        self._spark, self._worker, self._description = spark, ThreadReader(source, target), description

    def read(self, directories: Sequence[Directories]) -> list[FileFacts]:
        """What is read of each, in order.

        Raises:
            BadRequest: no Java.
            ReplicationError: a directory cannot be read, or the Spark job failed.
        """
        context = self._spark.spark_context()
        tasks = max(1, min(self._spark.tasks or context.defaultParallelism, len(directories) // _PER_TASK))
        try:
            context.setJobGroup(self._description, f"{self._description}: {len(directories)} directories are compared")
            answers = context.parallelize(directories, tasks).mapPartitions(self._worker.answers).collect()
        except Exception as error:
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise ReplicationError(f"the Spark job failed: {reason}") from error
        found: list[FileFacts] = []
        for answer in answers:
            if isinstance(answer, str):
                raise ReplicationError(answer)
            found.append(answer)
        return found
