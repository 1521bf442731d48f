"""What a stage costs at any size, fitted to what was measured at some (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bench.company.measure import Stage

#: Quantities of a stage by their names.
QUANTITIES: dict[str, Callable[[Stage], float]] = {
    "CPU, s": lambda stage: stage.used.cpu,
    "metastore calls": lambda stage: stage.used.calls_of("metastore"),
    "HDFS calls": lambda stage: stage.used.calls_of("NameNode", "DataNode", "WebHDFS"),
    "dump, bytes": lambda stage: stage.size,
}


@dataclass(frozen=True, slots=True)
class Cost:
    """A quantity as ``fixed + table * tables + unit * units + file * files``.

    Args:
        fixed: of any dump or load.
        table: of each table.
        unit: of each partition or event.
        file: of each file.
        error: the largest part of a measured value by which the model is beside it.
    """

    fixed: float
    table: float
    unit: float
    file: float
    error: float

    def at(self, tables: int, units: int, files: int) -> float:
        """The quantity at a size."""
        return self.fixed + self.table * tables + self.unit * units + self.file * files


def fitted(stages: Sequence[Stage], quantity: Callable[[Stage], float]) -> Cost:
    """The cost that is nearest to what was measured, by the parts of it that it is beside; none is below zero.

    Args:
        stages: of one name, of different sizes.
        quantity: of a stage.
    """
    values = np.array([quantity(stage) for stage in stages], dtype=float)
    sizes = np.array([[1, stage.tables, stage.units, stage.files] for stage in stages], dtype=float)
    weights = 1 / np.maximum(values, 1e-9)
    if not values.any():
        return Cost(0, 0, 0, 0, 0)
    found = _not_negative(sizes * weights[:, None], values * weights)
    error = float(np.max(np.abs(sizes @ found * weights - 1)))
    return Cost(*map(float, found), error)


def model(stages: Iterable[Stage]) -> dict[str, dict[str, Cost]]:
    """Costs by names of stages and of quantities."""
    by_name: dict[str, list[Stage]] = {}
    for stage in stages:
        by_name.setdefault(stage.name, []).append(stage)
    return {name: {what: fitted(some, of) for what, of in QUANTITIES.items()} for name, some in by_name.items()}


def _not_negative(rows: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Least squares, leaving out what would have to be below zero."""
    used, found = list(range(rows.shape[1])), np.zeros(rows.shape[1])
    while used:
        # Of columns that cannot be told apart, as of too few sizes, the smallest solution is taken.
        solved = np.linalg.lstsq(rows[:, used], wanted, rcond=None)[0]
        if solved.min() >= 0:
            found[used] = solved
            break
        used.pop(int(solved.argmin()))
    return found
