"""Replication state of a target: the parameters of its database, tables and partitions (design: load, state).

The database carries where the replica stands (``hive_replication.applied.id``), names that stand elsewhere
(``hive_replication.at.<name>``: behind where held, ahead where repaired) and why a name is held.
``repl.last.id``, which REPL STATUS prints, is the lower of the applied id and the lowest held one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hive_replication.load.hold import UNKNOWN, Hold
from hive_replication.metastore.types import Database, Partition, Table, copy_of

LAST_ID = "repl.last.id"
CHECKPOINT = "hive.repl.ckpt.key"
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
_HELD = PREFIX + "held."
_HOLD = PREFIX + "hold."
_UNDONE = PREFIX + "undone"
#: Set by people while loads run, so a load leaves it as it finds it.
PAUSED = PREFIX + "paused"
_KEPT = (SOURCE_FOR, PAUSED)
#: What the reason of a name begins with that waits because somebody took it back.
UNDONE_REASON = "undone to "
#: Derby and MySQL keep at most 4,000 characters of a database parameter.
_REASON_LIMIT = 1_000


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
        holds: since when, and how often they were tried, as far as that is known.
        checkpoint: dump directory of the bootstrap under way, or "".
        fresh: whether no window was loaded since the bootstrap began.
        recovery: token of the recovery under way, or ""; any other load takes it away, since it changes what was compared.
        policy: name of the policy that writes it, "" where that is not known.
        origins: where the source's own data comes from, if it is a replica itself, nearest first.
        undone: event id that the whole database was taken back to by request; no later events are loaded until released.
        paused: since when and by whom its sensor asks for nothing, or ""; not written with the rest of the state.
    """

    source: str = ""
    applied: int | None = None
    applied_time: int = 0
    applied_hash: str = ""
    at: Mapping[str, int] = field(default_factory=dict[str, int])
    held: Mapping[str, str] = field(default_factory=dict[str, str])
    holds: Mapping[str, Hold] = field(default_factory=dict[str, Hold])
    checkpoint: str = ""
    fresh: bool = False
    recovery: str = ""
    policy: str = ""
    origins: tuple[str, ...] = ()
    undone: int | None = None
    paused: str = ""

    def position(self, table: str) -> int:
        """Event id up to which everything about a table's name is applied, its own state ids aside."""
        return self.at.get(table, self.applied or 0)

    @property
    def last_id(self) -> int | None:
        """What REPL STATUS prints for the database; names that no event can bring up (:attr:`lost`) do not count."""
        return None if self.applied is None else min([self.applied, *filter(None, self.at.values())])

    @property
    def lost(self) -> list[str]:
        """Names that stand nowhere: a bootstrap or a recovery failed for them, so no event can be applied to them."""
        return sorted(name for name in self.held if self.at.get(name) == 0)

    @property
    def tried(self) -> list[str]:
        """Held names that are tried again; not those that wait since somebody took them back."""
        return [name for name in self.held if not self.waits(name)]

    def moved(self, table: str, evid: int) -> ReplicaState:
        """The name stands at an event id now and is not held."""
        at = {name: there for name, there in self.at.items() if name != table}
        held = {name: reason for name, reason in self.held.items() if name != table}
        holds = {name: hold for name, hold in self.holds.items() if name != table}
        return replace(self, at=at | ({table: evid} if evid != self.applied else {}), held=held, holds=holds)

    def hold(self, table: str, after: int, reason: str) -> ReplicaState:
        """The name is held at an event id."""
        return replace(self, at={**self.at, table: after}, held={**self.held, table: reason})

    def failed(self, table: str, evid: int, now: float) -> ReplicaState:
        """A held name was tried, and failed at an event (again)."""
        return replace(self, holds={**self.holds, table: self.holds.get(table, UNKNOWN).failed(evid, int(now))})

    def waits(self, table: str) -> bool:
        """Whether a name was taken back by request, and stays there until released or repaired."""
        return self.held.get(table, "").startswith(UNDONE_REASON)

    def released(self, table: str | None = None) -> ReplicaState:
        """Events of a table, or of all and of the database, are loaded again."""
        reason = "released after an undo: the next load catches up"
        freed = {name: reason for name in self.held if self.waits(name) and table in (None, name)}
        return replace(self, held={**self.held, **freed}, undone=self.undone if table else None)

    def raised(self, evid: int, time: int, message_hash: str) -> ReplicaState:
        """A window up to ``evid`` is done; names that are level now lose their entry."""
        if self.applied is not None and evid <= self.applied:
            return self
        behind = self.applied or 0
        at = {name: there for name, there in self.at.items() if there > evid or there < behind or name in self.held}
        raised = replace(self, applied=evid, applied_time=time, applied_hash=message_hash, at=at, checkpoint="", recovery="")
        return replace(raised, fresh=self.fresh and self.applied is None)

    def parameters(self) -> dict[str, str]:
        """The database parameters that say all this."""
        values = {SOURCE: self.source, TARGET_FOR: "true"} if self.source else {}
        values |= {key: value for key, value in ((_POLICY, self.policy), (_ORIGINS, ",".join(self.origins))) if value}
        if self.applied is not None:
            values |= {_APPLIED: str(self.applied), LAST_ID: str(self.last_id)}
            values[_APPLIED_EVENT] = f"{self.applied}:{self.applied_time}:{self.applied_hash}"
        if self.undone is not None:
            values[_UNDONE] = str(self.undone)
        if self.checkpoint:
            values[CHECKPOINT] = self.checkpoint
        if self.fresh:
            values[FIRST_INCREMENTAL] = "true"
        if self.recovery:
            values[_RECOVERY] = self.recovery
        values |= {_AT + name: str(evid) for name, evid in self.at.items()}
        values |= {_HOLD + name: str(hold) for name, hold in self.holds.items()}
        return values | {_HELD + name: reason[:_REASON_LIMIT] for name, reason in self.held.items()}


