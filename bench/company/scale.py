"""``python -m bench.company.scale``: measures slices of the company, fits a model, and says what the whole of it takes."""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.company.formula import FILES, PARTITIONS, TABLES
from bench.company.measure import Stage
from bench.company.model import Cost, model
from bench.company.plot import plot
from bench.company.runs import a_slice, measured, show
from bench.report import machine

#: Slices, and events of a window after each: few tables and many, with files and without.
_SLICES = (("company_10x100x3", 1_000), ("company_100x10x3", 4_000), ("company_10x1000x0", 0), ("company_10x1000x3", 0))
#: Those of more partitions, which take long.
_LARGE = (("company_10x10000x0", 0), ("company_10x10000x3", 0), ("company_100x10000x0", 0), ("company_100x10000x3", 0))
_BESIDE_LIMITS = "company_10x1000x3"
_DAY = 24.0
_CONSOLE = Console(width=150)

Model = Mapping[str, Mapping[str, Cost]]


def main() -> None:
    """Reads the arguments, runs and reports."""
    parser = argparse.ArgumentParser(prog="python -m bench.company.scale", description=__doc__)
    parser.add_argument("--most", type=int, default=10_000, help="partitions of the largest slice: up to 1,000,000 (hours)")
    parser.add_argument("--dump-only-above", type=int, default=10_000, help="larger slices with files are dumped only")
    parser.add_argument("--results", type=Path, default=Path(__file__).parents[1] / "results", help="folder for JSON and plots")
    args = parser.parse_args()
    stages: list[Stage] = []
    for name, events in (*_SLICES, *_LARGE):
        of = a_slice(name)
        if of.objects <= args.most:
            load = not of.files or of.objects <= args.dump_only_above
            found = measured(of, events, load=load, limits=name == _BESIDE_LIMITS)
            _CONSOLE.print(name)
            show(found)
            stages += found
    costs = model(stages)
    _show_costs(costs)
    _show_company(costs)
    print(f"On {machine()}")
    print(f"written to {', '.join(map(str, write(stages, costs, args.results)))}")


def write(stages: Sequence[Stage], costs: Model, folder: Path) -> list[Path]:
    """Writes what was measured, the model and the plot; returns the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / time.strftime("%Y%m%dT%H%M%S-scale.json", time.gmtime())
    found = {name: {what: asdict(cost) for what, cost in some.items()} for name, some in costs.items()}
    content = {"machine": machine(), "measured": [asdict(one) for one in stages], "model": found}
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return [path, *plot(stages, costs, path.with_suffix(""))]


def _show_costs(costs: Model) -> None:
    table = Table("", "", "fixed", "a table", "a partition or event", "a file", "largest error", box=None, title="Model")
    for name, some in costs.items():
        for what, cost in some.items():
            numbers = (cost.fixed, cost.table, cost.unit, cost.file)
            table.add_row(name, what, *(f"{number:,.4g}" for number in numbers), f"{cost.error:.0%}")
    _CONSOLE.print(table)


def _show_company(costs: Model) -> None:
    """What the whole takes by the model: all of it in dumps of one table each, and each event of a window of 10,000."""
    partitions = TABLES * PARTITIONS
    table = Table(
        "", "process hours", "processes for a day", "metastore calls/s then", "HDFS calls/s then", "dumps, GB", box=None
    )
    for name in ("DUMP", "LOAD"):
        found = {what: TABLES * cost.at(1, PARTITIONS, FILES * PARTITIONS) for what, cost in costs[name].items()}
        hours = found["CPU, s"] / 3600
        calls = (f"{found[what] / _DAY / 3600:,.0f}" for what in ("metastore calls", "HDFS calls"))
        table.add_row(name, f"{hours:,.0f}", f"{math.ceil(hours / _DAY)}", *calls, f"{found['dump, bytes'] / 1e9:,.1f}")
    table.title = (
        f"The company: {TABLES:,} tables, {partitions:,} partitions, {FILES * partitions:,} files; a bootstrap for each table"
    )
    _CONSOLE.print(table)


if __name__ == "__main__":
    main()
