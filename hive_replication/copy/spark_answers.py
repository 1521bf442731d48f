"""Results of Spark tasks in a Spark accumulator: the driver receives them as each task ends, not only after the last one.

Spark applies what a task adds exactly once, also where the task is repeated or has a speculative twin (Spark's programming guide,
"Accumulators", for actions).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Protocol

from hive_replication.copy.tasks import CopyFailure, CopyResult, CopyTask
from hive_replication.copy.thread_copier import ThreadCopier

Answers = list[CopyResult | CopyFailure]


class Accumulator(Protocol):
    """What is used of ``pyspark.Accumulator`` in a task."""

    def add(self, term: Answers) -> None:
        """Adds to what the driver gets when the task ends."""
        ...


class AnswersParam:
    """The initial value and the addition of an accumulator of answers (``pyspark.AccumulatorParam``)."""

    def zero(self, value: Answers) -> Answers:  # noqa: ARG002 (Spark's signature)
        """The initial value of each task."""
        return []

    def addInPlace(self, value1: Answers, value2: Answers) -> Answers:  # noqa: N802 (Spark's name)
        """Appends."""
        value1.extend(value2)
        return value1


def copy_partition(worker: ThreadCopier, answers: Accumulator, partition: Iterable[list[list[CopyTask]]]) -> None:
    """One Spark task: copies the packs of its partition, and adds the answers to the accumulator."""
    answers.add(list(worker.copy_packs(chain.from_iterable(partition))))
