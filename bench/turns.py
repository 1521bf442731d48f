"""One source database, replicated by this project and by Hive in turn, each to replicas of its own."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from rich.console import Console

from bench.peers import Timing
from bench.report import Measurement
from bench.servers import Setting
from bench.workloads import Workload

_TOLD = Console(stderr=True)


def measure(where: Setting, name: str, workload: Workload, goal: float, repeat: int = 1) -> Measurement:
    """Fills a source, and times the bootstrap or, if the workload changes something afterwards, the window after it.

    Args:
        where: who replicates where.
        name: of the workload.
        workload: what is done at the source.
        goal: how many times longer Hive should take.
        repeat: replicas that each makes.
    """
    peers, database = where.peers, where.database()
    _TOLD.log(f"{name}: filling {database.name}")
    workload.fill(database)
    replicas = {peer.name: [f"{database.name}_{who}{n}" for n in range(repeat)] for who, peer in zip("oh", peers, strict=True)}

    def in_turn() -> Mapping[str, Sequence[Timing]]:
        timings: dict[str, list[Timing]] = {peer.name: [] for peer in peers}
        for number in range(repeat):
            for peer in peers if number % 2 == 0 else reversed(peers):
                timings[peer.name].append(peer.replicate(database.name, replicas[peer.name][number]))
                _TOLD.log(f"{name}: {peer.name} {timings[peer.name][-1]}")
        return timings

    timings = in_turn()
    if workload.change(database):
        timings = in_turn()
    where.check(database.name, [one for made in replicas.values() for one in made])
    rows = {who: _medians(found) for who, found in timings.items()}
    ours, hive = (figures["both, s"] for figures in rows.values())
    return Measurement(name, workload.title, rows, hive / ours, goal)


def _medians(timings: Sequence[Timing]) -> dict[str, float]:
    steps = {"DUMP, s": "dump", "LOAD, s": "load", "both, s": "whole"}
    return {title: statistics.median(getattr(one, step) for one in timings) for title, step in steps.items()}
