"""Runs that ended between a load and the recording of what it changed: killed, canceled, or failed midway.

The next load finds done what theirs did, and touches none of it. So a load marks its run before it begins, and takes the mark
away once all is recorded, or where it failed before it changed anything; the job ``record`` compares the marked databases with
what Dagster shows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Generator, Iterable
from contextlib import contextmanager

import dagster as dg

from hive_replication.errors import ReplicationError
from repl_assets.catalog.keys import LOADING_TAG, Names, loading_tag
from repl_assets.catalog.run_statuses import FAILED_STATUSES

_ALL = -1  # before any event
_MARK = re.compile(r"(?P<run>\S+) (?P<after>-1|[0-9]{1,19}) (?P<database>.+)")


@contextmanager
def until_recorded(context: dg.OpExecutionContext, names: Names, database: str, after: int | None) -> Generator[None]:
    """Around a load and its recording: the run is marked until both are done, or the load fails without having changed anything.

    Args:
        context: the step's.
        names: of the policy.
        database: source database.
        after: the load changes tables by later events; None where by any.
    """
    tag, run_id = loading_tag(database), context.run_id  # the id: runs that execute this one again are given its tags
    mark = f"{run_id} {_ALL if after is None else after} {database}"
    context.instance.add_run_tags(run_id, {LOADING_TAG: names.policy, tag: mark})
    try:
        yield
    except dg.Failure as failure:
        error = failure.__context__
        if isinstance(error, ReplicationError) and error.unchanged:
            context.instance.add_run_tags(run_id, {tag: ""})
        raise
    context.instance.add_run_tags(run_id, {tag: ""})


def interrupted_runs(instance: dg.DagsterInstance, names: Names) -> list[str]:
    """Ids of runs that failed, or were canceled, after a load began in them, the newest first, until they are recorded."""
    wanted = dg.RunsFilter(tags={LOADING_TAG: names.policy}, statuses=FAILED_STATUSES)
    return [record.dagster_run.run_id for record in instance.get_run_records(wanted)]


def interrupted_loads(instance: dg.DagsterInstance, run_ids: Iterable[str]) -> dict[str, dict[str, int]]:
    """The databases whose loads in some runs are not recorded, and by run the events after which these loads began."""
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for run in filter(None, map(instance.get_run_by_id, run_ids)):
        for name, mark in run.tags.items():
            told = _MARK.fullmatch(mark) if name.startswith(f"{LOADING_TAG}-") else None
            if told and told["run"] == run.run_id:
                found[told["database"]][run.run_id] = int(told["after"])
    return dict(sorted(found.items()))
