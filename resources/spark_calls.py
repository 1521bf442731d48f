"""Calls that Spark executors make: by the same functions as threads of this process do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from hive_replication.errors import ReplicationError
from hive_replication.logs import reason
from hive_replication.parallel import Item, Raised, Value, answers_of_task

if TYPE_CHECKING:
    from resources.spark_copier import SparkCopier

_PER_TASK = 64  # calls of a Spark task, at least: fewer would cost more than making them here


class SparkCalls:
    """Makes calls in Spark executors.

    Args:
        spark: the session, which starts with the first call.
        threads: of each Spark task.
        description: names the Spark jobs, e.g. ``Repl#sales``.
    """

    def __init__(self, spark: SparkCopier, threads: int, description: str) -> None:
        self._spark, self._threads, self._description = spark, threads, description

    def map(self, do: Callable[[Item], Value], items: Sequence[Item]) -> Iterator[Value]:
        """Makes a call for each item; their results in order, when all are made.

        Raises:
            BadRequest: no Java, or a secret cannot be read.
            ReplicationError: a call raised it, as any OSError, Spark does not start, or the Spark job failed.
        """
        context = self._spark.spark_context()
        try:
            tasks = max(1, min(self._spark.tasks or context.defaultParallelism, len(items) // _PER_TASK))
            context.setJobGroup(self._description, f"{self._description}: {len(items)} directories are read")
            answers = context.parallelize(items, tasks).mapPartitions(partial(answers_of_task, do, self._threads)).collect()
        except Exception as error:
            raise ReplicationError(f"the Spark job failed: {reason(error)}") from error
        for answer in answers:
            if isinstance(answer, Raised):
                raise answer.error
            yield answer
