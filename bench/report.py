"""What was measured: a table and ``ratio NAME VALUE`` lines for the terminal, JSON, and a plot."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.peers import Timing


@dataclass(frozen=True, slots=True)
class Result:
    """One workload, done by two.

    Args:
        name: W1, W2, ...
        title: what it is.
        timings: by who did it; equally many of each.
    """

    name: str
    title: str
    timings: Mapping[str, Sequence[Timing]]

    @property
    def ratio(self) -> float:
        """How many times longer the second took than the first, by their medians."""
        ours, hive = (statistics.median(one.whole for one in found) for found in self.timings.values())
        return hive / ours


def machine() -> str:
    """What it ran on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GB, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    )


def show(results: Sequence[Result]) -> None:
    """Prints a table, and one line a ratio."""
    table = Table("workload", "who", "DUMP, s", "LOAD, s", "both, s", "ratio", title=f"On {machine()}")
    for result in results:
        for number, (who, found) in enumerate(result.timings.items()):
            medians = [statistics.median(values) for values in zip(*((t.dump, t.load, t.whole) for t in found), strict=True)]
            first = number == 0
            cells = (f"{seconds:.1f}" for seconds in medians)
            table.add_row(f"{result.name} {result.title}" if first else "", who, *cells, f"{result.ratio:.1f}" if first else "")
    Console().print(table)
    for result in results:
        print(f"ratio {result.name} {result.ratio:.1f}")


def write(results: Sequence[Result], folder: Path) -> Path:
    """Writes JSON; gives its path."""
    folder.mkdir(parents=True, exist_ok=True)
    values = [
        {
            "name": r.name,
            "title": r.title,
            "ratio": r.ratio,
            "timings": {who: list(map(asdict, t)) for who, t in r.timings.items()},
        }
        for r in results
    ]
    path = folder / f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}.json"
    path.write_text(json.dumps({"machine": machine(), "results": values}, indent=2) + "\n", encoding="utf-8")
    return path
