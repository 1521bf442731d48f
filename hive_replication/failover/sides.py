"""Both databases of a failover as they are now, and changes of their parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hive_replication.connect import Connection, Reachable
from hive_replication.errors import BadRequest, Refused
from hive_replication.failover.phases import Phase, phase_of
from hive_replication.load.replica.failover_marks import ORIGIN, SUCCESSOR, FailoverMarks, failover_marks, with_marks
from hive_replication.load.replica.parameter_lock import parameter_lock
from hive_replication.load.replica.policy_scope import without_data
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.lock import MetastoreLock
from hive_replication.metastore.types import Database, copy_of


@dataclass(frozen=True)
class Sides:
    """What both metastores say of a database.

    Args:
        connection: both sides.
        name: of the source database.
        source: the source database; None where its metastore does not answer, or has none of the name.
        target: the target database, None where there is none.
        answers: whether the source's metastore does.
    """

    connection: Connection
    name: str
    source: Database | None
    target: Database | None
    answers: bool = True

    @classmethod
    def now(cls, connection: Connection, name: str, reach: Reachable | None = None) -> Sides:
        """Reads both databases.

        Args:
            connection: both sides.
            name: of the source database.
            reach: which metastores answer; both where None.

        Raises:
            Unreachable: the target's does not.
        """
        answers = reach is None or not reach.source
        target = connection.target.metastore.database(connection.target.policy.target_of(name))
        source = connection.source.metastore.database(name) if answers else None
        return cls(connection, name, source, target, answers)

    @property
    def target_name(self) -> str:
        """Name of the target database."""
        return self.connection.target.policy.target_of(self.name)

    @property
    def marks(self) -> tuple[FailoverMarks | None, FailoverMarks]:
        """Marks of the source, None where it is not known, and of the target."""
        return failover_marks(self.source) if self.source else None, failover_marks(self.target)

    @property
    def replica(self) -> ReplicaState:
        """Replication state of the target."""
        return replica_state(self.target)

    @property
    def phase(self) -> Phase:
        """How far the failover is."""
        source, target = self.marks
        if self.replaced_by:
            return "replaced by another"
        follows = self.source is not None and replica_state(self.source).source == self.target_identity
        replaced = source is not None and source.role == "opened" and source.origin == self.target_identity
        return phase_of(source, target, self.replica, follows=follows, replaced=replaced)

    @property
    def replaced_by(self) -> str:
        """Identity of another database than the target that a failover put in place of the source; "" where none did."""
        source, _ = self.marks
        return source.successor if source is not None and source.successor != self.target_identity else ""

    @property
    def source_identity(self) -> str:
        """What replicas of the source are stamped with; needs the source's metastore."""
        return f"{self.connection.source.identity}/{self.name}"

    @property
    def target_identity(self) -> str:
        """What replicas of the target would be stamped with."""
        return f"{self.connection.target.identity}/{self.target_name}"

    def require_not_replaced(self) -> None:
        """Makes sure that no other database took the place of the source: it and the target would be written beside that one.

        Raises:
            Refused: one did.
        """
        if self.replaced_by:
            raise Refused(
                f"{self.name!r} was closed by a failover to {self.replaced_by}: hive-repl failover reverse makes it a replica of "
                f"that one; only if that is lost for good, set the database parameter {SUCCESSOR} to '' and run it again"
            )

    def require_closable(self) -> None:
        """Makes sure that closing the source ends nothing else that its parameters are about; one that is closed stays so.

        Raises:
            Refused: it took another's place and that one is no replica of it yet, or it is a replica itself.
        """
        source, _ = self.marks
        require_not_opened(self.name, source or FailoverMarks())
        state = replica_state(self.source)
        if state.source and not state.failed_over:
            raise Refused(
                f"{self.name!r} is a replica of {state.source}, and would get nothing from there any more: it stays one and is "
                "not closed; to replace it by its own replica, first open it in place of that one by a failover from there"
            )

    def require_replica(self) -> ReplicaState:
        """The state of a finished replica of this source.

        Raises:
            BadRequest: there is none.
            Refused: it is another's replica, has no data, or was undone.
        """
        state = self.replica
        if self.target is None or state.applied is None:
            raise BadRequest(
                f"the target database {self.target_name!r} is no finished replica of {self.name!r}: nothing can fail over"
            )
        if self.source is None and state.source.rpartition("/")[2] != self.name:
            raise Refused(f"the target database {self.target_name!r} is a replica of {state.source}, not of a {self.name!r}")
        if self.source is not None and state.source != self.source_identity:
            raise Refused(
                f"the target database {self.target_name!r} is a replica of {state.source}, not of {self.source_identity}"
            )
        if without_data(state, self.connection.target.policy):
            raise Refused(
                f"the target database {self.target_name!r} has no data, since its policy replicates without it: in place of its "
                "source it would be empty, and a failback would empty that one; set metadata_only to false, and the next load "
                "brings the data"
            )
        if state.undone is not None:
            raise Refused(
                f"the target database {self.target_name!r} was undone to event {state.undone} by request: first "
                f"hive-repl undo {self.target_name} --release"
            )
        return state


