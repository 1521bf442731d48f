"""Failed runs as alarms: the alarm of a database or job begins with a failed run and ends with the next successful one.

That of repairs ends once all is repaired that failed runs were to repair: the repair of another table mends nothing of it.

A run of several databases has an outcome for each: where the steps of one fail, those of the others go on. What ends an alarm
without another run: ``mended_runs``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import dagster as dg

from hive_replication.errors import BadRequest, Refused
from repl_assets.catalog.keys import DATABASE_TAG, POLICY_TAG, Names, database_of, hive_name
from repl_assets.catalog.run_partitions import configured, is_of_range, partitions_of, settings_of
from repl_assets.catalog.run_statuses import FINISHED_STATUSES, ended
from repl_assets.steps.repair import NOT_REPAIRED
from repl_assets.steps.windows import PAUSED
from sensors.alarms.alarm import Alarm, SeenRuns

_MOST_RUNS = 1_000  # of the instance that one query reads
#: Seconds by which the end of a run may be late in Dagster's storage: it takes its time, and is told by the clock of the run's
#: host, which may be behind. A run that ended earlier, and was changed since, e.g. its tags, has been seen.
_KEPT = 900.0
_MICROSECOND = timedelta(microseconds=1)
_REASON = 300  # characters
_MOST_PARTS = 1_000  # that an alarm keeps apart; of more only the tables
_MOST_SHOWN = 5  # of them in a title
_LEFT = "; left to repair: "  # in a title, before what several runs left

#: A table, and a Hive partition of it or "" for all of it.
Part = tuple[str, str]
NO_TABLE: Part = ("", "")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Args:
        subject: the purpose of the run, e.g. ``windows of sales`` or ``job record``.
        run: the run.
        database: source database; "" for a job of the whole policy.
        reason: why it failed; "" where it did not.
        parts: of the database that it was to repair, or failed to: tables, each with a Hive partition or "" for all of it.
    """

    subject: str
    run: dg.DagsterRun
    database: str = ""
    reason: str = ""
    parts: tuple[Part, ...] = (NO_TABLE,)


def outcomes(
    instance: dg.DagsterInstance, names: Names, databases: Collection[str], seen: SeenRuns, now: float
) -> tuple[list[Outcome], SeenRuns]:
    """The runs of a policy that ended since the last tick, by their end, without canceled ones; and what the next tick has seen.

    A run is found by its end, not by its creation: newer ones may have overtaken it.

    Args:
        instance: Dagster's.
        names: of the policy.
        databases: source names of it.
        seen: after the last tick.
        now: seconds since the epoch.
    """
    records, since = _changed(instance, seen.since, now)
    new = [one for one in records if one.dagster_run.run_id not in seen.ends and ended(one) >= seen.since - _KEPT]
    keys = {*names.own({key for one in new for key in one.dagster_run.asset_selection or ()}, databases)}
    own = [one for one in sorted(new, key=ended) if _is_of(one.dagster_run, names, keys)]
    told = (one.dagster_run for one in own if one.dagster_run.status != dg.DagsterRunStatus.CANCELED)
    found = [outcome for run in told for outcome in _of(instance, run, names, databases)]
    known = {**seen.ends, **{one.dagster_run.run_id: ended(one) for one in own}}
    return found, SeenRuns(since, {run_id: end for run_id, end in known.items() if end >= since - _KEPT})


def _changed(instance: dg.DagsterInstance, since: float, now: float) -> tuple[list[dg.RunRecord], float]:
    """The finished runs that changed since, and those of before whose ends may have been late; and up to when these are all.

    Of many the rest is left to the next tick, which comes further: what was read for its lateness alone does not count.
    """
    found = dict[str, dg.RunRecord]()
    after = datetime.fromtimestamp(since - _KEPT, UTC)
    while True:
        changed = dg.RunsFilter(statuses=FINISHED_STATUSES, updated_after=after)
        page = instance.get_run_records(changed, limit=_MOST_RUNS, order_by="update_timestamp", ascending=True)
        found |= {one.dagster_run.run_id: one for one in page}
        if len(page) < _MOST_RUNS:
            return list(found.values()), now
        first, last = page[0].update_timestamp, page[-1].update_timestamp
        if since < last.timestamp() <= now:  # those of clocks that are ahead are read, too: the next tick begins with now
            return list(found.values()), last.timestamp()
        after = last - _MICROSECOND if first < last else last  # others may have changed at the same time as the last one


