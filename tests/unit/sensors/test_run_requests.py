"""The tags of runs, and what Dagster's ``tag_concurrency_limits`` make of them with the settings that this project shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.test_utils import create_run_for_test
from dagster._utils.tags import TagConcurrencyLimitsCounter

from repl_assets.catalog.keys import SOURCE_TAG, Names, Stage, Window, metastore_tags
from repl_assets.definitions import build_defs
from sensors.notification_log.run_requests import forget_old_windows, run_request
from sensors.notification_log.runs import Start
from tests.lags import POLICY
from tests.unit.repl_assets.test_dagster_definitions import CATALOG, ROOT

_OTHER, _SMALL = "thrift://other-metastore:9083", "thrift://small-metastore:9083"


def tags(source: str, target: str) -> dict[str, str]:
    """Tags of a window's run between two metastores."""
    sides = {
        "source": POLICY.source.model_copy(update={"metastore": source}),
        "target": POLICY.target.model_copy(update={"metastore": target}),
    }
    policy = POLICY.model_copy(update=sides)
    return dict(run_request(Names.of(policy), Start("window", Window(1, 2), 1, ("sales",)), policy).tags)


def shown_in_settings() -> str:
    """The project's settings with the lines that are comments in them."""
    lines = (ROOT / "dagster.yaml").read_text("utf-8")
    return re.sub(r"# (tag_concurrency_limits:|  - \{key)", r"\1", lines)


def shown_in_manual() -> str:
    (section,) = re.findall(r"```yaml\n(concurrency:\n.*?)```", (ROOT / "docs/dagster.md").read_text("utf-8"), re.DOTALL)
    return section


def counter(settings: str, home: Path, running: list[dict[str, str]]) -> TagConcurrencyLimitsCounter:
    """What the daemon counts with these runs in progress."""
    (home / "dagster.yaml").write_text(settings)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        limits: Any = instance.get_concurrency_config().run_queue_config.tag_concurrency_limits  # type: ignore[union-attr]
    return TagConcurrencyLimitsCounter(limits, [dg.DagsterRun("job", tags=one) for one in running])


def test_runs_are_limited_for_each_metastore(tmp_path: Path) -> None:
    limit = yaml.safe_load(shown_in_settings())["concurrency"]["runs"]["tag_concurrency_limits"][0]["limit"]
    run, elsewhere = tags(_OTHER, _OTHER), tags(_SMALL, _SMALL)
    assert not counter(shown_in_settings(), tmp_path, [run] * (limit - 1)).is_blocked(dg.DagsterRun("job", tags=run))
    full = counter(shown_in_settings(), tmp_path, [run] * limit)
    assert full.is_blocked(dg.DagsterRun("job", tags=run))
    assert full.is_blocked(dg.DagsterRun("job", tags=tags(_SMALL, _OTHER)))
    assert not full.is_blocked(dg.DagsterRun("job", tags=elsewhere))


def test_runs_are_limited_for_one_metastore(tmp_path: Path) -> None:
    full = counter(shown_in_manual(), tmp_path, [tags(_OTHER, _SMALL), tags(_OTHER, _SMALL)])
    assert full.is_blocked(dg.DagsterRun("job", tags=tags(_SMALL, _SMALL)))
    assert not full.is_blocked(dg.DagsterRun("job", tags=tags(_OTHER, _OTHER)))


@pytest.mark.parametrize("job", ["rebuild_sales", "repair_sales"])
def test_jobs_that_load_are_limited_like_windows(job: str) -> None:
    made = build_defs(POLICY, CATALOG).resolve_job_def(job).tags
    assert {key: made.get(key) for key in metastore_tags(POLICY)} == metastore_tags(POLICY)


def test_old_windows_are_forgotten_a_few_a_tick_but_for_those_that_wait_for_approval() -> None:
    names, policy = Names.of(POLICY), POLICY.model_copy(update={"approval": True})
    name, keys = str(names.windows.name), [f"{end}-{end + 1}" for end in range(2_100)]
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(name, keys)
        for window in (keys[0], keys[10]):  # planned one after the other: the second one waits
            instance.report_runless_asset_event(dg.AssetMaterialization(names.database("sales", "plan"), partition=window))
        forget_old_windows(instance, names, policy)
        left = [keys[10], *keys[51:]]
        assert instance.get_dynamic_partitions(name) == left
        for _ in range(2):
            forget_old_windows(instance, names, policy)
        assert instance.get_dynamic_partitions(name) == [keys[10], *keys[100:]]
        forget_old_windows(instance, names, POLICY)
        assert instance.get_dynamic_partitions(name) == keys[100:]


@pytest.mark.parametrize("stage", ["dump", "load", "approval"])
def test_the_window_of_an_unfinished_run_is_not_forgotten(stage: Stage) -> None:
    """Dagster looks it up when a step ends; without it a bootstrap of hours would fail in its last moment."""
    names = Names.of(POLICY)
    window, later, name = "bootstrap-170", [f"{end}-{end + 1}" for end in range(1000, 3000)], str(names.windows.name)
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(name, ["1-2", window, *later])
        run = create_run_for_test(
            instance,
            asset_selection=frozenset([names.database("sales", stage)]),
            tags={"dagster/partition": window},
            status=dg.DagsterRunStatus.STARTED,
        )
        forget_old_windows(instance, names, POLICY)
        assert instance.get_dynamic_partitions(name) == [window, *later]
        instance.report_run_failed(run)
        forget_old_windows(instance, names, POLICY)
        assert instance.get_dynamic_partitions(name) == later


def test_metastores_with_many_addresses_fit_into_a_tag() -> None:
    assert len(tags("thrift://m:1," * 50, _OTHER)[SOURCE_TAG]) == 200


def test_parts_of_a_window_are_runs_of_their_own() -> None:
    names = Names.of(POLICY)
    keys = {run_request(names, Start("window", Window(1, 2), 1, (database,)), POLICY).run_key for database in ("sales", "other")}
    assert len(keys) == 2
