"""Plots of what was measured and of the model beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.company.formula import FILES, PARTITIONS
from bench.company.measure import Stage
from bench.company.model import QUANTITIES, Cost

_COLOURS = {"DUMP": "#4f46e5", "LOAD": "#059669"}
_SIZES = [10**power for power in range(3, 9)]


def plot(stages: Sequence[Stage], costs: Mapping[str, Mapping[str, Cost]], path: Path) -> list[Path]:
    """Processor time and memory by partitions with three files each, as PNG and SVG: points are measured, lines the model."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    shown = (("CPU, s", 1 / 3600, "hours of processor time"), ("memory, bytes", 1 / 2**20, "memory of one process, MB"))
    for axis, (what, factor, title) in zip(axes, shown, strict=True):
        for name, colour in _COLOURS.items():
            cost = costs[name][what]
            values = [factor * cost.at(max(1, size // PARTITIONS), size, FILES * size) for size in _SIZES]
            axis.loglog(_SIZES, values, color=colour, linestyle="--", linewidth=1)
            points = [one for one in stages if one.name == name and one.files == FILES * one.units]
            measured = [factor * QUANTITIES[what](one) for one in points]
            axis.loglog([one.units for one in points], measured, "o", color=colour, label=name)
        axis.set_title(title, fontsize=10, loc="left")
        axis.set_xlabel("partitions with three files each")
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(visible=True, which="major", alpha=0.2)
        axis.legend(frameon=False)
    paths = [path.with_suffix(suffix) for suffix in (".png", ".svg")]
    for each in paths:
        figure.savefig(each, dpi=120)
    plt.close(figure)
    return paths
