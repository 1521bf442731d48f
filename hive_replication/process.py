"""Identity of processes, for locks and tags that other processes read."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import signal
import socket
from collections.abc import Generator
from contextvars import ContextVar
from pathlib import Path

import psutil

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")
_MACHINE = Path("/etc/machine-id")
#: Inode of the first process namespace: what runs there is in no container, and reads the machine's own files.
_OUTERMOST = 0xEFFFFFFC
_ACTOR = ContextVar("actor", default="")
_STEP = 600.0  # seconds by which a clock may have been set since an earlier version noted a time of day
#: A process id as systems give them out: at most 2**22 on Linux. Tags, locks and claims can hold any text.
_PID = re.compile(r"[1-9][0-9]{0,8}")
_SHOWN = 12  # characters of an id: metastores keep 128 of a host's name


def machine() -> str:
    """This host, its pid namespace and its boot id, which distinguishes hosts of one name.

    Containers may share a host's name, but not its pid namespace. Outside of containers the machine id comes last.
    """
    try:
        numbers, boot = _NAMESPACE.stat().st_ino, _BOOT.read_text().replace("-", "")[:_SHOWN]
    except OSError:  # not Linux
        numbers, boot = 0, str(int(psutil.boot_time()))
    own = ""
    if numbers == _OUTERMOST:
        with contextlib.suppress(OSError):
            own = _MACHINE.read_text().strip()[:_SHOWN]
    return "/".join(filter(None, (socket.gethostname(), str(numbers), boot, own)))


def this_process() -> str:
    """This process: machine, process id and start, see :func:`identity`."""
    return identity(os.getpid())


def identity(pid: int) -> str:
    """A process of this machine, as :func:`this_process` says it; one that has ended already has no start.

    The start is told since the machine's own, in clock ticks: of a process that lives, its time of day changes with the clock.
    """
    return f"{machine()} {pid} {_started(pid)}".rstrip()


def is_gone(process: str) -> bool:
    """Whether a process of this machine has ended; False if that cannot be known from here.

    That is so for other machines, and for identities of earlier versions, which lack the machine's boot id.

    Args:
        process: of :func:`this_process`; the start may be left out.
    """
    where, pid, started = _parts(process)
    if not pid or not _tells_start(where):
        return False
    if where != machine():
        return _is_before_restart(where)
    try:
        os.kill(int(pid), 0)
        return _is_another(int(pid), started) or psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE
    except PermissionError:  # another user's, which /proc may hide
        return False
    except (ProcessLookupError, psutil.NoSuchProcess):
        return True


def lives(process: str) -> bool:
    """Whether a process of this machine is known to be; False if that cannot be known from here.

    Args:
        process: of :func:`this_process`.
    """
    where, pid, started = _parts(process)
    if where != machine() or not started or not pid:
        return False
    return _started(int(pid)) == started and not is_gone(process)


def interrupt(process: str) -> bool:
    """Sends SIGINT to a process of this machine; False where it has ended, or runs elsewhere.

    Args:
        process: of :func:`this_process`.
    """
    where, pid, started = _parts(process)
    if where != machine() or not started or not pid or is_gone(process):
        return False
    os.kill(int(pid), signal.SIGINT)
    return True


def user() -> str:
    """Name of the user that this process runs as, or the number where it has none."""
    with contextlib.suppress(OSError, KeyError):  # a container's user may have no name
        return getpass.getuser()
    return str(os.getuid())


def account() -> str:
    """The account on HDFS and metastores without Kerberos: ``HADOOP_USER_NAME``, else the user, as Hadoop's clients have it."""
    return os.environ.get("HADOOP_USER_NAME") or user()


def actor() -> str:
    """Who acts, for records: ``user@host``, or what :func:`acting_as` says."""
    return _ACTOR.get() or f"{user()}@{socket.gethostname()}"


@contextlib.contextmanager
def acting_as(who: str) -> Generator[None]:
    """Names who acts while the context is open, e.g. a run of Dagster; "" leaves it at user and host."""
    token = _ACTOR.set(who)
    try:
        yield
    finally:
        _ACTOR.reset(token)


def _parts(process: str) -> tuple[str, str, str]:
    """Machine, process id and start of an identity, "" where it lacks one, or its process id is none."""
    where, _, numbers = process.partition(" ")
    pid, _, started = numbers.partition(" ")
    return where, pid if _PID.fullmatch(pid) else "", started


def _started(pid: int) -> str:
    """Clock ticks from the machine's start to a process's (proc(5)); "" where there is no such process, or it is hidden."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()  # from the third one: names have spaces
        return fields[22 - 3].decode()
    return ""


def _is_another(pid: int, started: str) -> bool:
    """Whether a process that runs is not the one of that number that was noted, as far as its start is known."""
    if "." in started and started.replace(".", "", 1).isdecimal():  # of earlier versions: seconds since the epoch
        return abs(psutil.Process(pid).create_time() - float(started)) > _STEP
    found = _started(pid)
    return bool(started and found) and found != started


def _tells_start(where: str) -> bool:
    return where.count("/") >= len(("numbers", "boot"))


def _is_before_restart(where: str) -> bool:
    """Whether this is the same machine, which was started again since."""
    there, here = where.split("/"), machine().split("/")
    of_one_id = len(there) == len(here) == len(("host", "numbers", "boot", "id"))
    return of_one_id and [there[0], there[3]] == [here[0], here[3]] and there[2] != here[2]