def require_not_opened(name: str, marks: FailoverMarks) -> None:
    """Makes sure that a database that is to be closed took no other's place: its marks are all that leads back to that one.

    Args:
        name: of the database.
        marks: its own.

    Raises:
        Refused: it did, and that one is no replica of it yet.
    """
    if marks.role == "opened":
        raise Refused(
            f"{name!r} was opened in place of {marks.origin}, which is no replica of it yet, and never could be one after "
            "another failover: fail back first (hive-repl failover reverse, by the policy from here to there); only if that one "
            f"is lost for good, set the database parameter {ORIGIN} to '' and run it again"
        )


def set_parameters_of_target(metastore: Metastore, name: str, change: Callable[[dict[str, str]], dict[str, str]]) -> Database:
    """Does as :func:`set_parameters`, while nobody pauses or resumes the database; it may become, or have been, a replica."""
    with parameter_lock(metastore, name):
        return set_parameters(metastore, name, change)


def mark_replica(sides: Sides, marks: FailoverMarks, require: Callable[[], None] = lambda: None) -> None:
    """Sets the marks of the target, if it is still a replica: it was read before, and another command may have opened it since.

    Args:
        sides: as they were read.
        marks: the new ones.
        require: raises if they may not be set any more.

    Raises:
        Refused: it is no replica any more, or a load of it runs.
    """
    metastore, name = sides.connection.target.metastore, sides.target_name
    with MetastoreLock(metastore, name) as lock:
        require_replica_still(metastore.database(name), name, sides.name)
        require()
        lock.check()
        set_parameters_of_target(metastore, name, lambda found: with_marks(found, marks))


def require_replica_still(database: Database | None, name: str, source: str) -> ReplicaState:
    """The state of a target that was a finished replica when the command began.

    Args:
        database: the target database.
        name: of it.
        source: name of the source database.

    Raises:
        Refused: it is none now.
    """
    state = replica_state(database)
    if state.applied is None or state.failed_over:
        raise Refused(
            f"{name!r} was opened, or is loaded anew, at the same moment: hive-repl failover status {source} shows where it is"
        )
    return state


def set_parameters(metastore: Metastore, name: str, change: Callable[[dict[str, str]], dict[str, str]]) -> Database:
    """Changes the parameters of a database, if they are not so already.

    Args:
        metastore: of its side.
        name: of the database.
        change: makes the new parameters of the present ones.

    Raises:
        BadRequest: there is no such database.
        MetastoreError: the metastore refuses the change.
    """
    found = metastore.database(name)
    if found is None:
        raise BadRequest(f"{metastore.uri} has no database {name!r}")
    altered = copy_of(found)
    altered.parameters = change(dict(found.parameters or {}))
    if altered.parameters != (found.parameters or {}):
        metastore.alter_database(name, altered, found)
    return altered