def _is_of(run: dg.DagsterRun, names: Names, keys: Collection[dg.AssetKey]) -> bool:
    return any(key in keys for key in run.asset_selection) if run.asset_selection else run.tags.get(POLICY_TAG) == names.policy


def _of(instance: dg.DagsterInstance, run: dg.DagsterRun, names: Names, known: Collection[str]) -> Iterator[Outcome]:
    """A run of the policy by its purposes."""
    keys = names.own(run.asset_selection or (), known)
    if not (run.asset_selection or _was_refused(instance, run, names) or _planned_only(run, names)):
        reason = "" if run.is_success else _why(instance, run.run_id)
        yield Outcome(f"job {run.job_name}", run, run.tags.get(DATABASE_TAG, ""), reason, configured(run) or (NO_TABLE,))
    of_tables = [key for key in keys if len(key.path) > 2 or key == names.tables(database_of(key))]
    whole, in_tables = {database_of(key) for key in keys if key not in of_tables}, {*map(database_of, of_tables)}
    databases = whole | in_tables
    reasons = dict.fromkeys(databases, "") if run.is_success else _by_database(instance, run.run_id, names, databases)
    unpaused = (name for name in sorted(whole & reasons.keys()) if not reasons[name].startswith(f"{name} {PAUSED} "))
    yield from (Outcome(f"windows of {name}", run, name, reasons[name]) for name in unpaused)
    for name in sorted(in_tables & reasons.keys()):
        own = [key for key in of_tables if database_of(key) == name]
        parts = _selected(instance, run, own, names, failed=bool(reasons[name]))
        yield Outcome(f"repairs in {name}", run, name, reasons[name], _not_repaired(parts, reasons[name]))


def _was_refused(instance: dg.DagsterInstance, run: dg.DagsterRun, names: Names) -> bool:
    """Whether it is a job that an operator watches, and that has told him at once that it does not do what he asked for.

    That of a failover is none of them: it refuses to go on also where it has closed the source, or opened the target.
    """
    database = run.tags.get(DATABASE_TAG, "")
    if run.is_success or run.job_name not in jobs_of(names, database, "pause", "resume", "plan"):
        return False
    failures = [event.step_failure_data for event in _events(instance, run.run_id, dg.DagsterEventType.STEP_FAILURE)]
    codes = [one.user_failure_data.metadata.get("exit_code") for one in failures if one.user_failure_data]
    return any(code is not None and code.value in (BadRequest.exit_code, Refused.exit_code) for code in codes)


def _planned_only(run: dg.DagsterRun, names: Names) -> bool:
    """Whether the job of a failover has planned it, which takes none of the steps that failed."""
    if not run.is_success or run.job_name not in jobs_of(names, run.tags.get(DATABASE_TAG, ""), "failover"):
        return False
    return all(one.get("step") in (None, "plan") for one in settings_of(run))


def jobs_of(names: Names, database: str, *jobs: str) -> list[str]:
    """Names of a database's jobs: each is named for what it does."""
    return [names.local(f"{what}_{database}") for what in jobs]


def _selected(
    instance: dg.DagsterInstance, run: dg.DagsterRun, keys: Iterable[dg.AssetKey], names: Names, *, failed: bool
) -> tuple[Part, ...]:
    """The tables that a run's assets are of, with its partitions; of a database in overflow the partition is the table.

    What failed for all partitions is left of each of them, so that the success of any part of them counts; what was done for all
    is done for the table, also for those that were dropped in between. Of a range that is not known any more nothing is done.
    """
    parts = set[Part]()
    for key in keys:
        database = database_of(key)
        overflow = key == names.tables(database)
        table = "" if overflow else hive_name(key.path[2].removesuffix("__dump"))
        definition = names.table_partitions(database) if overflow else names.partitions(database, table)
        found = partitions_of(instance, run.tags, definition)
        if is_of_range(run.tags) and "" in found:
            each = found[1:]
            found = (each or found) if failed else found if each else ()
        parts |= {(part, "") if overflow else (table, part) for part in found}
    return tuple(sorted(parts))


def _not_repaired(parts: tuple[Part, ...], reason: str) -> tuple[Part, ...]:
    """What a run has not repaired: where its reason names all tables whose loads failed, others had their turn."""
    reasons = reason.split("; ") if len(reason) < _REASON else []
    held = {table for table, _ in parts for one in reasons if one.startswith((f"{table} {NOT_REPAIRED}", f"{table} is held:"))}
    failed = {table for table, _ in parts for one in reasons if held and one.startswith(f"{table}: ")}
    return tuple(part for part in parts if part[0] in held | failed) or parts


