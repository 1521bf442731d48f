"""Who may write a target: one policy, from one source, which must not be a replica of the target (pure).

Every replica database names its source and, if that is a replica too, the sources of that one, so that loops are detected. Two
policies that write one target would each skip the events of the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hive_replication.errors import Refused
from hive_replication.load.replica.covers import covers
from hive_replication.load.replica.failover_marks import failover_marks
from hive_replication.load.replica.held_reasons import joined_to
from hive_replication.load.replica.name_mapping import object_name
from hive_replication.load.replica.state import INCOMPATIBLE, SOURCE, ReplicaState, origins
from hive_replication.metastore.types import Database


def lineage(parameters: Mapping[str, str] | None, source: str) -> tuple[str, ...]:
    """The chain of databases that a source's data comes from: the source itself, then its own sources, nearest first.

    Args:
        parameters: of the source database.
        source: its identity.
    """
    own = (parameters or {}).get(SOURCE, "")
    return (source, *((own,) if own else ()), *origins(parameters))


def refuse_loop(chain: Sequence[str], target: str) -> None:
    """Makes sure that a database is not replicated to one that its data comes from.

    Args:
        chain: the :func:`lineage` of the source.
        target: identity of the target database.

    Raises:
        Refused: it is.
    """
    if target in chain:
        shown = " <- ".join(chain[: chain.index(target) + 1])
        raise Refused(f"a loop: the target {target} is where the source's data comes from ({shown}); load under another name")


def refuse_second_writer(state: ReplicaState, database: str, source: str, policy: str) -> None:
    """Makes sure that no other source and no other policy writes a target database.

    Args:
        state: of the target database.
        database: its name.
        source: identity of the load's source.
        policy: name of the load's policy.

    Raises:
        Refused: it is a replica of another source, or another policy writes it.
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


def refuse_other_policy(state: ReplicaState, database: str, policy: str) -> None:
    """Makes sure that what an operator does to a replica is done with the policy that writes it, by whose settings it is kept.

    Args:
        state: of the target database.
        database: its name.
        policy: name of the policy that the command goes by.

    Raises:
        Refused: another policy writes it.
    """
    if state.source and state.policy not in ("", policy):
        raise Refused(
            f"the target database {database!r} is written by the policy {state.policy!r}, and this one is {policy!r}: nothing "
            "was changed; go by that policy's file (--config), or, to hand it over, remove its parameter hive_replication.policy"
        )


def refuse_incompatible(found: Database | None) -> None:
    """Makes sure that the target database is not marked as changed in a way that replication cannot go on from.

    Args:
        found: the target database, if there is one.

    Raises:
        Refused: it is; Hive's REPL LOAD refuses it, too (error 40018).
    """
    if why := why_incompatible(found):
        raise Refused(why)


def why_incompatible(found: Database | None) -> str:
    """Why nothing is loaded into a target database that is marked as incompatible, and the way out; "" where it is not marked."""
    if found is None or ((found.parameters or {}).get(INCOMPATIBLE) or "").lower() != "true":
        return ""
    return (
        f"the target database {found.name!r} has {INCOMPATIBLE}=true: it was changed so that replication cannot go on from "
        "what it holds; drop it and load a bootstrap, or remove that parameter if it is still a replica"
    )


def refuse_failed_over(
    state: ReplicaState, database: str, source: Database | None = None, own: str = "", *, there: bool = True
) -> None:
    """Makes sure that a failover did not end the direction of a load.

    Args:
        state: of the target database.
        database: its name.
        source: the load's source, which may say that a failover put it in place of the target database, before that knows, or the
            target database in its own place, also if that knows no more of it: its metastore was restored from a backup.
        own: identity of the target database.
        there: whether the target database is there; an old source that is gone has nothing to lose, and is made anew.

    Raises:
        Refused: it did.
    """
    if state.failed_over == "opened":
        raise Refused(
            f"the database {database!r} was opened by a failover and is no replica any more: nothing is loaded into it; "
            "hive-repl failover status shows what became of it"
        )
    marks = failover_marks(source)
    if source is not None and own and marks.successor == own:
        again = f"hive-repl failover start {source.name} --unplanned --force opens it again as it stands, or "
        raise Refused(
            f"the source of {database!r} was closed by a failover, which put that in its place: nothing is loaded into it; "
            "hive-repl failover status tells of both; if it is lost, or its metastore was restored from before that, "
            f"{again if state.source else ''}hive-repl failover rollback opens the source again"
        )
    replaced = there and bool(own) and marks.origin == own
    if not state.source and (state.failed_over == "closed" or replaced):
        raise Refused(
            f"the database {database!r} was the source before a failover: hive-repl failover reverse makes it a replica first"
        )


def refuse_undone(state: ReplicaState, database: str, to_evid: int | None = None) -> None:
    """Makes sure that nobody took a replica back on purpose.

    Args:
        state: of the target database.
        database: its name.
        to_evid: event id that a load leads to; None where that is not known yet.

    Raises:
        Refused: somebody did, and the load goes beyond.
    """
    if state.undone is not None and (to_evid is None or not covers(state.undone, to_evid)):
        raise Refused(
            f"the target database {database!r} was undone to event {state.undone} by request and loads nothing later: "
            f"hive-repl undo {database} --release"
        )


def refuse_undone_since(state: ReplicaState, stood: ReplicaState, database: str, table: str | None) -> None:
    """Makes sure that a repair ends no undo that somebody asked for after it: it may have waited, or dumped, for hours.

    Args:
        state: of the target database, whose lock is held.
        stood: its state when the repair was asked for.
        database: its name.
        table: the table that is repaired, on the target; None for the whole database.

    Raises:
        Refused: it would.
    """
    before = _undone(stood, None)
    if since := sorted(name for name, reason in _undone(state, table).items() if before.get(name) != reason):
        shown = object_name(database, table) if table else repr(database)
        reason = f"{since[0]}: {state.held[since[0]]}" if since[0] else f"undone to {state.undone} by request"
        raise Refused(
            f"the target's {shown} was undone since its repair was asked for ({reason}), and stays so: "
            "ask for the repair again to end that undo"
        )


def _undone(state: ReplicaState, table: str | None) -> dict[str, str]:
    """What was undone by request, of a table and the one that it is joined to, or of all; "" is the database itself."""
    names = state.held if table is None else (table, joined_to(state.held.get(table, ""))[0])
    found = {name: state.held[name] for name in names if state.waits(name)}
    return found if state.undone is None else {"": str(state.undone), **found}
