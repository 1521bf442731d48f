"""Which process is which, for those that leave a note of themselves where others find it."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
from pathlib import Path


def machine() -> str:
    """This host and its process numbers: containers may share a host's name, but not its numbers."""
    with contextlib.suppress(OSError):
        return f"{socket.gethostname()}/{Path('/proc/self/ns/pid').stat().st_ino}"
    return socket.gethostname()


def runs_here(pid: int) -> bool:
    """Whether this machine runs a process of that number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def user() -> str:
    """Name of the user that this process runs as, or the number where it has none."""
    with contextlib.suppress(OSError, KeyError):  # a container's user may have no name
        return getpass.getuser()
    return str(os.getuid())
