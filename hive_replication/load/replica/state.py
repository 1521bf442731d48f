"""Replication state of a target: the parameters of its database, tables and partitions (design: load, state).

The database carries where the replica stands (``hive_replication.applied.id``), names that stand elsewhere
(``hive_replication.at.<name>``: behind where held, ahead where repaired) and why a name is held.
``repl.last.id``, which REPL STATUS prints, is the lower of the applied id and the lowest held one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hive_replication.load.replica.covers import covers
from hive_replication.load.replica.failover_marks import Role, failover_marks, is_kept
from hive_replication.load.replica.held_reasons import (
    LEFT_OUT_REASON,
    PASSED_REASON,
    RELEASED_REASON,
    TAKEN_IN_REASON,
    UNDONE_REASON,
    joined_to,
)
from hive_replication.load.replica.held_retries import NO_HISTORY, Quarantine
from hive_replication.load.replica.owners import owner_of
from hive_replication.load.replica.parameters import Parameters, as_latin, number_of
from hive_replication.load.replica.table_parameters import by_table, of_tables
from hive_replication.metastore.types import Database, Partition, Table, copy_of

LAST_ID = "repl.last.id"
#: Dump directory of a bootstrap, on the database and its objects. Changes in a database that has it are those of replication to a
#: metastore (``ListenerEvent.isReplicated``), so the database keeps the key, with another value once it is bootstrapped.
CHECKPOINT = "hive.repl.ckpt.key"
_BOOTSTRAPPED = "bootstrapped"
#: While a replica has it, Hive starts no compaction in it on its own (TableOptimizer) and does not dump it.
FIRST_INCREMENTAL = "hive.repl.first.inc.pending"
TARGET_FOR = "repl.target.for"
PREFIX = "hive_replication."
SOURCE = PREFIX + "source"
SOURCE_FOR = "repl.source.for"
_POLICY = PREFIX + "policy"
_ORIGINS = PREFIX + "origins"
_APPLIED = PREFIX + "applied.id"
_APPLIED_EVENT = PREFIX + "applied.event"
_AT = PREFIX + "at."
_RECOVERY = PREFIX + "recovery"
_OBSTACLE = PREFIX + "obstacle"
_HELD = PREFIX + "held."
_QUARANTINE = PREFIX + "hold."
_UNDONE = PREFIX + "undone"
_SCOPE = PREFIX + "scope."
_LEFT = PREFIX + "left."
#: Parameter of a replica that the policy no longer includes: the event id at which it was left.
LEFT_MARK = PREFIX + "excluded"
#: Operators set it while loads run, so a load never changes it.
PAUSED = PREFIX + "paused"
#: Operators and Hive set it: what the database holds is no base for loads, until somebody removes it.
INCOMPATIBLE = "repl.incompatible"
#: Hive has one while it dumps the database, which then is not renamed or dropped.
DUMPING = "bootstrap.dump.state."
_KEPT = (SOURCE_FOR, PAUSED, INCOMPATIBLE)
#: Metastores keep at most 4,000 characters of a database parameter.
_REASON_LIMIT = 1_000
_SCOPE_PART = 3_000
_DIGIT = re.compile(r"[0-9]")


@dataclass(frozen=True)
class ReplicaState:
    """Where a target database stands.

    Args:
        source: identity of the source metastore and database; "" where the database is no replica.
        applied: end of the last window done; None while a bootstrap is not finished.
        applied_time: commit time of that event at the source, seconds since the epoch; 0 where unknown.
        applied_hash: hash of its message, to recognise another history.
        at: event ids of names that stand elsewhere.
        held: why names are held.
        quarantines: since when they are held and how often they were tried, where that is known.
        checkpoint: dump directory of the bootstrap or the load of objects under way, or "".
        obstacle: why that load, which was interrupted, cannot be done any more, or ""; it goes with the checkpoint.
        fresh: whether no window has been loaded since the bootstrap began.
        recovery: token of the recovery under way, or ""; any other load clears it, since it changes what was compared.
        policy: name of the policy that writes it, "" where that is not known.
        origins: identities of the source's own sources, if it is a replica itself, nearest first.
        undone: event id to which the whole database was undone by request; later events are not loaded until it is released.
        paused: since when and by whom its sensor is paused, or ""; not written with the rest of the state.
        scope: which tables it was made with (:class:`hive_replication.policy.PolicyScope`), "" where that is not known.
        left: replicas that the policy no longer includes, with the event id that they stood at when it left them.
        failed_over: what the database became by a failover, so that nothing is loaded; not written with the rest of the state.
    """

    source: str = ""
    applied: int | None = None
    applied_time: int = 0
    applied_hash: str = ""
    at: Mapping[str, int] = field(default_factory=dict[str, int])
    held: Mapping[str, str] = field(default_factory=dict[str, str])
    quarantines: Mapping[str, Quarantine] = field(default_factory=dict[str, Quarantine])
    checkpoint: str = ""
    obstacle: str = ""
    fresh: bool = False
    recovery: str = ""
    policy: str = ""
    origins: tuple[str, ...] = ()
    undone: int | None = None
    paused: str = ""
    scope: str = ""
    left: Mapping[str, int] = field(default_factory=dict[str, int])
    failed_over: Role = ""

    def position(self, table: str) -> int:
        """Event id up to which everything about a table's name is applied, its own state ids aside."""
        return self.at.get(table, self.applied or 0)

    @property
    def last_id(self) -> int | None:
        """What REPL STATUS prints for the database; names to which no event can be applied (:attr:`lost`) do not count."""
        return None if self.applied is None else min([self.applied, *filter(None, self.at.values())])

    @property
    def lost(self) -> list[str]:
        """Names whose bootstrap or recovery failed, or passed them over: there is no state to which events could be applied."""
        return sorted(name for name in self.held if self.at.get(name) == 0)

    @property
    def unfinished(self) -> list[str]:
        """Names that are lost, and that another recovery brings: it passes over those that were undone by request."""
        return [name for name in self.lost if not self.waits(name)]

    @property
    def tried(self) -> list[str]:
        """Held names that loads retry: all but those that stand with an undo, or are left out and have no events to look at."""
        level = {name for name in self.held if self.why_left_out(name) and covers(self.position(name), self.applied or 0)}
        return [name for name in self.held if not (self.stands_with_undo(name) or name in level)]

    def at_position(self, table: str, evid: int) -> ReplicaState:
        """All events up to this id are applied to the name; it is held only where others stand later: its own may follow."""
        at = {name: there for name, there in self.at.items() if name != table}
        held = {name: reason for name, reason in self.held.items() if name != table}
        quarantines = {name: one for name, one in self.quarantines.items() if name != table}
        at |= {table: evid} if evid != self.applied else {}
        moved = replace(self, at=at, held=held, quarantines=quarantines)
        reason = f"{PASSED_REASON}it stands at event {evid}, and the catch-up that is due brings what follows"
        return moved if covers(evid, self.applied or 0) else moved.quarantine(table, evid, reason)

    def quarantine(self, table: str, after: int, reason: str) -> ReplicaState:
        """The name is held; events up to this id are applied to it."""
        return replace(self, at={**self.at, table: after}, held={**self.held, table: reason})

    def failed(self, table: str, evid: int, now: float) -> ReplicaState:
        """A load of a held name failed at an event, once more."""
        return replace(
            self, quarantines={**self.quarantines, table: self.quarantines.get(table, NO_HISTORY).failed(evid, int(now))}
        )

    @property
    def coming(self) -> frozenset[str]:
        """Names that were taken into the policy and could not be loaded yet: they come whole, not by events."""
        return frozenset(name for name, reason in self.held.items() if reason.startswith(TAKEN_IN_REASON))

    def why_left_out(self, table: str) -> str:
        """Why a held name's table at the source is not replicated any more; "" where it is not held for that."""
        reason = self.held.get(table, "")
        return reason.removeprefix(LEFT_OUT_REASON) if reason.startswith(LEFT_OUT_REASON) else ""

    def is_stale(self, table: Table) -> bool:
        """Whether a replica is what it was when the policy left it, and was not made anew since."""
        return covers(self.left.get(table.tableName.lower()), object_id(table))

    def waits(self, table: str) -> bool:
        """Whether a name was undone by request, and stays so until it is released or repaired."""
        return self.held.get(table, "").startswith(UNDONE_REASON)

    def stands_with_undo(self, table: str) -> bool:
        """Whether a name was undone by request, or is joined to one that was, and goes on with that one."""
        return self.waits(table) or self.waits(joined_to(self.held.get(table, ""))[0])

    def released(self, table: str | None = None) -> ReplicaState:
        """Events are loaded again: of one table, or of the database and all its tables."""
        reason = f"{RELEASED_REASON}: the sensor's next tick starts the load that catches up"
        freed = {name: reason for name in self.held if self.waits(name) and table in (None, name)}
        quarantines = {name: one for name, one in self.quarantines.items() if name not in freed}  # else it waits for their delay
        return replace(self, held={**self.held, **freed}, quarantines=quarantines, undone=self.undone if table else None)

    def released_names(self) -> list[str]:
        """Names that were released after an undo, and were not loaded since."""
        return [name for name, reason in self.held.items() if reason.startswith(RELEASED_REASON)]

    def due_names(self) -> list[str]:
        """Held names of which nothing failed, so that they are caught up at once."""
        return [name for name, reason in self.held.items() if reason.startswith((RELEASED_REASON, PASSED_REASON))]

    def advanced(self, evid: int, time: int, message_hash: str) -> ReplicaState:
        """A window up to ``evid`` is done; names that stand there too no longer need an entry."""
        if covers(self.applied, evid):
            return self
        behind = self.applied or 0
        at = {name: there for name, there in self.at.items() if name in self.held or there < behind or not covers(evid, there)}
        raised = replace(self, applied=evid, applied_time=time, applied_hash=message_hash, at=at, checkpoint="", recovery="")
        return replace(raised, fresh=self.fresh and self.applied is None)

    def parameters(self) -> dict[str, str]:
        """This state as database parameters."""
        values = {SOURCE: self.source, TARGET_FOR: "true"} if self.source else {}
        obstacle = as_latin(self.obstacle)[:_REASON_LIMIT] if self.checkpoint else ""
        texts = {_POLICY: self.policy, _ORIGINS: _origins_text(self.origins), _RECOVERY: self.recovery, _OBSTACLE: obstacle}
        texts |= {_UNDONE: "" if self.undone is None else str(self.undone), FIRST_INCREMENTAL: "true" if self.fresh else ""}
        values |= {key: value for key, value in texts.items() if value}
        if self.applied is not None:
            values |= {_APPLIED: str(self.applied), LAST_ID: str(self.last_id)}
            values[_APPLIED_EVENT] = f"{self.applied}:{self.applied_time}:{self.applied_hash}"
        if self.checkpoint or self.applied is not None:
            values[CHECKPOINT] = self.checkpoint or _BOOTSTRAPPED
        values |= by_table(_AT, {name: str(evid) for name, evid in self.at.items()})
        values |= by_table(_QUARANTINE, {name: str(one) for name, one in self.quarantines.items()})
        values |= by_table(_LEFT, {name: str(evid) for name, evid in self.left.items()})
        parts = range(0, len(self.scope), _SCOPE_PART)
        values |= {f"{_SCOPE}{number}": self.scope[start : start + _SCOPE_PART] for number, start in enumerate(parts)}
        return values | by_table(_HELD, {name: as_latin(reason)[:_REASON_LIMIT] for name, reason in self.held.items()})


