"""The checks that each load of a database answers: their specs, and their results from the load's report."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg

from hive_replication.load.report import LoadReport
from hive_replication.policy.checks import CheckName, Checks
from repl_assets.catalog.keys import FILES_PROVEN, NOTHING_HELD, SAME_OBJECTS, UP_TO_DATE, Names
from repl_assets.checks.not_held import held_advice
from repl_assets.recording.metadata import held_table, markdown_table


def load_checks(settings: Checks, key: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """The checks that each load answers."""
    descriptions: dict[CheckName, str] = {
        FILES_PROVEN: "Each file that the load was to bring is in the replica, and proven equal to its source by checksums.",
        "nothing_held": "No table or group of tables failed in this window.",
    }
    return [
        dg.AssetCheckSpec(name, asset=key, description=description, blocking=name in settings.blocking)
        for name, description in descriptions.items()
        if name in settings.run
    ]


def window_checks(settings: Checks, key: dg.AssetKey) -> list[dg.AssetCheckKey]:
    """The checks that the run of a window evaluates; other checks of a database take longer than many windows."""
    names = [UP_TO_DATE, *([SAME_OBJECTS] if SAME_OBJECTS in settings.run else [])]
    return [*(spec.key for spec in load_checks(settings, key)), *(dg.AssetCheckKey(key, name) for name in names)]


def check_results(report: LoadReport, names: Names, database: str) -> Iterator[dg.AssetCheckResult]:
    """The results of :func:`load_checks`, for a load of a source database."""
    key = names.database(database, "load")
    reasons = {table: one.reason for one in report.held for table in ((one.table,) if one.table else one.tables)}
    advice = held_advice(names, database, report.database, reasons)
    unproven = [
        *((one.task.target, "has no checksum") for one in report.copies if not (one.proof.algorithm and one.proof.value)),
        *((one.task.target, one.reason) for one in report.unproven),
    ]
    yield dg.AssetCheckResult(
        passed=not unproven,
        asset_key=key,
        check_name=FILES_PROVEN,
        metadata={
            "files": len(report.copies),
            "without recorded checksum": report.copies.unrecorded,
            "not proven": len(unproven),
        }
        | ({"unproven": markdown_table(("file", "why"), unproven, len(unproven)), **advice} if unproven else {}),
    )
    yield dg.AssetCheckResult(
        passed=not report.held,
        asset_key=key,
        check_name=NOTHING_HELD,
        metadata={"held": held_table(report), **advice} if report.held else {},
    )
