"""What was measured: a table per workload and ``ratio NAME VALUE`` lines for the terminal, JSON, and a plot."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Measurement:
    """One workload.

    Args:
        name: W1, W2, ...
        title: what it is, with its sizes.
        rows: figures by their names with units, by who or what they are of.
        value: what the goal is about.
        goal: for the value.
        unit: of the value: ``ratio``, or e.g. ``seconds``.
        at_most: whether the goal is a highest value, not a lowest.
        means: the value in words.
    """

    name: str
    title: str
    rows: Mapping[str, Mapping[str, float]]
    value: float
    goal: float
    unit: str = "ratio"
    at_most: bool = False
    means: str = "times as long took Hive"

    @property
    def reached(self) -> bool:
        """Whether the goal is reached."""
        return self.value <= self.goal if self.at_most else self.value >= self.goal

    @property
    def line(self) -> str:
        """For scripts, e.g. ``ratio W1 11.2``."""
        return f"{self.unit} {self.name} {self.value:.2f}"


def machine() -> str:
    """What it ran on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GB, {platform.system()} {platform.machine()}, Python {platform.python_version()}, "
        f"load average {os.getloadavg()[0]:.1f}"
    )


def show(found: Sequence[Measurement]) -> None:
    """Prints a table per workload, and one line per value."""
    console = Console()
    for one in found:
        columns = list(dict.fromkeys(name for figures in one.rows.values() for name in figures))
        table = Table("", *columns, title=f"{one.name} {one.title}", title_justify="left")
        for column in table.columns[1:]:
            column.justify = "right"
        for who, figures in one.rows.items():
            table.add_row(who, *(f"{figures[name]:,.2f}" if name in figures else "" for name in columns))
        console.print(table)
        verdict = "reached" if one.reached else "missed"
        most = "at most" if one.at_most else "at least"
        console.print(f"{one.value:.2f} {one.means}; goal: {most} {one.goal:g}, {verdict}\n")
    console.print(f"On {machine()}", highlight=False)
    for one in found:
        print(one.line)


def write(found: Sequence[Measurement], folder: Path) -> list[Path]:
    """Writes JSON and plots; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    name = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    path = folder / f"{name}.json"
    values = [asdict(one) | {"reached": one.reached} for one in found]
    path.write_text(json.dumps({"machine": machine(), "results": values}, indent=2) + "\n", encoding="utf-8")
    return [path, *_plots(found, folder / name)]


def _plots(found: Sequence[Measurement], path: Path) -> list[Path]:
    """Bars of the first figures of each workload, as PNG and SVG."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(len(found), 1, figsize=(9, 1 + 1.6 * len(found)), squeeze=False, layout="constrained")
    for one, axis in zip(found, axes[:, 0], strict=True):
        column = next(name for figures in one.rows.values() for name in figures if name.startswith("both") or len(figures) == 1)
        values = {who: figures[column] for who, figures in one.rows.items() if column in figures}
        bars = axis.barh(list(values), list(values.values()), color=["#4f46e5", *["#a1a1aa"] * (len(values) - 1)])
        axis.bar_label(bars, fmt="%.1f", padding=4)
        axis.invert_yaxis()
        axis.margins(x=0.15)
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_title(f"{one.name} {one.title}: {one.value:.1f} {one.means}", fontsize=9, loc="left")
        axis.set_xlabel(column, fontsize=8)
    paths = [path.with_suffix(suffix) for suffix in (".png", ".svg")]
    for each in paths:
        figure.savefig(each, dpi=120)
    plt.close(figure)
    return paths