def alarm_after(outcome: Outcome, known: Alarm | None) -> Alarm | None:
    """The alarm of a purpose after another run for it: what its runs failed to do, and none did since (pure).

    Args:
        outcome: of the run.
        known: the alarm before it, if one was open.

    Returns:
        The alarm; None where nothing is left.
    """
    left = {*known.parts} or {(table, "") for table in known.tables} or {NO_TABLE} if known else set[Part]()
    done = {*outcome.parts}
    if outcome.reason:
        alarm, left = _alarm_of(outcome), left | done
    else:
        alarm, left = known, {(table, part) for table, part in left if not done & {(table, part), (table, "")}}
    if alarm is None or not left:
        return None
    if len(left) > _MOST_PARTS:
        left = {(table, "") for table, _ in left}
    tables = tuple(sorted({table for table, _ in left if table}))
    title = alarm.title.partition(_LEFT)[0]
    if tables and not (outcome.reason and left == done):
        shown = sorted(shown_part(part) for part in left if part[0])
        title += _LEFT + ", ".join(shown[:_MOST_SHOWN]) + (f" and {len(shown) - _MOST_SHOWN} more" if shown[_MOST_SHOWN:] else "")
    parts = () if all(table and not part for table, part in left) or left == {NO_TABLE} else tuple(sorted(left))
    return replace(alarm, title=title, tables=tables, parts=parts)


def shown_part(part: Part) -> str:
    """A table, or a Hive partition of it as ``table/ds=1``."""
    return "/".join(filter(None, part))


def _alarm_of(outcome: Outcome) -> Alarm:
    title = f"a run failed ({outcome.subject}): {outcome.reason}"
    advice = "the sensor retries the window; if it keeps failing, remove the cause, then Re-execute from failure"
    if not outcome.subject.startswith("windows"):
        advice = "remove the cause, then Re-execute from failure"
    return Alarm("run failure", outcome.subject, title, advice, f"/runs/{outcome.run.run_id}", outcome.database)


def _by_database(instance: dg.DagsterInstance, run_id: str, names: Names, databases: Collection[str]) -> dict[str, str]:
    """Why a failed run failed, by database; "" for one of which all was done, since independent steps go on where one fails.

    Databases of which it was to do nothing, as where another one's steps are executed again, are left out.
    """
    planned = list[tuple[dg.AssetKey, str]]()
    for kind in (dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED, dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED):
        for event in _events(instance, run_id, kind):
            key = getattr(event.event_specific_data, "asset_key", None)
            planned += [(key, event.step_key)] if key is not None and event.step_key else []
    own = {*names.own((key for key, _ in planned), databases)}
    steps: defaultdict[str, set[str]] = defaultdict(set)
    for key, step in planned:
        steps[database_of(key) if key in own else ""].add(step)
    if not steps:
        return dict.fromkeys(databases, _why(instance, run_id))
    done = {event.step_key for event in _events(instance, run_id, dg.DagsterEventType.STEP_SUCCESS)}
    failed = {name: _why(instance, run_id, own) for name, own in steps.items() if not own <= done}
    return {name: failed.get(name, "") for name in databases if name in steps}


def _why(instance: dg.DagsterInstance, run_id: str, steps: Collection[str] | None = None) -> str:
    """The error of the first failed step, of some steps or of all, else of the run."""
    failures = _events(instance, run_id, dg.DagsterEventType.STEP_FAILURE)
    failed = [event for event in failures if steps is None or event.step_key in steps]
    for event in (*failed, *_events(instance, run_id, dg.DagsterEventType.RUN_FAILURE)):
        data = event.step_failure_data if event.is_step_failure else None
        description = data.user_failure_data.description if data and data.user_failure_data else None
        text = description or (data.error.message if data and data.error else None) or event.message
        if text:
            return " ".join(text.split())[:_REASON]
    return "no reason was recorded"


def _events(instance: dg.DagsterInstance, run_id: str, kind: dg.DagsterEventType) -> Iterator[dg.DagsterEvent]:
    yield from (entry.dagster_event for entry in instance.all_logs(run_id, of_type=kind) if entry.dagster_event)