def replica_state(database: Database | None) -> ReplicaState:
    """Reads the state of a target database; an empty state if it does not exist or is no replica.

    Raises:
        Refused: a parameter was edited into something that no load writes.
    """
    found = Parameters((database and database.name) or "", (database.parameters if database else None) or {})
    time, message_hash = _applied_event(found)
    return ReplicaState(
        source=found.text(SOURCE),
        applied=found.number(_APPLIED),
        applied_time=time,
        applied_hash=message_hash,
        at={name: found.number_in(_AT + name, value) for name, value in of_tables(_AT, found.values)},
        held=dict(of_tables(_HELD, found.values)),
        quarantines={name: Quarantine.parse(value) for name, value in of_tables(_QUARANTINE, found.values)},
        checkpoint=found.text(CHECKPOINT).removeprefix(_BOOTSTRAPPED),
        fresh=found.text(FIRST_INCREMENTAL) == "true",
        obstacle=found.text(_OBSTACLE),
        recovery=found.text(_RECOVERY),
        policy=found.text(_POLICY),
        origins=found.list_in(_ORIGINS),
        undone=found.number(_UNDONE),
        paused=found.text(PAUSED),
        scope="".join(value for _, value in sorted(found.starting(_SCOPE).items(), key=lambda one: _number(one[0]))),
        left={name: found.number_in(_LEFT + name, value) for name, value in of_tables(_LEFT, found.values)},
        failed_over=failover_marks(database).role,
    )


