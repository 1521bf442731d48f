"""Dagster's default run launcher, except that a run is a fork of a process that has imported and made everything."""

from __future__ import annotations

import select
import subprocess
from contextlib import suppress
from threading import Lock
from typing import IO, Any, cast

import dagster as dg

from hive_replication.process import identity, interrupt
from repl_assets.catalog.dead_runs import DEAD, has_ended, process_of
from repl_assets.dagster_private import (
    GRPC_INFO_TAG,
    CheckRunHealthResult,
    ExecuteRunArgs,
    GrpcServerCodeLocation,
    GrpcServerCodeLocationOrigin,
    LaunchRunContext,
    WorkerStatus,
    serialize_value,
)
from resources.heartbeat import process_tag

PATIENCE = 60  # seconds for a fork


class ForkingRunLauncher(dg.DefaultRunLauncher):
    """Launches runs as forks of a process that has the definitions of their code location.

    A run's process otherwise imports Dagster and this project and makes all definitions, which are seconds of CPU for each run.
    The first run of a code location is launched as by :class:`dagster.DefaultRunLauncher`. So are all of a code server that
    Dagster has not started itself, with its own account and environment, which a fork would lack.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._servers: dict[str, tuple[tuple[str, str], ForkServer]] = {}
        self._lock = Lock()

    @property
    def supports_check_run_worker_health(self) -> bool:
        """True: Dagster's run monitoring finds a run whose process was killed."""
        return True

    def launch_run(self, context: LaunchRunContext) -> None:
        """Forks the run, or has the code server launch it as long as there is nothing to fork."""
        run, server = context.dagster_run, self._server(context)
        if server is None or not server.ready():
            super().launch_run(context)
            return
        arguments = ExecuteRunArgs(cast("Any", context.job_code_origin), run.run_id, self._instance.get_ref())
        tags = process_tag(run.run_id, identity(server.fork(serialize_value(arguments))))
        if GRPC_INFO_TAG in run.tags:  # of the run that this one executes again
            tags[GRPC_INFO_TAG] = ""
        self._instance.add_run_tags(run.run_id, tags)

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Whether the process of a run still is; a run of another machine counts as running while it gives signs of life."""
        if has_ended(self._instance, run):
            return CheckRunHealthResult(WorkerStatus.FAILED, DEAD)
        return CheckRunHealthResult(WorkerStatus.RUNNING)

    def terminate(self, run_id: str) -> bool:
        """Interrupts a run; False where its process cannot be reached from this machine."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished or run.tags.get(GRPC_INFO_TAG):
            return super().terminate(run_id)
        self._instance.report_run_canceling(run)
        return interrupt(process_of(self._instance, run))

    def dispose(self) -> None:
        """Ends the processes that are forked; runs go on."""
        with self._lock:
            for _, server in self._servers.values():
                server.close()
            self._servers.clear()

    def _server(self, context: LaunchRunContext) -> ForkServer | None:
        """The process to fork for a run, begun if there is none for what its code location has loaded last."""
        remote, code = cast("Any", context.dagster_run.remote_job_origin), cast("Any", context.job_code_origin)
        if context.workspace is None or remote is None or code is None:
            return None
        origin = remote.repository_origin.code_location_origin
        if isinstance(origin, GrpcServerCodeLocationOrigin) and not origin.socket:  # ``dagster dev`` gives its own a socket
            return None
        name = str(origin.location_name)
        location = context.workspace.get_code_location(name)
        if not isinstance(location, GrpcServerCodeLocation):
            return None
        given = self._given(context.dagster_run)
        loaded = location.client.get_server_id(), given  # another id after the definitions were loaded again
        with self._lock:
            known, server = self._servers.get(name, (None, None))
            if server is None or known != loaded or server.was_killed():
                if server is not None:
                    server.close()
                server = ForkServer(code.repository_origin, given)
                self._servers[name] = loaded, server
            return server

    def _given(self, run: dg.DagsterRun) -> str:
        """What the code server gave the run along, such as policies, serialized; one that waited may have it of another load."""
        if not run.has_repository_load_data or run.execution_plan_snapshot_id is None:
            return ""
        return serialize_value(self._instance.get_execution_plan_snapshot(run.execution_plan_snapshot_id).repository_load_data)


class ForkServer:
    """A process that has the definitions of a code location (``repl_assets.run_launcher.fork_server``).

    Args:
        origin: of the code location's definitions (Dagster's ``RepositoryPythonOrigin``).
        given: what the code server gives its runs along (Dagster's ``RepositoryLoadData``), serialized, or "".
    """

    def __init__(self, origin: Any, given: str = "") -> None:
        command = [origin.executable_path, "-m", "repl_assets.run_launcher.fork_server"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._requests, self._answers = cast("IO[str]", self._process.stdin), cast("IO[str]", self._process.stdout)
        self._lock, self._has_definitions = Lock(), False
        with suppress(BrokenPipeError):  # it cannot be started: it is never ready
            print(serialize_value(origin), given, sep="\n", file=self._requests, flush=True)

    def ready(self) -> bool:
        """Whether it has the definitions; never where they cannot be made, which the daemon's log says."""
        with self._lock:
            if not self._has_definitions and select.select([self._answers], [], [], 0)[0]:
                self._has_definitions = self._answers.readline() == "\n"
            return self._has_definitions and self._process.poll() is None

    def was_killed(self) -> bool:
        """Whether it had the definitions, and is gone."""
        return self._has_definitions and self._process.poll() is not None

    def fork(self, run: str) -> int:
        """Executes a run in a fork; returns its process id.

        Args:
            run: Dagster's ``ExecuteRunArgs``, serialized.

        Raises:
            OSError: the process is gone, or does not answer.
            ValueError: it ended before it answered.
        """
        with self._lock:
            print(run, file=self._requests, flush=True)
            if not select.select([self._answers], [], [], PATIENCE)[0]:
                self._process.kill()
                raise TimeoutError(
                    f"the process that is forked for runs did not answer for {PATIENCE} s; the next run gets another"
                )
            return int(self._answers.readline())

    def close(self) -> None:
        """Ends it; runs go on."""
        with self._lock, suppress(BrokenPipeError), self._process:
            self._process.kill()
