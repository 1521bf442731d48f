"""``python -m bench.threshold``: from how many files on Spark executors copy faster than the driver's threads.

Spark is timed with its start (as the first large window of a run has it) and with a warm session. Its master is the policy's
default; a real cluster has more cores than the two of this machine, so there Spark pays sooner: name it with ``--master``.
"""

from __future__ import annotations

import argparse
import secrets
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table

from bench.servers import cluster
from hive_replication.connect import Connection, connect
from hive_replication.copy.tasks import Copier, CopyResult, CopyTask
from hive_replication.copy.thread_copier import ThreadCopier
from hive_replication.events.files import FileRef
from hive_replication.units import size
from resources.embedded.policy import policy
from resources.spark_copier import SparkCopier


def main() -> None:
    """Reads the arguments, measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m bench.threshold", description=__doc__)
    parser.add_argument("numbers", nargs="*", type=int, default=[10, 64, 200, 1_000], metavar="FILES")
    parser.add_argument("--bytes", type=int, default=64 << 10, help="of each file")
    parser.add_argument("--master", default="local[2]")
    args = parser.parse_args()
    with cluster() as servers:
        connection = connect(policy(servers, {"unused": "unused"}))
        with _files(connection, max(args.numbers), args.bytes) as (refs, place):
            _measure(connection, args.numbers, refs, place, args.bytes, args.master)


def _measure(connection: Connection, numbers: Sequence[int], refs: Sequence[FileRef], place: str, each: int, master: str) -> None:
    spark = SparkCopier.from_settings({"spark.master": master})
    storages = connection.source.storage, connection.target.storage
    cold = _start(spark)
    executors = spark.copier(*storages, description="bench")
    shown = Table(title=f"files of {size(each)}; Spark on {master} starts in {cold:.1f} s")
    for title in ("files", "threads, s", "Spark warm, s", "Spark with start, s", "threads / Spark warm", "threads / Spark"):
        shown.add_column(title, justify="right")
    for number in numbers:
        threads, warm = (
            _time(copier, connection, refs[:number], f"{place}/{name}", each)
            for name, copier in ((f"threads{number}", connection.copier), (f"spark{number}", executors))
        )
        figures = (threads, warm, warm + cold, threads / warm, threads / (warm + cold))
        shown.add_row(f"{number:,}", *(f"{figure:.2f}" for figure in figures))
    Console().print(shown)


def _start(spark: SparkCopier) -> float:
    """Seconds until a Python worker has answered."""
    began = time.monotonic()
    spark.spark_context().parallelize([1, 2], 2).map(str).collect()
    return time.monotonic() - began


def _time(copier: Copier, connection: Connection, refs: Sequence[FileRef], place: str, each: int) -> float:
    tasks = [CopyTask(ref, f"{place}/{n}", 1, "bench", each) for n, ref in enumerate(refs)]
    began = time.monotonic()
    answers = list(copier.copy(tasks))
    seconds = time.monotonic() - began
    wrong = [answer for answer in answers if not isinstance(answer, CopyResult)]
    assert not wrong, wrong[0]
    connection.target.storage.delete(place, recursive=True)
    return seconds


@contextmanager
def _files(connection: Connection, number: int, each: int) -> Generator[tuple[list[FileRef], str]]:
    """Source files, and a place on the target."""
    name, sides = f"bench{secrets.token_hex(4)}", (connection.source, connection.target)
    rules = connection.source.policy
    origin, place = (f"{side.roots[0].uri}tmp/{name}" for side in (rules.source, rules.target))
    storage = connection.source.storage
    storage.write(f"{origin}/0", secrets.token_bytes(each))
    first = storage.checksum(f"{origin}/0")
    assert first is not None
    refs = [FileRef(f"{origin}/{n}", first.value) for n in range(number)]
    try:
        made = ThreadCopier(storage, storage).copy(CopyTask(refs[0], ref.uri, 1, "bench", each) for ref in refs[1:])
        assert all(isinstance(answer, CopyResult) for answer in made)
        yield refs, place
    finally:
        for side, folder in zip(sides, (origin, place), strict=True):
            side.storage.delete(folder, recursive=True)


if __name__ == "__main__":
    main()
