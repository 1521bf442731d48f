"""One process of replication: dump, load or repair, which may be struck at a point. A fork server makes such processes cheap."""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Literal

from hive_replication import failover
from hive_replication.connect import Connection, connect
from hive_replication.dump.command import repl_dump
from hive_replication.dump.format.record_types import MadeWith
from hive_replication.errors import ReplicationError
from hive_replication.load import parts_of_window
from hive_replication.load.command import repl_load
from hive_replication.load.plan import call_groups
from hive_replication.load.report import Held, LoadReport
from hive_replication.load.undo.undo import undo
from hive_replication.policy import Policy
from hive_replication.recover.command import recover
from hive_replication.repair import repair
from hive_replication.statements import ReplDump, ReplLoad
from tests.crash.seams import Point, Trap

_CONTEXT = multiprocessing.get_context("forkserver")
# A third of a process's time would be the imports that it puts off: the parser of views, and pyarrow for dumps and reports.
_PUT_OFF = [
    "sqlglot.dialects.hive",
    "pyarrow.dataset",
    "hive_replication.load.replica.view_query",
    "hive_replication.load.records.report_rows",
    "hive_replication.dump.format.packed_reader",
    "hive_replication.dump.format.packed_writer",
]
_CONTEXT.set_forkserver_preload(["tests.crash.driver", *_PUT_OFF])
_LIMIT = 300  # seconds; a process that takes longer hangs
#: Whoever starts a process asks all others for their exit codes, which the fork server tells once.
_ALONE = threading.Lock()


@dataclass(frozen=True, slots=True)
class Job:
    """The task of a process.

    Args:
        kind: dump, load, repair, recover or undo; or a step of a failover.
        policy: of the connection.
        source: source database.
        target: target database.
        directory: dump to load.
        window: event ids to dump (up to now without a second), or None to dump the database; an undo goes to the first.
        table: table to repair.
        before: of a window, tables of the policy that its replica was made with, as ``PolicyScope``.
        parts: whether a window is loaded event by event, as one with more messages than memory is to hold.
    """

    kind: Literal["dump", "load", "repair", "recover", "undo", "start", "rollback", "finish", "reverse"]
    policy: Policy
    source: str
    target: str
    directory: str = ""
    window: tuple[int, int | None] | None = None
    table: str | None = None
    before: str = ""
    parts: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a process ended.

    Args:
        killed: whether it was killed.
        fired: whether it was struck, killed or not.
        problem: why it failed by itself, or what is held; "" where it is done.
        counts: moments by name, of a process that was not killed.
        directory: the dump that it made.
    """

    killed: bool
    fired: bool
    problem: str = ""
    counts: dict[str, int] | None = None
    directory: str = ""

    @property
    def broken(self) -> bool:
        """Whether it neither was killed nor said how it ended: it hung, or ended in a traceback, which no strike excuses."""
        return not self.killed and self.counts is None


def run(job: Job, point: Point | None, log: Path) -> Outcome:
    """Runs a job in a process of its own; ``log`` gets a line for each file that it puts in place."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer")
        process = _CONTEXT.Process(target=_main, args=(job, point, log, answer), daemon=True)
        with _ALONE:
            process.start()
        ended = wait([process.sentinel], _LIMIT)
        if not ended:
            process.kill()
            wait([process.sentinel])
        with _ALONE:
            process.join()
        if not ended:
            return Outcome(killed=False, fired=True, problem=f"hangs for {_LIMIT} s")
        if answer.exists():
            return Outcome(killed=False, **json.loads(answer.read_text()))
        if process.exitcode == -9:
            return Outcome(killed=True, fired=True)
        return Outcome(killed=False, fired=False, problem=f"ended with exit code {process.exitcode}")


def _main(job: Job, point: Point | None, log: Path, answer: Path) -> None:
    call_groups.MOST_ADDED = 1  # the stories have few partitions: their additions are several calls at a time, as those of many
    parts_of_window.PART = 1 if job.parts else parts_of_window.PART
    trap = Trap(job.policy, point, log)
    trap.arm()
    try:
        done = _JOBS[job.kind](connect(job.policy), job)
    except (ReplicationError, OSError) as error:  # which the command line tells in a sentence, too
        done = {"problem": f"{type(error).__name__}: {error}"}
    unfinished = answer.with_suffix(".new")
    unfinished.write_text(json.dumps({"fired": trap.fired, "counts": dict(trap.counts), **done}))
    unfinished.rename(answer)


def _dump(connection: Connection, job: Job) -> dict[str, Any]:
    begin, end = job.window or (None, None)
    made = MadeWith(job.before) if job.before and begin is not None else None
    statement = ReplDump(job.source, None, begin, end)
    return {"directory": repl_dump(connection.source, statement, connection.store, made_with=made).directory}


def _load(connection: Connection, job: Job) -> dict[str, Any]:
    source, statement = connection.source.metastore, ReplLoad(job.directory, job.target)
    return _held(repl_load(connection.target, statement, connection.store, connection.copier, source=source))


def _repair(connection: Connection, job: Job) -> dict[str, Any]:
    return _held(repair(connection, job.source, job.table).load)


def _recover(connection: Connection, job: Job) -> dict[str, Any]:
    done = recover(connection, job.source)
    return _held(done.load) if done is not None and done.load is not None else {}


def _undo(connection: Connection, job: Job) -> dict[str, Any]:
    assert job.window is not None
    undo(connection.target, job.target, None, job.window[0])
    return {}


def _start(connection: Connection, job: Job) -> dict[str, Any]:
    failover.start(connection, job.source)
    return {}


def _rollback(connection: Connection, job: Job) -> dict[str, Any]:
    failover.rollback(connection, job.source)
    return {}


def _finish(connection: Connection, job: Job) -> dict[str, Any]:
    failover.finish(connection, job.source)
    return {}


def _reverse(connection: Connection, job: Job) -> dict[str, Any]:
    done = failover.reverse(connection, job.source, drop=True)
    return {"problem": ", ".join(done.held)}


def _held(report: LoadReport) -> dict[str, Any]:
    held: tuple[Held, ...] = report.held
    return {"problem": "; ".join(f"{'/'.join(one.tables)} is held at {one.evid}: {one.reason}" for one in held)}


_JOBS: dict[str, Callable[[Connection, Job], dict[str, Any]]] = {
    "dump": _dump,
    "load": _load,
    "repair": _repair,
    "recover": _recover,
    "undo": _undo,
    "start": _start,
    "rollback": _rollback,
    "finish": _finish,
    "reverse": _reverse,
}
