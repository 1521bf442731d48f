"""How far a failover is, by the marks of both databases alone: each step is found again after a kill, and repeated (pure)."""

from __future__ import annotations

from typing import Literal

from hive_replication.load.replica.failover_marks import SUCCESSOR, FailoverMarks
from hive_replication.load.replica.state import ReplicaState

Phase = Literal[
    "no replica",
    "replicating",
    "started",
    "ready",
    "opened",
    "finished",
    "to be reversed",
    "failed back",
    "replaced by another",
]

SOURCE, TARGET = "SOURCE", "TARGET"  # Hive's values of repl.failover.endpoint


def phase_of(
    source: FailoverMarks | None, target: FailoverMarks, replica: ReplicaState, *, follows: bool, replaced: bool
) -> Phase:
    """The phase of a failover.

    Args:
        source: marks of the source database; None where its metastore does not answer, or has no such database.
        target: marks of the target database.
        replica: replication state of the target database.
        follows: whether the source database is a replica of the target database, as after a failback.
        replaced: whether a failover put the source database in place of the target database: the sides of the policy are swapped.
    """
    if target.role == "opened":
        return "finished" if source is not None and source.role == "closed" else "opened"
    if follows and source is not None and source.role == "":
        return "failed back"
    if target.role == "closed" or (replaced and not replica.source):
        return "to be reversed"
    if replica.applied is None:
        return "no replica"
    if target.endpoint == TARGET and (source is None or source.endpoint == SOURCE):
        return "ready"
    return "started" if source is not None and source.endpoint == SOURCE else "replicating"


def advice(phase: Phase, database: str, *, known: bool = True) -> str:
    """What to do next, one sentence.

    Args:
        phase: of the failover.
        database: source name.
        known: whether the source answers.
    """
    back = f"hive-repl failover reverse {database}, with the sides of the policy swapped, makes the old source its replica"
    return {
        "no replica": f"bootstrap it first: hive-repl REPL DUMP {database}, then REPL LOAD",
        "replicating": f"hive-repl failover plan {database} says what a failover would take",
        "started": f"hive-repl failover start {database} goes on; hive-repl failover rollback {database} takes it back",
        "ready": f"hive-repl failover finish {database} opens the target; hive-repl failover rollback {database} takes it back",
        "opened": f"hive-repl failover finish {database} closes the old source"
        if known
        else f"once the old source answers: hive-repl failover status {database} lists what was not replicated, and "
        f"hive-repl failover finish {database} closes it",
        "finished": back,
        "to be reversed": f"hive-repl failover reverse {database} makes the old source its replica",
        "failed back": "replication goes the other way, by the policy with the sides swapped",
        "replaced by another": f"{database} was closed by a failover to another target, which its parameter {SUCCESSOR} names",
    }[phase]
