"""The run launcher of ``dagster.yaml``: runs by the code server, then by forks of a process that has the definitions."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable, Generator
from pathlib import Path

import dagster as dg
import psutil
import pytest
from dagster._core.definitions.selector import JobSubsetSelector
from dagster._core.launcher import WorkerStatus
from dagster._core.remote_representation import code_location
from dagster._core.workspace.context import WorkspaceProcessContext, WorkspaceRequestContext
from dagster._core.workspace.load_target import PythonFileTarget

from repl_assets.run_launcher import ForkingRunLauncher, launcher
from resources.heartbeat import PROCESS_TAG

# Servers are Dagster's here. It does not wait for the end of those that it has started.
pytestmark = [pytest.mark.servers, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]

_CODE = """
import os, time
from pathlib import Path
import dagster as dg
from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext, DefinitionsLoadType

context = DefinitionsLoadContext.get()
if context.load_type is DefinitionsLoadType.INITIALIZATION:
    GIVEN = Path(__file__).with_name("policy").read_text()
    context.add_to_pending_reconstruction_metadata("policy", GIVEN)
else:
    GIVEN = context.reconstruction_metadata.get("policy", "none")

with open(Path(__file__).with_name("imports"), "a") as imports:
    print(os.getpid(), file=imports)

@dg.asset
def made() -> dg.MaterializeResult:
    print("what user code prints")
    found = {"version": VERSION, "policy": GIVEN, "parent": os.getppid(), "environment": os.environ["OF_DAEMON"]}
    return dg.MaterializeResult(metadata=found)

@dg.asset
def slow() -> None:
    time.sleep(300)

defs = dg.Definitions([made, slow], executor=dg.in_process_executor)
"""


class Daemon:
    """What launches runs: an instance, its launcher and the code servers of a workspace."""

    def __init__(self, instance: dg.DagsterInstance, process: WorkspaceProcessContext) -> None:
        self.instance, self._process = instance, process
        found = instance.run_launcher
        assert isinstance(found, ForkingRunLauncher)
        self.launcher = found

    @property
    def workspace(self) -> WorkspaceRequestContext:
        return self._process.create_request_context()

    def reload(self) -> None:
        """What the button Reload does."""
        self._process.reload_code_location(self.workspace.code_location_names[0])

    def launch(self, asset: str) -> str:
        """Launches a run that materializes an asset."""
        run_id = self.request(asset)
        self.instance.launch_run(run_id, self.workspace)
        return run_id

    def request(self, asset: str) -> str:
        """A run that materializes an asset, as it waits in the queue."""
        location = self.workspace.get_code_location(self.workspace.code_location_names[0])
        assert isinstance(location, code_location.GrpcServerCodeLocation)
        repository = next(iter(location.get_repositories().values()))
        selection = frozenset({dg.AssetKey(asset)})
        job = location.get_job(JobSubsetSelector(location.name, repository.name, "__ASSET_JOB", None, selection))
        plan = location.get_execution_plan(job, {}, None, None, self.instance)
        run = self.instance.create_run(
            job_name=job.name,
            run_id=None,
            run_config={},
            status=None,
            tags={},
            root_run_id=None,
            parent_run_id=None,
            step_keys_to_execute=None,
            execution_plan_snapshot=plan.execution_plan_snapshot,
            job_snapshot=job.job_snapshot,
            parent_job_snapshot=None,
            asset_selection=selection,
            asset_check_selection=None,
            resolved_op_selection=None,
            op_selection=None,
            remote_job_origin=job.get_remote_origin(),
            job_code_origin=job.get_python_origin(),
            asset_graph=repository.asset_graph,
        )
        return run.run_id

    def run(self, run_id: str) -> dg.DagsterRun:
        found = self.instance.get_run_by_id(run_id)
        assert found is not None
        return found

    def finished(self, run_id: str) -> dict[str, object]:
        """Metadata of what a run materialized."""
        _wait(lambda: self.run(run_id).is_finished)
        [entry] = self.instance.fetch_materializations(dg.AssetKey("made"), limit=1).records
        assert entry.run_id == run_id
        assert entry.asset_materialization is not None
        return {name: value.value for name, value in entry.asset_materialization.metadata.items()}

    def forks(self) -> str:
        """Launches runs until one is forked; returns it."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            run_id = self.launch("made")
            self.finished(run_id)
            if PROCESS_TAG in self.run(run_id).tags:
                return run_id
        return pytest.fail("nothing is forked")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has the code location's file."""
    made = tmp_path_factory.mktemp("launcher")
    (made / "project.py").write_text(f"VERSION = 1\n{_CODE}")
    (made / "policy").write_text("first")
    return made