def _applied_event(found: Parameters) -> tuple[int, str]:
    """Time and hash of the last applied event: ``<id>:<time>:<hash>``."""
    value = found.text(_APPLIED_EVENT)
    _, time, message_hash = (*value.split(":", 2), "", "")[:3]
    return found.number_in(_APPLIED_EVENT, time) if value else 0, message_hash


def _number(text: str) -> int:
    """The number that the digits of a text make; 0 where they make none."""
    return number_of("".join(_DIGIT.findall(text))) or 0


def origins(parameters: Mapping[str, str] | None) -> tuple[str, ...]:
    """Identities of the sources of a replica's source, nearest first."""
    return Parameters("", parameters or {}).list_in(_ORIGINS)


def _origins_text(found: Sequence[str]) -> str:
    """Joined by commas, as earlier versions do; where one holds a comma itself (several addresses), as a JSON list."""
    return json.dumps(found) if any("," in one for one in found) else ",".join(found)


def is_state(key: str) -> bool:
    """Whether a parameter is replication state, which never travels from source to target."""
    return key.startswith((PREFIX, "repl.", "hive.repl.", DUMPING))


def with_state(database_parameters: Mapping[str, str] | None, state: ReplicaState) -> dict[str, str]:
    """A database's parameters with its replication state replaced; a replica may be the source of another."""
    kept = {key: value for key, value in (database_parameters or {}).items() if _is_kept(key) or not is_state(key)}
    return kept | state.parameters()


