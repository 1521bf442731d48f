"""Failed runs as alarms: the alarm of a database or job begins with a failed run and ends with the next successful one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import dagster as dg

from repl_assets.catalog.keys import DATABASE_TAG, POLICY_TAG, Names, database_of
from repl_assets.catalog.run_statuses import FINISHED_STATUSES, ended
from sensors.alarms.alarm import Alarm, SeenRuns

_MOST_RUNS = 1_000  # of the instance that one tick reads; the next one continues
_LATE = 60.0  # seconds that the end of a run may take to reach Dagster's storage
_KEPT = 900.0  # seconds; a run that ended earlier and was changed since, e.g. its tags, has been seen
_REASON = 300  # characters


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Args:
        subject: the purpose of the run, e.g. ``windows of sales`` or ``job record``.
        run: the run.
        database: source database; "" for a job of the whole policy.
    """

    subject: str
    run: dg.DagsterRun
    database: str = ""


def outcomes(instance: dg.DagsterInstance, names: Names, seen: SeenRuns, now: float) -> tuple[list[Outcome], SeenRuns]:
    """The runs of a policy that ended since the last tick, by their end, without canceled ones; and what the next tick has seen.

    A run is found by its end, not by its creation: newer ones may have overtaken it.

    Args:
        instance: Dagster's.
        names: of the policy.
        seen: after the last tick.
        now: seconds since the epoch.
    """
    changed = dg.RunsFilter(statuses=FINISHED_STATUSES, updated_after=datetime.fromtimestamp(seen.since, UTC))
    records = instance.get_run_records(changed, limit=_MOST_RUNS, order_by="update_timestamp", ascending=True)
    new = [one for one in records if one.dagster_run.run_id not in seen.ends and ended(one) >= seen.since - _KEPT]
    new = [one for one in new if one.dagster_run.status != dg.DagsterRunStatus.CANCELED]
    found = [outcome for one in sorted(new, key=ended) for outcome in _of(one.dagster_run, names)]
    ends = {one.dagster_run.run_id: ended(one) for one in new}
    since = records[-1].update_timestamp.timestamp() if len(records) == _MOST_RUNS else now - _LATE
    known = {**seen.ends, **{one.run.run_id: ends[one.run.run_id] for one in found}}
    return found, SeenRuns(since, {run_id: end for run_id, end in known.items() if end >= since - _KEPT})


def _of(run: dg.DagsterRun, names: Names) -> Iterator[Outcome]:
    """A run by its purposes; nothing if it is not of this policy."""
    keys = [key for key in run.asset_selection or () if key.path[0] == names.policy]
    if not keys and run.tags.get(POLICY_TAG) == names.policy:
        yield Outcome(f"job {run.job_name}", run, run.tags.get(DATABASE_TAG, ""))
    for database in sorted({database_of(key) for key in keys if len(key.path) == 2}):
        yield Outcome(f"windows of {database}", run, database)
    for database in sorted({database_of(key) for key in keys if len(key.path) > 2}):
        yield Outcome(f"repairs in {database}", run, database)


def alarm_of(outcome: Outcome, instance: dg.DagsterInstance) -> Alarm:
    """The alarm of a run that failed."""
    run = outcome.run
    title = f"a run failed ({outcome.subject}): {_reason(instance, run.run_id)}"
    advice = "the sensor retries the window; if it keeps failing, remove the cause, then Re-execute from failure"
    if not outcome.subject.startswith("windows"):
        advice = "remove the cause, then Re-execute from failure"
    return Alarm("run failure", outcome.subject, title, advice, f"/runs/{run.run_id}", outcome.database)


def _reason(instance: dg.DagsterInstance, run_id: str) -> str:
    """The error of the first failed step, else of the run."""
    for kind in (dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.RUN_FAILURE):
        for entry in instance.all_logs(run_id, of_type=kind):
            event = entry.dagster_event
            data = event.step_failure_data if event and event.is_step_failure else None
            description = data.user_failure_data.description if data and data.user_failure_data else None
            text = description or (data.error.message if data and data.error else None) or (event.message if event else None)
            if text:
                return " ".join(text.split())[:_REASON]
    return "no reason was recorded"
