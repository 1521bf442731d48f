"""Plots of what was measured and of the model beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.company.formula import FILES, PARTITIONS
from bench.company.measure import Stage
from bench.company.model import Cost

_COLOURS = {"DUMP": "#4f46e5", "LOAD": "#059669"}
_SIZES = [10**power for power in range(3, 9)]


def plot(stages: Sequence[Stage], costs: Mapping[str, Mapping[str, Cost]], path: Path) -> list[Path]:
    """Processor time by partitions with three files each, and memory by partitions, as PNG and SVG.

    Points are measured, lines the model. Memory has no line: it does not grow in proportion to anything.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (time, memory) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for name, colour in _COLOURS.items():
        some, cost = [one for one in stages if one.name == name], costs[name]["CPU, s"]
        hours = [cost.at(max(1, size // PARTITIONS), size, FILES * size) / 3600 for size in _SIZES]
        time.loglog(_SIZES, hours, color=colour, linestyle="--", linewidth=1)
        with_files = [one for one in some if one.files == FILES * one.units]
        time.loglog([one.units for one in with_files], [one.used.cpu / 3600 for one in with_files], "o", color=colour, label=name)
        memory.semilogx([one.units for one in some], [one.used.memory / 2**20 for one in some], "o", color=colour, label=name)
    memory.set_ylim(bottom=0)
    shown = ((time, "hours of processor time", "partitions with three files each"), (memory, "MB of memory", "partitions"))
    for axis, title, sizes in shown:
        axis.set_title(title, fontsize=10, loc="left")
        axis.set_xlabel(sizes)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(visible=True, which="major", alpha=0.2)
        axis.legend(frameon=False)
    paths = [path.with_suffix(suffix) for suffix in (".png", ".svg")]
    for each in paths:
        figure.savefig(each, dpi=120)
    plt.close(figure)
    return paths
