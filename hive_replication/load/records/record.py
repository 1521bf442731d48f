"""The record of one load, or of one thing that an operator did, and its text (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from hive_replication.bounded_json import Count, Seconds
from hive_replication.copy.tasks import CopyResult
from hive_replication.load.replica.covers import covers
from hive_replication.load.report import LoadReport, object_of

#: What was done. Written to disk: a text is never changed.
Action = Literal[
    "window",
    "bootstrap",
    "table",
    "repair",
    "recovery",
    "catch-up",
    "undo",
    "release",
    "pause",
    "resume",
    "approve",
    "privileges",
    "failover start",
    "failover open",
    "failover finish",
    "failover rollback",
    "failover reverse",
    "not readable",  # stands for the records of a day that this account may not read; never kept
]
Outcome = Literal["done", "held", "failed"]

_WINDOWS = {"repair": "repair", "recovery": "recovery", "bootstrap": "bootstrap", "table": "bootstrap"}


@dataclass(frozen=True, slots=True)
class Figures:
    """What a load did, in numbers.

    Args:
        operations: changes of the target's metastore.
        tables: tables that were changed.
        files: files brought and proven.
        bytes_copied: bytes of the files that were copied.
        skipped: events and objects left alone.
        held: tables that failed.
        seconds: wall time.
    """

    operations: Count = 0
    tables: Count = 0
    files: Count = 0
    bytes_copied: Count = 0
    skipped: Count = 0
    held: tuple[str, ...] = ()
    seconds: Seconds = 0.0


@dataclass(frozen=True, slots=True)
class Record:
    """A load, or something that an operator did.

    Args:
        id: sorts by time, unique.
        action: what was done.
        database: target database.
        by: ``user@host``, or a run of Dagster.
        time: when it ended, seconds since the epoch.
        outcome: ``held``: done, but for tables that are held.
        window: of a load, e.g. ``170-1400`` or ``bootstrap-170``; "" for anything else.
        to_evid: where the database, or its table, stands after it; None if it is not about events.
        tables: tables that it was about; () for the whole database.
        text: the error, the reason of a pause, or what else is to be known.
        directory: of the dump that was loaded.
        report: URI of the whole report of a load.
        journal: token of the load's journal, "" if it changed nothing.
        figures: of a load.
        policy: name of the policy; "" of records that earlier versions kept.
    """

    id: str
    action: Action
    database: str
    by: str
    time: Seconds
    outcome: Outcome = "done"
    window: str = ""
    to_evid: Count | None = None
    tables: tuple[str, ...] = ()
    text: str = ""
    directory: str = ""
    report: str = ""
    journal: str = ""
    figures: Figures = field(default_factory=Figures)
    policy: str = ""

    @property
    def by_hand(self) -> bool:
        """Whether somebody did it, not a run of Dagster."""
        return "@" in self.by

    def of(self, report: LoadReport) -> Record:
        """The record of a load that has ended, by its report."""
        held = tuple(sorted({name for lane in report.held for name in lane.tables}))
        figures = Figures(
            operations=sum(report.applied.values()),
            tables=len(report.touched),
            files=len(report.copies),
            bytes_copied=report.bytes_copied,
            skipped=len(report.skipped),
            held=held,
            seconds=round(sum(report.seconds.values()), 3),
        )
        return replace(self, outcome="held" if held else "done", to_evid=report.to_evid, figures=figures)


_RECORD = TypeAdapter(Record)


def window_name(action: Action, from_evid: int, to_evid: int) -> str:
    """What a load is called: ``170-1400``, or of a dump of objects ``bootstrap-170``, ``repair-170``, ``recovery-170``."""
    return f"{_WINDOWS.get(action, from_evid)}-{to_evid}"


def record_text(record: Record) -> bytes:
    """A record as JSON."""
    return _RECORD.dump_json(record)


def record_of(text: bytes) -> Record | None:
    """Reads :func:`record_text`; None if it is damaged."""
    try:
        return _RECORD.validate_json(text)
    except ValidationError:
        return None


def is_unused(report: LoadReport, copy: CopyResult) -> bool:
    """Whether a file was brought for a change that failed: it is proven, but nothing points at it yet."""
    if not report.held:
        return False
    table, _ = object_of(copy.task.object_name)
    return any(table in held.tables and not covers(held.after, copy.task.evid) for held in report.held)
