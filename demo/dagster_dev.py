"""``dagster dev`` as a process of the demo: started with the demo's policy, stopped with all that it started."""

from __future__ import annotations

import json
import shutil
import sys
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from hive_replication.errors import BadRequest
from resources.embedded import processes
from resources.embedded.processes import Server

PROJECT = Path(__file__).parents[1]
_LOCATION = "hive_replication"
# The server is started by a shell in the background, which makes it ignore SIGINT; Dagster takes SIGTERM by the same handler.
_START = (
    "import os, signal, sys; "
    "[signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGTERM)]; "
    "os.chdir(sys.argv[1]); "
    "os.execv(sys.executable, [sys.executable, '-m', 'dagster', 'dev', *sys.argv[2:]])"
)


@dataclass(frozen=True, slots=True)
class DagsterDev:
    """Dagster's UI and daemon on this project.

    Args:
        home: DAGSTER_HOME.
        policy: the policy's file.
        port: of the UI.
    """

    home: Path
    policy: Path
    port: int

    @property
    def url(self) -> str:
        """Address of the UI."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """What Dagster prints."""
        return self._server.log

    def prepare(self) -> None:
        """Makes the home.

        Raises:
            BadRequest: another demo runs in it.
        """
        if processes.running(self.home):
            raise BadRequest(f"a demo runs already in {self.home}: stop it with Ctrl-C, or with make demo-reset")
        self.home.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / "dagster.yaml", self.home)

    @contextmanager
    def running(self) -> Generator[None]:
        """Runs it while the context is open.

        Raises:
            ReplicationError: it does not start.
        """
        try:
            processes.start(self._server)
            processes.wait(self._server)
            yield
        finally:
            stop(self.home)

    def reload(self) -> None:
        """Reloads the definitions, so that new tables get assets and dropped ones lose theirs."""
        query = f'mutation {{ reloadRepositoryLocation(repositoryLocationName: "{_LOCATION}") {{ __typename }} }}'
        request = urllib.request.Request(  # noqa: S310 (loopback)
            f"{self.url}/graphql", json.dumps({"query": query}).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            answer.read()

    @property
    def _server(self) -> Server:
        settings = {"DAGSTER_HOME": str(self.home), "HIVE_REPL_CONFIG": str(self.policy), "PYTHONUNBUFFERED": "1"}
        options = ("-h", "127.0.0.1", "-p", str(self.port), "-w", str(PROJECT / "workspace.yaml"))
        command = (
            "env",
            *(f"{key}={value}" for key, value in settings.items()),
            sys.executable,
            "-c",
            _START,
            str(PROJECT),
            *options,
        )
        return Server("dagster dev", self.home, command, (self.port,), self._answers)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/server_info", timeout=5) as answer:  # noqa: S310 (loopback)
                return answer.status == 200
        except OSError:
            return False


def stop(home: Path) -> None:
    """Stops what runs in a DAGSTER_HOME, and the processes below it: servers, daemon, runs."""
    process = processes.running(home)
    below = process.children(recursive=True) if process else []
    processes.stop([home])
    _, left = psutil.wait_procs(below, timeout=5)
    for child in left:
        child.kill()
    psutil.wait_procs(left, timeout=5)
