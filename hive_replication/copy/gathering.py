"""Answers of Spark tasks, gathered by a Spark accumulator: the driver has them as each task ends, not when all have.

Spark applies what a task adds exactly once, also where the task is repeated or has a speculative twin (Spark's programming guide,
"Accumulators", for actions).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Protocol

from hive_replication.copy.tasks import CopyFailure, CopyResult, CopyTask
from hive_replication.copy.threads import ThreadCopier

Answers = list[CopyResult | CopyFailure]


class Accumulator(Protocol):
    """What is used of ``pyspark.Accumulator`` in a task."""

    def add(self, term: Answers) -> None:
        """Adds to what the driver gets when the task ends."""
        ...


class AnswersParam:
    """How a Spark accumulator of answers begins and grows (``pyspark.AccumulatorParam``)."""

    def zero(self, value: Answers) -> Answers:  # noqa: ARG002 (Spark's signature)
        """What each task begins with."""
        return []

    def addInPlace(self, value1: Answers, value2: Answers) -> Answers:  # noqa: N802 (Spark's name)
        """Appends."""
        value1.extend(value2)
        return value1


def copy_partition(worker: ThreadCopier, answers: Accumulator, partition: Iterable[list[list[CopyTask]]]) -> None:
    """One Spark task: copies the packs of its partition, and hands over the answers."""
    answers.add(list(worker.copy_packs(chain.from_iterable(partition))))
