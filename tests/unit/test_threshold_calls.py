"""Who reads many directories: threads, or Spark beyond a number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hive_replication.parallel import Item, ThresholdCalls, Value


class Recorded:
    """Makes no call, and notes how many it was asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def map(self, do: Callable[[Item], Value], items: Sequence[Item]) -> Iterator[Value]:
        self.asked.append(len(items))
        return iter(())


def test_spark_begins_beyond_a_number_of_directories() -> None:
    threads, spark, started = Recorded(), Recorded(), list[Recorded]()

    def start() -> Recorded:
        started.append(spark)
        return spark

    calls = ThresholdCalls(threads, start, most=10)
    for number in (4, 6, 1, 3, 1, 5):
        calls.map(len, [""] * number)
    assert (threads.asked, spark.asked, len(started)) == ([4, 6, 1, 1], [3, 5], 1)
