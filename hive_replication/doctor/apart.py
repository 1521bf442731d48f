"""What is wrong with one thing keeps nothing else from being examined."""

from __future__ import annotations

from collections.abc import Iterator

from hive_replication.doctor.finding import Finding, error
from hive_replication.errors import ReplicationError, Unreachable


def apart(side: str, check: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """What was found of one thing until something kept it from being examined, and then that.

    Args:
        side: of the findings.
        check: the name of the last one.
        findings: of that thing.

    Raises:
        Unreachable: a metastore has stopped answering, which whatever follows would wait for once more.
    """
    try:
        yield from findings
    except Unreachable:
        raise
    except (ReplicationError, OSError) as problem:
        yield error(side, check, str(problem), "correct what the message says: the rest is examined without it")
