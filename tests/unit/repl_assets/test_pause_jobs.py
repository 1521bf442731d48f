"""The jobs that pause and resume, without servers."""

from __future__ import annotations

from types import SimpleNamespace

import dagster as dg
import pytest

from hive_replication.connect import connect
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.specs import Specs
from repl_assets.jobs import pause as module
from tests.lags import POLICY


@pytest.mark.parametrize("what", ["pause", "resume"])
def test_a_source_that_does_not_answer_fails_neither(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is when one pauses: a failed run says that it is not paused."""
    done: list[str] = []
    monkeypatch.setattr(module.operate, what, lambda *_: done.append(what))
    engine = SimpleNamespace(connection=connect(POLICY, timeout=1, retries=1), by="jo")  # no server is there
    monkeypatch.setattr(module, "connected_engine", lambda *_: engine)
    job: dg.JobDefinition = getattr(module, f"{what}_job")(Specs(POLICY), CatalogDatabase("sales", "", "", "", (), ()))
    nothing = dg.ResourceDefinition.none_resource()
    run = job.execute_in_process(resources={"connection": nothing, "spark": nothing})
    (said,) = run.asset_observations_for_node(f"{what}_sales__sensors")
    assert (done, said.description) == ([what], f"{what} by jo")