def _is_kept(key: str) -> bool:
    return key in _KEPT or key.startswith(DUMPING) or is_kept(key)


def database_with_state(database: Database, state: ReplicaState, image: Database | None = None) -> Database:
    """A copy of a database with its replication state replaced.

    Args:
        database: as it is.
        state: as it is to be.
        image: whose properties, comment and owner, if it has one, the copy takes over; its own where None.
    """
    made = copy_of(database)
    if image is not None:
        made.description, (made.ownerName, made.ownerType) = image.description, owner_of(image, database)
    own = {key: value for key, value in (database.parameters or {}).items() if _is_kept(key)}
    taken = {key: value for key, value in ((image or database).parameters or {}).items() if not _is_kept(key)}
    made.parameters = with_state({**taken, **own}, state)
    return made


def object_id(thing: Table | Partition | None) -> int:
    """``repl.last.id`` of a table or partition; 0 where it has none, or something else."""
    return _number(((thing.parameters if thing else None) or {}).get(LAST_ID) or "")


def has_left(table: Table) -> bool:
    """Whether a replica is marked as one that the policy no longer includes."""
    return LEFT_MARK in (table.parameters or {})


def is_ours(thing: Table | Partition, source: str) -> bool:
    """Whether an object of the target is a replica of this source."""
    return (thing.parameters or {}).get(SOURCE) == source
