"""Failed checks as alarms: each begins with an answer that the check failed, and ends with one that it passed.

An answer that it could not decide does neither, but for the last of several in a row, with which one begins. Where the check
cannot decide of such a table at all, the answer ends one, and begins none. That a run has announced an answer says nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

import dagster as dg

from hive_replication.statements import for_shell
from repl_assets.catalog.keys import (
    NO_ALARMS,
    NO_STRAYS,
    NOT_HELD,
    NOTHING_HELD,
    UP_TO_DATE,
    Names,
    component,
    database_of,
    hive_name,
    partition_name,
)
from repl_assets.checks import no_strays
from repl_assets.checks.answered import ANSWERED, newest_executions
from repl_assets.checks.findings import (
    EvaluationKey,
    how_to_repair,
    is_undecided,
    last_execution,
    last_executions,
    may_decide,
    states_of_partitions,
)
from repl_assets.dagster_private import AssetCheckExecutionRecord
from repl_assets.dagster_private import AssetCheckExecutionRecordStatus as Status
from repl_assets.recording.metadata import asset_url
from sensors.alarms.alarm import Alarm

_MOST = 20  # checks of a database with alarms of their own; more get one alarm together
_MOST_READ = 100  # answers of one check of tables that are partitions
_REASON = 300  # characters
_UNDECIDED = 3  # answers in a row
_SEE_TO = "see to the reason: a check is answered again after it"
_MOST_UNDECIDED = 100  # checks of which the answers before the last one are read
#: What they say is told by alarms of their own: of lag, outages and held tables. Or they say which alarms are open.
_ELSEWHERE = frozenset({UP_TO_DATE, NOTHING_HELD, NOT_HELD, NO_ALARMS})

#: The last answers of checks; of those that have none yet, that one is to come.
Answers = dict[EvaluationKey, AssetCheckExecutionRecord]


def told(keys: Collection[dg.AssetCheckKey]) -> list[dg.AssetCheckKey]:
    """The checks whose failures are alarms."""
    return sorted((key for key in keys if key.name not in _ELSEWHERE), key=lambda key: (key.asset_key.path, key.name))


def answers(instance: dg.DagsterInstance, keys: Sequence[dg.AssetCheckKey], of_partitions: Sequence[dg.AssetCheckKey]) -> Answers:
    """The last answer of each check that has one, or else that one is to come.

    Args:
        instance: Dagster's.
        keys: checks of assets.
        of_partitions: checks that answer for each table of a database in overflow; only what did not pass is read of them.
    """
    found = {EvaluationKey(key): record for key, record in newest_executions(instance, keys).items()}
    return found | {key: record for check in of_partitions for key, record in _of_partitions(instance, check)}


def _of_partitions(
    instance: dg.DagsterInstance, check: dg.AssetCheckKey
) -> Iterator[tuple[EvaluationKey, AssetCheckExecutionRecord]]:
    names, database = Names(check.asset_key.path[0]), database_of(check.asset_key)
    states = states_of_partitions(instance, names, database, check.name)
    due = sorted((status not in ANSWERED, one, status) for one, status in states.items() if status != Status.SUCCEEDED)
    for _, partition, status in islice(due, _MOST_READ):  # those that failed before those that have no answer yet
        key = EvaluationKey(check, partition)
        if record := last_execution(instance, key, {status}):
            yield key, record


def undecided(instance: dg.DagsterInstance, found: Answers, known: Collection[str]) -> dict[EvaluationKey, bool]:
    """The checks that could not decide, and whether their last three answers are that: if both sides are equal, nobody knows.

    Args:
        instance: Dagster's.
        found: the last answers.
        known: keys of the alarms that are open. Of many checks those are looked at first whose answers such a one waits for.
    """
    last = [key for key, one in found.items() if one.status == Status.FAILED and one.evaluation and may_decide(one.evaluation)]
    last.sort(key=lambda key: f"failed check: {database_of(key.check.asset_key)}" not in known)
    return {key: _stays_undecided(instance, key) for key in last[:_MOST_UNDECIDED]}


def _stays_undecided(instance: dg.DagsterInstance, key: EvaluationKey) -> bool:
    evaluations = [one.evaluation for one in last_executions(instance, key, ANSWERED, _UNDECIDED)]
    return len(evaluations) == _UNDECIDED and all(one is not None and is_undecided(one) for one in evaluations)


def failures(found: Answers, unclear: Mapping[EvaluationKey, bool], known: Mapping[str, Alarm]) -> Iterator[Alarm]:
    """The alarms of checks that failed; one that could not decide is none.

    Args:
        found: the last answers.
        unclear: checks that could not decide, and whether for long (:func:`undecided`), which are alarms, too.
        known: the alarms that are open, by key. One of many checks stays as it was while they may still be as many.
    """
    failed: defaultdict[tuple[str, bool], list[Alarm]] = defaultdict(list)  # by database, and those that could not decide apart
    coming: Counter[tuple[str, bool]] = Counter()
    for key, record in found.items():
        database, evaluation = database_of(key.check.asset_key), record.evaluation
        kinds, lasts = (failed[database, False], failed[database, True]), unclear.get(key, False)
        if record.status == Status.FAILED and evaluation and (lasts or not is_undecided(evaluation)):
            kinds[lasts].append(_alarm(key, evaluation))
        elif _is_open(record):
            coming[database, True] += 1
            # One of so many that nobody looked whether it lasts may never decide: no alarm of failed checks waits for it.
            coming[database, False] += record.status == Status.PLANNED or key in unclear
    for kind, alarms in failed.items():
        database, lasts = kind
        together = _together(database, alarms, undecided=lasts)
        if len(alarms) > _MOST:
            yield together
        elif together.key in known and len(alarms) + coming[kind] > _MOST:
            yield known[together.key]
        else:
            yield from alarms


def _together(database: str, alarms: Sequence[Alarm], *, undecided: bool) -> Alarm:
    some = ", ".join(one.about for one in islice(alarms, 3))
    if undecided:
        about, what, advice = f"undecided checks of {database}", f"could not decide {_UNDECIDED} times in a row", _SEE_TO
    else:
        about, what, advice = database, "fail", f"hive-repl repair {for_shell(database)}"
    title = f"more than {_MOST} checks of {database} {what}, among them {some}"
    return Alarm("failed check", about, title, advice, database=database)


def unanswered(found: Answers) -> set[str]:
    """Keys of the alarms of checks that have no answer yet, or could not decide: nobody knows yet whether they end."""
    return {f"failed check: {_about(key)}" for key, record in found.items() if _is_open(record)}


def _is_open(record: AssetCheckExecutionRecord) -> bool:
    evaluation = record.evaluation
    return record.status == Status.PLANNED or (evaluation is not None and may_decide(evaluation))


def _alarm(key: EvaluationKey, evaluation: dg.AssetCheckEvaluation) -> Alarm:
    check, why = key.check, " ".join((evaluation.description or "").split())[:_REASON]
    what = ".".join(map(hive_name, _path(key))).removesuffix("__load")
    advice = f"look at the check, then repair what differs: {how_to_repair(key)}"
    if check.name == NO_STRAYS:
        advice = no_strays.ADVICE
    failed = "failed"
    if is_undecided(evaluation):
        failed, advice = f"could not decide {_UNDECIDED} times in a row", _SEE_TO
    title = f"the check {check.name} of {what} {failed}{f': {why}' if why else ''}"
    path = f"{asset_url(check.asset_key)}?view=checks&checkDetail={check.name}"
    return Alarm("failed check", _about(key), title, advice, path, database_of(check.asset_key))


def _about(key: EvaluationKey) -> str:
    return f"{key.check.name} of {'/'.join(_path(key))}"


def _path(key: EvaluationKey) -> Sequence[str]:
    """The names of database and table, as asset keys have them."""
    if key.partition is None:
        return key.check.asset_key.path[1:]
    return component(database_of(key.check.asset_key)), component(partition_name(key.partition))
