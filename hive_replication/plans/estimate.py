"""How long a load may take (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from hive_replication.load.copy_rate import Rates
from hive_replication.units import count, duration, size, when

# Measured with small files between two HDFS clusters; replaced by the rates of the first load.
_FILES, _BYTES, _OPERATIONS = 100, 50 << 20, 20  # a second


@dataclass(frozen=True, slots=True)
class Estimate:
    """How long a load may take.

    Args:
        seconds: for copies and operations together.
        basis: what that was calculated from.
    """

    seconds: float
    basis: str


def estimate(files: int, number_of_bytes: int, operations: int, rates: Rates | None, bandwidth: int | None) -> Estimate:
    """Estimates by the last measured load, or by assumed rates.

    Args:
        files: files to copy.
        number_of_bytes: their bytes as far as they are known.
        operations: operations on the metastore.
        rates: of the last load of the database that was measured.
        bandwidth: bytes per second that the policy allows.
    """
    if rates is None or not (rates.files and rates.copy_seconds):
        copy, apply = max(files / _FILES, number_of_bytes / _BYTES), operations / _OPERATIONS
        basis = f"assumed: {_FILES} files/s or {size(_BYTES)}/s, {_OPERATIONS} operations/s (no load of it was measured yet)"
    else:
        copy = rates.copy_seconds * max(files / rates.files, number_of_bytes / rates.bytes if rates.bytes else 0.0)
        apply = operations * (rates.apply_seconds / rates.operations if rates.operations else 1 / _OPERATIONS)
        measured = when(rates.measured)
        basis = (
            f"measured: the load of {measured} copied {count(rates.files, 'file')} ({size(rates.bytes)}) in "
            f"{duration(rates.copy_seconds)}, {count(rates.operations, 'operation')} in {duration(rates.apply_seconds)}"
        )
    if bandwidth and number_of_bytes / bandwidth > copy:
        copy, basis = number_of_bytes / bandwidth, f"{basis}; limited to {size(bandwidth)}/s"
    return Estimate(copy + apply, basis)
