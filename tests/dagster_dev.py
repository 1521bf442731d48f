"""``dagster dev`` as users start it, for tests: a process on a free port, and its GraphQL API."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from hive_replication.errors import ReplicationError
from hive_replication.policy import Policy
from resources.embedded.policy import save_policy
from tests.warehouse import Warehouse

ROOT = Path(__file__).parents[1]

_LAUNCH = """mutation($params: ExecutionParams!) { launchPipelineExecution(executionParams: $params) {
  __typename
  ... on LaunchRunSuccess { run { runId } }
  ... on PythonError { message }
  ... on RunConfigValidationInvalid { errors { message } } } }"""
_RUNS = "{ runsOrError(limit: 100) { ... on Runs { results { runId jobName status startTime tags { key value } } } } }"


def wait_for(what: str, done: Callable[[], bool], seconds: float = 240, every: float = 0.5) -> None:
    """Waits until a condition is true."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, what
        time.sleep(every)


def equal(warehouse: Warehouse) -> bool:
    """Whether the replica equals its source now."""
    with suppress(AssertionError, ReplicationError, FileNotFoundError):
        warehouse.assert_equal()
        return True
    return False


@dataclass(frozen=True)
class Dagster:
    """A running ``dagster dev``.

    Args:
        url: of its UI.
        log: what it prints.
        home: DAGSTER_HOME.
    """

    url: str
    log: Path
    home: Path

    def query(self, text: str, **variables: Any) -> Any:
        """A GraphQL request."""
        body = json.dumps({"query": text, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            answer = json.load(response)
        assert "errors" not in answer, answer
        return answer["data"]

    def up(self) -> bool:
        """Whether it answers, with our project loaded."""
        with suppress(OSError):
            found = self.query("{ repositoriesOrError { ... on RepositoryConnection { nodes { name } } } }")
            return bool(found["repositoriesOrError"].get("nodes"))
        return False

    def runs(self) -> list[dict[str, Any]]:
        """Runs, the newest first, tags as a dictionary."""
        found = self.query(_RUNS)["runsOrError"]["results"]
        return [{**run, "tags": {tag["key"]: tag["value"] for tag in run["tags"]}} for run in found]

    def run(self, run_id: str) -> dict[str, Any]:
        """One of these runs."""
        return next(run for run in self.runs() if run["runId"] == run_id)

    def status(self, run_id: str) -> str:
        """Status of a run, by the beginning of its id."""
        return next(str(run["status"]) for run in self.runs() if run["runId"].startswith(run_id))

    def materialize(self, path: list[str], partition: str) -> str:
        """Does what the button Materialize does, and returns the run's id."""
        params = {
            "selector": {
                "repositoryLocationName": "hive_replication",
                "repositoryName": "__repository__",
                "pipelineName": "__ASSET_JOB",
                "assetSelection": [{"path": path}],
            },
            "mode": "default",
            "executionMetadata": {"tags": [{"key": "dagster/partition", "value": partition}]},
        }
        found = self.query(_LAUNCH, params=params)["launchPipelineExecution"]
        assert found["__typename"] == "LaunchRunSuccess", found
        return str(found["run"]["runId"])


@contextmanager
def dagster_dev(policy: Policy, folder: Path) -> Generator[Dagster]:
    """``dagster dev`` of the project with a policy.

    Args:
        policy: the policy.
        folder: where its file and DAGSTER_HOME go.
    """
    config = folder / "policy.yaml"
    save_policy(policy, config)
    with running(folder, "-w", "workspace.yaml", HIVE_REPL_CONFIG=str(config)) as dagster:
        yield dagster


@contextmanager
def running(folder: Path, *arguments: str, **environment: str) -> Generator[Dagster]:
    """``dagster dev`` on a free port, stopped with all its processes when the context closes.

    Args:
        folder: where DAGSTER_HOME (``home``) and the log go.
        arguments: what it loads.
        environment: added to this process's.
    """
    dagster = Dagster(f"http://127.0.0.1:{_free_port()}", folder / "dagster.log", folder / "home")
    dagster.home.mkdir(exist_ok=True)
    shutil.copy(ROOT / "dagster.yaml", dagster.home)
    with dagster.log.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "dagster", "dev", "-h", "127.0.0.1", "-p", dagster.url.split(":")[2], *arguments],
            cwd=ROOT,
            env={**os.environ, "DAGSTER_HOME": str(dagster.home), "PYTHONWARNINGS": "ignore", **environment},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_heed_signals,
        )
    try:
        wait_for("dagster dev does not come up", dagster.up)
        yield dagster
    finally:
        _stop(process)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _heed_signals() -> None:
    """A shell's background job ignores SIGINT, and Dagster would, too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _stop(process: subprocess.Popen[bytes]) -> None:
    family = [process, *psutil.Process(process.pid).children(recursive=True)]
    process.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(60)
    for left in family:
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            left.kill()
    process.wait(10)
