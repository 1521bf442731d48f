"""Calls that Spark executors make: by the same functions as threads of this process do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from hive_replication.errors import ReplicationError
from hive_replication.parallel import Threads

if TYPE_CHECKING:
    from resources.spark_copier import SparkCopier

_PER_TASK = 64  # calls of a Spark task, at least: fewer would cost more than making them here

Item = TypeVar("Item")
Value = TypeVar("Value")


@dataclass(frozen=True)
class _Raised:
    """What a call of a task raised, after which it makes no further ones."""

    error: Exception


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
            BadRequest: no Java.
            ReplicationError: a call raised it, as any OSError, or the Spark job failed.
        """
        context = self._spark.spark_context()
        tasks = max(1, min(self._spark.tasks or context.defaultParallelism, len(items) // _PER_TASK))
        try:
            context.setJobGroup(self._description, f"{self._description}: {len(items)} directories are read")
            answers = context.parallelize(items, tasks).mapPartitions(partial(_answers, do, self._threads)).collect()
        except Exception as error:
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise ReplicationError(f"the Spark job failed: {reason}") from error
        for answer in answers:
            if isinstance(answer, _Raised):
                raise answer.error
            yield answer


def _answers(do: Callable[[Item], Value], threads: int, items: Iterable[Item]) -> Iterator[Value | _Raised]:
    """One Spark task: the results in order, and last what the call raised that failed."""
    try:
        yield from Threads(threads, "storage").map(do, items)
    except (ReplicationError, OSError) as error:
        yield _Raised(error)
