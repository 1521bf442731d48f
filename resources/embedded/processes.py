"""Server processes that outlive the command that started them: pid files that never name another process, clean stops."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from hive_replication.errors import BadRequest, ReplicationError
from hive_replication.process import identity

_START_SECONDS = 300.0  # two cores that start sixteen servers from a cold disk, beside other work
_STOP_SECONDS = 20.0
_POLL_SECONDS = 0.1
_END = 64 * 1024  # bytes of a log that are read to tell an error


@dataclass(frozen=True, slots=True)
class Server:
    """One server process and how to know that it serves.

    Args:
        name: e.g. ``source.namenode``.
        folder: its own folder: configuration, data, log and pid file.
        command: program and arguments.
        ports: loopback ports it listens on; the first is the one that clients use.
        ready: answers whether it serves; called only once the first port listens.
        end: the signal at which it stops.
    """

    name: str
    folder: Path
    command: tuple[str, ...]
    ports: tuple[int, ...]
    ready: Callable[[], bool] = lambda: True
    end: signal.Signals = signal.SIGTERM

    @property
    def log(self) -> Path:
        """What the process prints."""
        return self.folder / "server.log"


def start(server: Server) -> None:
    """Starts a server in a session of its own, unless it runs; :func:`wait` tells when it serves.

    Raises:
        BadRequest: another program listens on one of its ports.
    """
    if running(server.folder):
        return
    for port in server.ports:
        if listening(port):
            raise BadRequest(
                f"{server.name} cannot start: another program listens on its port {port}; stop that program"
                f" (the port is kept in metastores, so it cannot change during the life of {server.folder.parent})"
            )
    pid = _spawn(server)
    record = {"pid": pid, "process": identity(pid), "end": server.end}
    _pid_file(server.folder).write_text(json.dumps(record), encoding="utf-8")


def wait(server: Server, beside: Sequence[Server] = (), seconds: float = _START_SECONDS) -> None:
    """Waits until a started server serves.

    Args:
        server: what is waited for.
        beside: servers that were started with it, and without which it may never serve: their end is told as theirs.
        seconds: patience.

    Raises:
        ReplicationError: one of them ended, or the server does not serve in time; the message names the log.
    """
    end = time.monotonic() + seconds
    while not (listening(server.ports[0]) and server.ready()):
        for one in (*beside, server):
            if not running(one.folder):
                raise ReplicationError(f"{one.name} ended: {_last_error(one.log)} (see {one.log})")
        if time.monotonic() > end:
            raise ReplicationError(
                f"{server.name} does not serve after {seconds:.0f} s: {_last_error(server.log)} (see {server.log})"
            )
        time.sleep(_POLL_SECONDS)


def running(folder: Path) -> psutil.Process | None:
    """The live process that was started in a folder; never another one that got its pid later."""
    try:
        record = json.loads(_pid_file(folder).read_text(encoding="utf-8"))
        process = psutil.Process(record["pid"])
        if known := record.get("process"):
            same = _without_host(identity(process.pid)) == _without_host(known)  # a machine may get another name
        else:  # of an earlier version: a time of day, which moves when the clock is set
            same = abs(process.create_time() - record["started"]) < 1.0
        # The first thread of a dying JVM is a zombie while others still hold its ports.
        ended = process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1
        return process if same and not ended else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, psutil.NoSuchProcess):
        return None  # none, or what was edited by hand


def _without_host(process: str) -> str:
    return process.partition("/")[2]


def was_started(folder: Path) -> bool:
    """Whether a server was started in a folder and not stopped since, running or not."""
    return _pid_file(folder).is_file()


def stop(folders: list[Path], seconds: float = _STOP_SECONDS) -> None:
    """Stops what was started in these folders: by its own signal, and by SIGKILL what is still alive after some seconds."""
    for kill in (False, True):
        for folder in folders:
            if process := running(folder):
                _signal(process, signal.SIGKILL if kill else _end(folder))
        end = time.monotonic() + seconds
        while any(map(running, folders)) and time.monotonic() < end:
            time.sleep(_POLL_SECONDS)
    for folder in folders:
        _pid_file(folder).unlink(missing_ok=True)


def run_once(command: list[str], folder: Path, environment: dict[str, str], log: str) -> None:
    """Runs a preparing command to its end, e.g. the formatting of a file system.

    Raises:
        ReplicationError: it failed; the message names its log.
    """
    path = folder / log
    with path.open("wb") as out:
        code = subprocess.run(
            command, cwd=folder, env={**os.environ, **environment}, stdout=out, stderr=subprocess.STDOUT, check=False
        ).returncode
    if code:
        raise ReplicationError(f"{Path(log).stem} failed with exit code {code}: {_last_error(path)} (see {path})")


def listening(port: int) -> bool:
    """Whether anything accepts connections on a loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _spawn(server: Server) -> int:
    # A shell starts it in the background and ends: the server is then nobody's child, so nobody has to reap it or warn of it.
    shell = subprocess.run(
        ["/bin/sh", "-c", '"$@" </dev/null >server.log 2>&1 & echo $!', "sh", *server.command],
        cwd=server.folder,
        stdout=subprocess.PIPE,
        start_new_session=True,
        check=True,
    )
    return int(shell.stdout)


def _signal(process: psutil.Process, number: int) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return


def _end(folder: Path) -> int:
    return json.loads(_pid_file(folder).read_text(encoding="utf-8")).get("end", signal.SIGTERM)


def _pid_file(folder: Path) -> Path:
    return folder / "pid.json"


def end_of(log: Path) -> str:
    """The last lines of a log, which a server that runs for months makes long."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _END))
        return file.read(_END).decode(errors="replace")


def _last_error(log: Path) -> str:
    lines = [line.strip() for line in end_of(log).splitlines() if line.strip()]
    telling = [line for line in lines if "Exception" in line or "Error" in line]
    return (telling or lines or ["it printed nothing"])[-1][:300]
