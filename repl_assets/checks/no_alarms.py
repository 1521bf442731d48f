"""The check ``no_alarms``: which alarms of a database are open, since when and what to do, on the database's own page.

The sensor ``alarms`` answers it whenever an alarm begins or ends, and after each load: Dagster shows an answer that is older than
the latest materialization as none. It keeps the open ones for whoever executes the check by hand.
"""

# No postponed annotations here: Dagster compares those of contexts as types.
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
from pydantic import TypeAdapter, ValidationError

from hive_replication.markdown import escaped, link
from hive_replication.units import when
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import NO_ALARMS, Names
from repl_assets.catalog.specs import Specs
from repl_assets.checks.findings import outdated
from repl_assets.recording.metadata import markdown_table


@dataclass(frozen=True, slots=True)
class OpenAlarm:
    """An alarm that is open.

    Args:
        database: source name; "" if it is about the whole policy, and so about each of its databases.
        since: seconds since the epoch.
        title: what is wrong, one sentence.
        advice: what to do.
        path: of the asset or run in Dagster, or "".
    """

    database: str
    since: float
    title: str
    advice: str
    path: str = ""


_ALARMS = TypeAdapter(tuple[OpenAlarm, ...])


def no_alarms_check(specs: Specs, database: CatalogDatabase) -> dg.AssetChecksDefinition:
    """The check of a database."""
    names = specs.names

    @dg.asset_check(
        asset=names.database(database.name, "load"),
        name=NO_ALARMS,
        description="No alarm is open: of lag, gaps, outages and retention, of held tables, failed runs and failed checks.",
    )
    def no_alarms(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        return dg.AssetCheckResult(**_fields(kept(context.instance, names) or (), database.name))

    return no_alarms


def kept(instance: dg.DagsterInstance, names: Names) -> tuple[OpenAlarm, ...] | None:
    """The alarms that were open at the sensor's last tick; None before its first, or where they cannot be read."""
    text = instance.daemon_cursor_storage.get_cursor_values({_key(names)}).get(_key(names))
    try:
        return _ALARMS.validate_json(text or "")
    except ValidationError:
        return None


def answer(instance: dg.DagsterInstance, names: Names, databases: Sequence[str], alarms: tuple[OpenAlarm, ...]) -> None:
    """Keeps the alarms that are open, and answers the check of the databases where something began or ended, or was loaded."""
    before = kept(instance, names)
    if before != alarms:
        instance.daemon_cursor_storage.set_cursor_values({_key(names): _ALARMS.dump_json(alarms).decode()})
    checks = {database: dg.AssetCheckKey(names.database(database, "load"), NO_ALARMS) for database in databases}
    old = outdated(instance, instance.event_log_storage.get_latest_asset_check_execution_by_key([*checks.values()]))
    for database, check in checks.items():
        if before is None or _of(before, database) != _of(alarms, database) or check in old:
            event = dg.AssetCheckEvaluation(asset_key=check.asset_key, check_name=NO_ALARMS, **_fields(alarms, database))
            instance.report_runless_asset_event(event)


def alarms_table(alarms: Sequence[OpenAlarm]) -> dg.MarkdownMetadataValue:
    """Since when alarms are open, and what to do."""
    rows = [(when(one.since), one.title, one.advice, link("look", one.path) if one.path else "") for one in alarms]
    return markdown_table(("since", "what", "what to do", ""), rows, len(rows))


def _of(alarms: tuple[OpenAlarm, ...], database: str) -> list[OpenAlarm]:
    return [one for one in alarms if one.database in ("", database)]


def _fields(alarms: tuple[OpenAlarm, ...], database: str) -> dict[str, Any]:
    found = _of(alarms, database)
    table = {"alarms": alarms_table(found)} if found else {}
    return {
        "passed": not found,
        "severity": dg.AssetCheckSeverity.WARN,  # what is wrong fails where it is
        "description": escaped("; ".join(one.title for one in found[:3])) or None,
        "metadata": {"open alarms": len(found), **table},
    }


def _key(names: Names) -> str:
    return f"hive_replication/alarms/{names.policy}"
