"""Which process a run works in, so that the sensor sees when it is gone.

Dagster's default launcher notices a killed run only while the code server that started it lives. After a restart of all of
Dagster such a run would count as running for ever, and its database would wait for it.
"""

from __future__ import annotations

import socket
from pathlib import Path

import dagster as dg
import psutil

PROCESS_TAG = "hive_replication/process"


def this_process() -> str:
    """This process as a tag: machine, process id and start time."""
    return f"{_machine()} {psutil.Process().pid} {psutil.Process().create_time():.2f}"


def tag_run(context: dg.OpExecutionContext | dg.AssetExecutionContext) -> None:
    """Writes into the run's tags where it works."""
    if context.run.tags.get(PROCESS_TAG) != this_process():
        context.instance.add_run_tags(context.run.run_id, {PROCESS_TAG: this_process()})


def is_gone(tag: str) -> bool:
    """Whether a tagged process ran on this machine and does no more; False where that cannot be known from here."""
    machine, _, process = tag.partition(" ")
    pid, _, started = process.partition(" ")
    if machine != _machine() or not pid.isdigit():
        return False
    try:
        found = psutil.Process(int(pid))
        return f"{found.create_time():.2f}" != started or found.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _machine() -> str:
    """Host and its process numbers: containers may share a host's name, but not its numbers."""
    numbers = Path("/proc/self/ns/pid")
    return f"{socket.gethostname()}/{numbers.stat().st_ino}" if numbers.exists() else socket.gethostname()
