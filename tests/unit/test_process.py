"""Which process is gone: only what ran here, since this start of this machine, can be known to be."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from hive_replication import process
from hive_replication.process import interrupt, is_gone, lives, machine, this_process

OUTERMOST = 0xEFFFFFFC


@pytest.fixture
def ended() -> int:
    """The number of a process that ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        pass
    return child.pid


@pytest.fixture
def restart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """This machine's start and own id can be set."""
    monkeypatch.setattr(process, "_BOOT", tmp_path / "boot")
    monkeypatch.setattr(process, "_MACHINE", tmp_path / "machine")
    monkeypatch.setattr(process, "_OUTERMOST", process._NAMESPACE.stat().st_ino)
    (tmp_path / "boot").write_text("11111111-2222-3333-4444-555555555555\n")
    (tmp_path / "machine").write_text("a" * 32 + "\n")
    return monkeypatch


def test_processes_of_this_machine(ended: int) -> None:
    assert not is_gone(this_process())
    assert not is_gone(f"{machine()} {os.getpid()}")
    assert is_gone(f"{machine()} {ended}")
    host, pid, _ = this_process().split()
    assert is_gone(f"{host} {pid} 1.00"), "another process had this number before"
    assert not is_gone("")
    assert not is_gone(f"{machine()} x")


def test_what_is_known_to_live(ended: int) -> None:
    host, pid, started = this_process().split()
    assert lives(this_process())
    others = (f"{host} {pid} 1", f"{host} {pid}", f"{host} {ended} {started}", f"another/1/2 {pid} {started}", "", f"{host} x 1")
    assert not any(map(lives, others))


@pytest.mark.parametrize("pid", ["²", "x", "-1", "0", "00", str(2**31), str(2**62), "9" * 5_000])
def test_what_is_no_process_id_is_of_no_process(pid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others write tags, locks and claims. Each of these ended who read it, and -1 as a run's process interrupted all others."""
    signals = list[object]()
    monkeypatch.setattr(os, "kill", lambda *signal: signals.append(signal))
    told = f"{machine()} {pid} 1"
    assert ([is_gone(told), lives(told), interrupt(told)], signals) == ([False] * 3, [])


@pytest.mark.parametrize("step", [1, -3600, 36_000], ids=["a second", "an hour back", "a virtual machine that was suspended"])
def test_a_process_that_lives_is_none_that_ended_once_the_clock_is_set(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Linux tells as a process's start is since the machine's own, which moves with the clock as a time of day."""
    before, booted = this_process(), psutil.boot_time()
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: booted + step)
    assert psutil.boot_time() == booted + step
    assert not is_gone(before)
    assert this_process() == before
    host, pid, started = before.split()
    assert is_gone(f"{host} {pid} {int(started) - 100}"), "another process had this number before"


def test_a_time_of_day_that_an_earlier_version_noted_is_the_same_within_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    process = psutil.Process()
    then = f"{machine()} {process.pid} {process.create_time():.2f}"
    booted = psutil.boot_time()
    for step, another in ((0, False), (1, False), (-120, False), (36_000, True)):
        monkeypatch.setattr("psutil._pslinux.boot_time", lambda at=booted + step: at)
        assert is_gone(then) is another


def test_two_hosts_of_one_name(restart: pytest.MonkeyPatch, ended: int, tmp_path: Path) -> None:
    """They have the same name, and both run in the outermost process namespace, but they started on their own."""
    here = machine()
    (tmp_path / "boot").write_text("99999999-2222-3333-4444-555555555555\n")
    (tmp_path / "machine").write_text("b" * 32 + "\n")
    assert machine() != here
    assert not is_gone(f"{here} {ended} 1.00")


def test_a_restarted_machine(restart: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = this_process()
    (tmp_path / "boot").write_text("99999999-2222-3333-4444-555555555555\n")
    assert is_gone(before)
    restart.setattr(process, "_OUTERMOST", 0)  # in a container, where the machine's id may be of the image
    assert not is_gone(before)


def test_what_earlier_versions_wrote_is_never_gone(ended: int) -> None:
    """They told host and process namespace only: the process may run on another host of that name."""
    numbers = Path("/proc/self/ns/pid").stat().st_ino
    for where in (f"{socket.gethostname()}/{numbers}", socket.gethostname()):
        assert where != machine()
        assert not is_gone(f"{where} {ended} 1.00")


def test_the_metastore_has_room_for_it(restart: pytest.MonkeyPatch) -> None:
    restart.setattr(socket, "gethostname", lambda: "h" * 64)
    assert len(machine()) <= 128