@pytest.fixture(scope="module")
def daemon(folder: Path) -> Generator[Daemon]:
    """A daemon with a code server, for all tests."""
    home = folder / "home"
    home.mkdir()
    chosen = {"module": "repl_assets.run_launcher", "class": "ForkingRunLauncher"}
    (home / "dagster.yaml").write_text(f"run_launcher: {chosen}\ntelemetry: {{enabled: false}}\n")
    target = PythonFileTarget(str(folder / "project.py"), None, str(folder), "location")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OF_DAEMON", "seen")
        with dg.DagsterInstance.from_config(str(home)) as instance, WorkspaceProcessContext(instance, target) as process:
            yield Daemon(instance, process)
    del process
    gc.collect()


def _wait(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_definitions_are_made_once_for_all_forks(daemon: Daemon, folder: Path) -> None:
    first = daemon.launch("made")
    daemon.finished(first)
    assert PROCESS_TAG not in daemon.run(first).tags  # there was nothing to fork yet
    daemon.forks()
    imports = (folder / "imports").read_text().split()
    for _ in range(3):
        told = daemon.finished(daemon.launch("made"))
        assert (told["version"], told["environment"]) == (1, "seen")
        assert str(told["parent"]) in imports
    assert (folder / "imports").read_text().split() == imports


def test_a_run_is_terminated(daemon: Daemon) -> None:
    daemon.forks()
    run_id = daemon.launch("slow")
    _wait(lambda: daemon.run(run_id).status is dg.DagsterRunStatus.STARTED)
    assert daemon.launcher.check_run_worker_health(daemon.run(run_id)).status is WorkerStatus.RUNNING
    assert daemon.launcher.terminate(run_id)
    _wait(lambda: daemon.run(run_id).is_finished)
    assert daemon.run(run_id).status is dg.DagsterRunStatus.CANCELED
    assert not daemon.launcher.terminate(run_id)


def test_a_killed_run_is_found(daemon: Daemon) -> None:
    daemon.forks()
    run_id = daemon.launch("slow")
    _wait(lambda: daemon.run(run_id).status is dg.DagsterRunStatus.STARTED)
    os.kill(int(daemon.run(run_id).tags[PROCESS_TAG].split()[1]), signal.SIGKILL)
    _wait(lambda: daemon.launcher.check_run_worker_health(daemon.run(run_id)).status is WorkerStatus.FAILED)
    assert not daemon.launcher.terminate(run_id)


def test_definitions_that_are_loaded_again_count(daemon: Daemon, folder: Path) -> None:
    daemon.forks()
    (folder / "project.py").write_text(f"VERSION = 2\n{_CODE}")
    daemon.reload()
    assert daemon.finished(daemon.launch("made"))["version"] == 2
    assert daemon.finished(daemon.forks())["version"] == 2


def test_a_run_has_what_its_code_server_was_loaded_with(daemon: Daemon, folder: Path) -> None:
    """As a policy: what forks runs begins with the first run, which may be long after the code server was loaded."""
    daemon.launcher.dispose()
    (folder / "policy").write_text("edited")
    assert daemon.finished(daemon.launch("made"))["policy"] == "first"
    assert daemon.finished(daemon.forks())["policy"] == "first"
    waiting = daemon.request("made")
    daemon.reload()
    assert daemon.finished(daemon.forks())["policy"] == "edited"
    daemon.instance.launch_run(waiting, daemon.workspace)
    assert daemon.finished(waiting)["policy"] == "first"
    assert daemon.finished(daemon.forks())["policy"] == "edited"


def test_runs_outlive_what_forked_them(daemon: Daemon) -> None:
    forked = daemon.forks()
    run_id = daemon.launch("slow")
    _wait(lambda: daemon.run(run_id).status is dg.DagsterRunStatus.STARTED)
    process = psutil.Process(int(daemon.run(run_id).tags[PROCESS_TAG].split()[1]))
    server = process.parent()
    assert server is not None
    server.kill()
    server.wait(30)
    assert process.is_running()
    assert daemon.forks() != forked  # by a new one
    assert daemon.launcher.terminate(run_id)


@pytest.mark.long
def test_what_hangs_is_replaced(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    forked = daemon.run(daemon.forks()).tags[PROCESS_TAG]
    monkeypatch.setattr(launcher, "PATIENCE", 1)
    (server,) = [one for one in psutil.Process().children() if "repl_assets.run_launcher.fork_server" in one.cmdline()]
    server.suspend()
    with pytest.raises(TimeoutError, match="the next run gets another"):
        daemon.launch("made")
    monkeypatch.undo()
    assert daemon.run(daemon.forks()).tags[PROCESS_TAG] != forked


@pytest.mark.long
def test_what_cannot_be_started_is_not_forked(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    daemon.launcher.dispose()
    monkeypatch.setattr(launcher.subprocess, "Popen", _cannot(launcher.subprocess.Popen))
    for _ in range(2):
        run_id = daemon.launch("made")
        daemon.finished(run_id)
        assert PROCESS_TAG not in daemon.run(run_id).tags


def _cannot(popen: Callable[..., object]) -> Callable[..., object]:
    def start(command: list[str], **arguments: object) -> object:
        return popen([command[0], "-c", "raise SystemExit(1)"] if "-m" in command else command, **arguments)

    return start