def replica_state(database: Database | None) -> ReplicaState:
    """Reads the state of a target database; that of no replica where it is absent or none."""
    found = (database.parameters if database else None) or {}
    _, time, message_hash = (found.get(_APPLIED_EVENT) or "::").split(":", 2)
    return ReplicaState(
        source=found.get(SOURCE, ""),
        applied=int(found[_APPLIED]) if _APPLIED in found else None,
        applied_time=int(time or 0),
        applied_hash=message_hash,
        at={key.removeprefix(_AT): int(value) for key, value in found.items() if key.startswith(_AT)},
        held={key.removeprefix(_HELD): value for key, value in found.items() if key.startswith(_HELD)},
        holds={key.removeprefix(_HOLD): Hold.parse(value) for key, value in found.items() if key.startswith(_HOLD)},
        checkpoint=found.get(CHECKPOINT, ""),
        fresh=found.get(FIRST_INCREMENTAL) == "true",
        recovery=found.get(_RECOVERY, ""),
        policy=found.get(_POLICY, ""),
        origins=origins(found),
        undone=int(found[_UNDONE]) if _UNDONE in found else None,
        paused=found.get(PAUSED, ""),
    )


def origins(parameters: Mapping[str, str] | None) -> tuple[str, ...]:
    """Identities of the databases that a replica's source has its own data from, nearest first."""
    return tuple(filter(None, (parameters or {}).get(_ORIGINS, "").split(",")))


def is_state(key: str) -> bool:
    """Whether a parameter is replication state, which never travels from source to target."""
    return key.startswith((PREFIX, "repl.", "hive.repl.", "bootstrap.dump.state."))


def with_state(database_parameters: Mapping[str, str] | None, state: ReplicaState) -> dict[str, str]:
    """A database's parameters with its replication state replaced; a replica may be the source of another."""
    kept = {key: value for key, value in (database_parameters or {}).items() if key in _KEPT or not is_state(key)}
    return kept | state.parameters()


def stated(database: Database, state: ReplicaState, image: Database | None = None) -> Database:
    """A copy of a database with its replication state replaced.

    Args:
        database: as it is.
        state: as it is to be.
        image: whose properties, comment and owner the copy takes over; its own where None.
    """
    made = copy_of(database)
    if image is not None:
        made.description, made.ownerName, made.ownerType = image.description, image.ownerName, image.ownerType
    paused = {key: value for key, value in (database.parameters or {}).items() if key == PAUSED}
    made.parameters = with_state({**((image or database).parameters or {}), **paused}, state)
    return made


def object_id(thing: Table | Partition | None) -> int:
    """``repl.last.id`` of a table or partition; 0 where it has none."""
    value = ((thing.parameters if thing else None) or {}).get(LAST_ID, "0")
    return int("".join(filter(str.isdigit, value)) or 0)


def is_ours(table: Table, source: str) -> bool:
    """Whether a target table is a replica of this source."""
    return (table.parameters or {}).get(SOURCE) == source
