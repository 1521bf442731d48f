"""Failed runs as alarms: the alarm of a database or job begins with a failed run and ends with the next successful one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import dagster as dg

from repl_assets.catalog.keys import DATABASE_TAG, POLICY_TAG, Names, database_of
from repl_assets.catalog.run_statuses import FINISHED_STATUSES
from sensors.alarms.alarm import Alarm

_LAST_RUNS = 100
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


def outcomes(instance: dg.DagsterInstance, names: Names) -> list[Outcome]:
    """Finished runs of a policy among the last hundred of the instance, oldest first, without canceled runs."""
    records = instance.get_run_records(dg.RunsFilter(statuses=FINISHED_STATUSES), limit=_LAST_RUNS)
    runs = [record.dagster_run for record in reversed(records) if record.dagster_run.status != dg.DagsterRunStatus.CANCELED]
    return [outcome for run in runs for outcome in _of(run, names)]


def _of(run: dg.DagsterRun, names: Names) -> Iterator[Outcome]:
    """A run by its purposes; nothing if it is not of this policy."""
    keys = [key for key in run.asset_selection or () if key.path[0] == names.policy]
    if not keys and run.tags.get(POLICY_TAG) == names.policy:
        yield Outcome(f"job {run.job_name}", run, run.tags.get(DATABASE_TAG, ""))
    for database in sorted({database_of(key) for key in keys if len(key.path) == 2}):
        yield Outcome(f"windows of {database}", run, database)
    for database in sorted({database_of(key) for key in keys if len(key.path) > 2}):
        yield Outcome(f"repairs in {database}", run, database)


def unseen(found: list[Outcome], seen: Mapping[str, str]) -> list[Outcome]:
    """The outcomes after the last one seen of each subject."""
    new: list[Outcome] = []
    for outcome in found:
        if outcome.run.run_id == seen.get(outcome.subject):
            new = [one for one in new if one.subject != outcome.subject]
        else:
            new.append(outcome)
    return new


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
