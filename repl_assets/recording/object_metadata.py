"""The metadata of a changed object, the same whether the load's own run logs it or the job ``record`` does later.

Both make it of the rows of the load's report: the run of those that it writes, the job of those that are kept.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dagster as dg

if TYPE_CHECKING:
    from hive_replication import ReportRow
    from hive_replication.load.report import LoadReport

#: A table on the target and one of its Hive partitions, None for the table itself.
Object = tuple[str, str | None]
#: Columns of a report that are read here.
COLUMNS = ("section", "table", "partition", "evid", "outcome", "size", "checksum_algorithm")


@dataclass(frozen=True, slots=True)
class LoadName:
    """What a load is called, and where its whole report lies, as far as they are known.

    Args:
        directory: of the dump.
        window: e.g. ``170-1400`` or ``repair-1400``, or "".
        report: URI of the whole report, or "".
    """

    directory: str = ""
    window: str = ""
    report: str = ""

    @classmethod
    def of(cls, report: LoadReport, directory: str) -> LoadName:
        """The name of a load by its report."""
        return cls(directory, report.window, report.kept)

    @classmethod
    def read(cls, metadata: Mapping[str, Any]) -> LoadName:
        """Reads the :attr:`metadata` of a stored event."""
        values = (metadata.get(name) for name in ("directory", "window", "report"))
        return cls(*("" if value is None else str(value.value) for value in values))

    @property
    def metadata(self) -> dict[str, Any]:
        """As metadata of an event."""
        window = {"window": self.window} if self.window else {}
        report = {"report": dg.PathMetadataValue(self.report)} if self.report else {}
        return {"directory": dg.PathMetadataValue(self.directory), **window, **report}


def object_metadata(load: LoadName, rows: Iterable[ReportRow], objects: Mapping[Object, int]) -> dict[Object, dict[str, Any]]:
    """The metadata of objects: the load, how many files it brought, their bytes, and how they are proven.

    The rows are read once, whatever their number.

    Args:
        load: the load.
        rows: of its report.
        objects: with the last event that changed each. One whose last change the load has no row of is left out: another load
            changed it since.
    """
    known: set[Object] = set()
    files, sizes, proofs = Counter[Object](), Counter[Object](), defaultdict[Object, Counter[str]](Counter)
    for row in rows:
        key = (row.table or "", row.partition)
        if row.section in ("table", "partition") and key in objects and (row.evid or 0) >= objects[key]:
            known.add(key)
        elif row.section == "file" and row.outcome == "in use":
            key = key if key in objects else (key[0], None)  # of a table whose partitions are no objects
            if key in objects:
                files[key] += 1
                sizes[key] += row.size or 0
                proofs[key][row.checksum_algorithm or ""] += 1
    return {key: load.metadata | _figures(files[key], sizes[key], proofs.get(key, {})) for key in known}


def _figures(files: int, size: int, proofs: Mapping[str, int]) -> dict[str, Any]:
    proof = ", ".join(f"{number} by {algorithm}" for algorithm, number in sorted(proofs.items()))
    return {"files": files, "bytes": size, **({"proof": proof} if proof else {})}
