"""Who may write a target: one policy, from one source, and never what the target itself is the origin of (pure).

Every replica database names its source and that one's own sources, if it is a replica itself, so that a chain that leads back to
where it began is seen. Two policies that write one target would each pass over the events of the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hive_replication.errors import Refused
from hive_replication.load.state import SOURCE, ReplicaState, origins


def lineage(parameters: Mapping[str, str] | None, source: str) -> tuple[str, ...]:
    """Where a source database's data comes from: itself, then its sources, nearest first.

    Args:
        parameters: of the source database.
        source: its identity.
    """
    own = (parameters or {}).get(SOURCE, "")
    return (source, *((own,) if own else ()), *origins(parameters))


def refuse_loop(found: Sequence[str], target: str) -> None:
    """Makes sure that a database is not replicated to where its data comes from.

    Args:
        found: its :func:`lineage`.
        target: identity of the target database.

    Raises:
        Refused: it is.
    """
    if target in found:
        chain = " <- ".join(found[: found.index(target) + 1])
        raise Refused(f"a loop: the target {target} is where the source's data comes from ({chain}); load under another name")


def refuse_second_writer(state: ReplicaState, database: str, source: str, policy: str) -> None:
    """Makes sure that nobody else writes a target database.

    Args:
        state: of the target database.
        database: its name.
        source: identity of the load's source.
        policy: name of the load's policy.

    Raises:
        Refused: it is the replica of another source, or another policy's.
    """
    if state.source not in ("", source):
        raise Refused(
            f"the target database {database!r} is a replica of {state.source}, not of {source}: load it under another name"
        )
    if state.source and state.policy not in ("", policy):
        raise Refused(
            f"the target database {database!r} is written by the policy {state.policy!r}, and this one is {policy!r}: load under "
            "another name, or, to hand it over, remove its parameter hive_replication.policy"
        )
