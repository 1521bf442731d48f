"""When the sensor asks for a run that records what large loads left out."""

from __future__ import annotations

import time
from functools import partial

import dagster as dg
from dagster._core.test_utils import create_run_for_test

from hive_replication.process import this_process
from repl_assets.catalog.keys import POLICY_TAG, UNRECORDED_TAG, Names
from resources.heartbeat import PROCESS_TAG
from sensors.record_rest import RETRY_DELAY, tick

NAMES = Names("p")


def request(instance: dg.DagsterInstance, *, later: float = 0.0) -> dg.RunRequest:
    found = tick(instance, NAMES, "p_record", time.time() + later)
    assert isinstance(found, dg.RunRequest), found.skip_message
    return found


def reason(instance: dg.DagsterInstance) -> str:
    found = tick(instance, NAMES, "p_record", time.time())
    assert isinstance(found, dg.SkipReason), found
    return str(found.skip_message)


def test_runs_of_this_policy_that_are_over() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        create_run_for_test(instance, status=dg.DagsterRunStatus.SUCCESS, tags={UNRECORDED_TAG: "another"})
        create_run_for_test(instance, status=dg.DagsterRunStatus.SUCCESS, tags={UNRECORDED_TAG: ""})
        loading = create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED, tags={UNRECORDED_TAG: "p"})
        assert reason(instance) == "all changed partitions are recorded"
        instance.report_run_failed(loading)  # of two databases that it loads, say, the second failed
        assert request(instance).run_key == f"p_record:{loading.run_id}:"


def test_one_run_at_a_time_and_again_after_a_failure() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        create_run_for_test(instance, status=dg.DagsterRunStatus.SUCCESS, tags={UNRECORDED_TAG: "p"})
        first = request(instance)
        create_run_for_test(instance, job_name="p_record", status=dg.DagsterRunStatus.STARTED)  # of another project
        assert request(instance).run_key == first.run_key
        ours = partial(create_run_for_test, instance, job_name="p_record", tags={POLICY_TAG: "p"})
        run = ours(status=dg.DagsterRunStatus.STARTED)
        assert "in progress" in reason(instance)
        host, pid, _ = this_process().split()
        instance.add_run_tags(run.run_id, {PROCESS_TAG: f"{host} {pid} 1.00"})  # another process had this number before
        assert "ended without reporting a result" in reason(instance)
        assert "the last run failed" in reason(instance)
        assert request(instance, later=RETRY_DELAY[0] + 1).run_key != first.run_key
        assert request(instance, later=-86_400).run_key != first.run_key, "the clock was set back"
        ours(status=dg.DagsterRunStatus.SUCCESS)
        assert request(instance).run_key != first.run_key  # at once: it did its share, and more is left
