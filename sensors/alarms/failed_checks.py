"""Failed checks as alarms: each begins with an answer that the check failed, and ends with one that it passed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

import dagster as dg

from repl_assets.catalog.keys import NOT_HELD, NOTHING_HELD, UP_TO_DATE, database_of, hive_name
from repl_assets.dagster_private import AssetCheckExecutionRecord
from repl_assets.dagster_private import AssetCheckExecutionRecordStatus as Status
from repl_assets.recording.metadata import asset_url
from sensors.alarms.alarm import Alarm

_MOST = 20  # checks of a database with alarms of their own; more get one alarm together
_REASON = 300  # characters
_CHUNK = 5_000  # keys in one statement
#: What they say is told by alarms of their own: of lag, outages and held tables.
_ELSEWHERE = frozenset({UP_TO_DATE, NOTHING_HELD, NOT_HELD})

#: The last answers of checks.
Answers = dict[dg.AssetCheckKey, AssetCheckExecutionRecord]


def told(keys: Collection[dg.AssetCheckKey]) -> list[dg.AssetCheckKey]:
    """The checks whose failures are alarms."""
    return sorted((key for key in keys if key.name not in _ELSEWHERE), key=lambda key: (key.asset_key.path, key.name))


def answers(instance: dg.DagsterInstance, keys: Sequence[dg.AssetCheckKey]) -> Answers:
    """The last answer of each check that has one."""
    latest = instance.event_log_storage.get_latest_asset_check_execution_by_key
    chunks = (keys[start : start + _CHUNK] for start in range(0, len(keys), _CHUNK))
    return {key: record for chunk in chunks for key, record in latest(chunk).items()}


def failures(found: Answers) -> Iterator[Alarm]:
    """The alarms of checks that failed; one that could not decide is none."""
    failed: defaultdict[str, list[Alarm]] = defaultdict(list)
    for key, record in found.items():
        evaluation = record.evaluation
        if record.status == Status.FAILED and evaluation and evaluation.severity == dg.AssetCheckSeverity.ERROR:
            failed[database_of(key.asset_key)].append(_alarm(key, evaluation))
    for database, alarms in failed.items():
        if len(alarms) <= _MOST:
            yield from alarms
            continue
        some = ", ".join(one.about for one in islice(alarms, 3))
        title = f"{len(alarms)} checks of {database} fail, among them {some}"
        yield Alarm("failed check", database, title, f"hive-repl repair {database}")


def unanswered(found: Answers) -> set[str]:
    """Keys of the alarms of checks that are being answered: nobody knows yet whether they end."""
    return {f"failed check: {_about(key)}" for key, record in found.items() if record.status == Status.PLANNED}


def _alarm(key: dg.AssetCheckKey, evaluation: dg.AssetCheckEvaluation) -> Alarm:
    about, why = _about(key), " ".join((evaluation.description or "").split())[:_REASON]
    what = ".".join(map(hive_name, key.asset_key.path[1:])).removesuffix("__load")
    advice = f"look at the check, then repair what differs: materialize it in Dagster, or hive-repl repair {what}"
    path = f"{asset_url(key.asset_key)}?view=checks&checkDetail={key.name}"
    return Alarm("failed check", about, f"the check {key.name} of {what} failed{f': {why}' if why else ''}", advice, path)


def _about(key: dg.AssetCheckKey) -> str:
    return f"{key.name} of {'/'.join(key.asset_key.path[1:])}"
