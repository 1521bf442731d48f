"""Who waits for a server learns which process ended, and what it said last."""

import contextlib
import sys
from pathlib import Path

import psutil
import pytest

from hive_replication.errors import ReplicationError
from resources.embedded import ports, processes
from resources.embedded.processes import Server


def test_the_end_of_a_server_beside_is_told_as_its_own(tmp_path: Path) -> None:
    """A DataNode does not end with its NameNode, and would be waited for in vain."""
    with ports.reserve() as reserved:
        port = reserved.getsockname()[1]
    first = _server(tmp_path / "first", "raise SystemExit('Error: no space left')", port)
    second = _server(tmp_path / "second", "import time; time.sleep(60)", port)
    processes.start(first)
    processes.start(second)
    try:
        with pytest.raises(ReplicationError, match=r"first ended: Error: no space left"):
            processes.wait(second, (first, second))
    finally:
        processes.stop([second.folder])


def test_who_waits_too_long_reads_what_the_server_printed(tmp_path: Path) -> None:
    with ports.reserve() as reserved:
        server = _server(
            tmp_path / "slow", "print('Error: asks in vain', flush=True); import time; time.sleep(60)", reserved.getsockname()[1]
        )
    processes.start(server)
    try:
        with pytest.raises(ReplicationError, match=r"slow does not serve after 2 s: Error: asks in vain"):
            processes.wait(server, seconds=2)
    finally:
        processes.stop([server.folder])


@pytest.mark.parametrize("step", [1, -3600])
def test_a_server_runs_and_is_stopped_where_the_clock_was_set_meanwhile(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what stops servers leaves them, and nothing starts beside them: they have the ports."""
    server, booted = _server(tmp_path / "one", "import time; time.sleep(60)", 1), psutil.boot_time()
    processes.start(server)
    process = processes.running(server.folder)
    assert process
    try:
        monkeypatch.setattr("psutil._pslinux.boot_time", lambda: booted + step)
        assert processes.running(server.folder) is not None
        processes.stop([server.folder])
        assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE  # nobody reaps it in some containers
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


@pytest.mark.parametrize(
    "record", ["", "{", "[]", "7", '{"pid": "x"}', '{"pid": -1}', '{"pid": 9e99}', '{"pid": 1, "process": 5}']
)
def test_what_is_no_record_of_a_process_is_of_none(tmp_path: Path, record: str) -> None:
    (tmp_path / "pid.json").write_text(record)
    assert processes.running(tmp_path) is None


def test_of_a_long_log_the_end_is_read(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"Error: long ago\n" + b"x" * 100_000 + b"\nError: \xff now\n")
    assert processes.end_of(log).endswith("x\nError: \N{REPLACEMENT CHARACTER} now\n")
    assert len(processes.end_of(log)) <= 64 * 1024
    log.write_text("short\n")
    assert processes.end_of(log) == "short\n"


def _server(folder: Path, code: str, port: int) -> Server:
    folder.mkdir()
    return Server(folder.name, folder, (sys.executable, "-c", code), (port,))
