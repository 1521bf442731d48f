"""W5: a table of very many partitions without files. Time per partition and memory must not grow with their number."""

from __future__ import annotations

import resource
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from bench.peers import Ours, Timing
from bench.report import Measurement
from bench.source import SourceDatabase
from hive_replication.metastore.tables import batches
from hive_replication.policy import Policy

_BATCH = 500
_THREADS = 4


@dataclass(frozen=True)
class Growth:
    """A bootstrap of a table of many partitions, beside one of a tenth of them.

    Args:
        policy: of the warehouses.
        partitions: of the larger table.
    """

    policy: Policy
    partitions: int = 100_000

    def measure(self, small: SourceDatabase, large: SourceDatabase) -> Measurement:
        """Compares the time per partition at the full number with that at a tenth of it."""
        rows: dict[str, dict[str, float]] = {}
        each: list[float] = []
        for source, number in (small, self.partitions // 10), (large, self.partitions):
            _fill(source, number)
            timing, memory = self._apart(source.name)
            each.append(timing.whole / number)
            rows[f"{number:,} partitions"] = {
                "both, s": timing.whole,
                "DUMP, s": timing.dump,
                "LOAD, s": timing.load,
                "a partition, ms": 1000 * each[-1],
                "memory, MB": memory,
            }
        title = f"many partitions: {self.partitions:,} in one table, no files"
        return Measurement("W5", title, rows, each[1] / each[0], 1.3, at_most=True, means="of the time a partition at a tenth")

    def _apart(self, name: str) -> tuple[Timing, float]:
        """Runs in a process of its own, whose memory is measured."""
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            return pool.submit(_replicate, self.policy, name).result()


def _replicate(policy: Policy, name: str) -> tuple[Timing, float]:
    timing = Ours(policy).replicate(name, f"{name}_replica")
    return timing, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _fill(source: SourceDatabase, number: int) -> None:
    table = source.table("t")
    values = [f"{n:06}" for n in range(number)]
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(lambda batch: source.partitions(table, batch), batches(values, _BATCH)))
