"""The target database of a load: its present state, and all changes of the database itself.

It is read when the load begins, again after the load has created it, and before each change of its properties, since a pause or
another property may be set at any time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from itertools import chain

from hive_replication.errors import MetastoreError, Refused, ReplicationError
from hive_replication.load.apply import refused_properties
from hive_replication.load.apply.taken_places import TakenPlaces
from hive_replication.load.journal.journal import Journal
from hive_replication.load.layout.directories import Layout
from hive_replication.load.layout.live_locations import databases_within, live_locations
from hive_replication.load.layout.move_to_retired import retire_database, retire_own, retire_unused
from hive_replication.load.operations.functions import foreign_functions
from hive_replication.load.operations.left_open import end_left
from hive_replication.load.operations.transactions import policy_of
from hive_replication.load.plan import gate
from hive_replication.load.plan.conflicts import Conflicts
from hive_replication.load.replica.drops import drop_table
from hive_replication.load.replica.failover_marks import read_only
from hive_replication.load.replica.managed_location import without_external
from hive_replication.load.replica.owners import owned_on_target
from hive_replication.load.replica.parameter_lock import parameter_lock
from hive_replication.load.replica.state import (
    LAST_ID,
    SOURCE,
    ReplicaState,
    database_with_state,
    is_ours,
    object_id,
    replica_state,
)
from hive_replication.load.replica.target import Target
from hive_replication.logs import about
from hive_replication.metastore.types import Database, copy_of
from hive_replication.storage import Denied, paths
from hive_replication.storage.boundary import RESERVED, is_reserved

_LOG = logging.getLogger(__name__)

_UNDROPPABLE = "default"  # by Hive's metastore


def _stays(error: ReplicationError) -> bool:
    """Whether a store will refuse to move a directory each time: for rights, a link out of the roots, or snapshots of HDFS."""
    return isinstance(error, Denied | Refused) or "is snapshottable" in str(error)


class TargetDatabase:
    """A target database, under its lock.

    Args:
        target: the target side.
        name: of the database.
        check: raises if the lock is lost.
        dry: whether this is only a plan, which changes nothing.

    Attributes:
        there: whether it exists in the target's metastore.
        exists: whether it exists after the operations carried out, or planned, so far.
        state: its replication state after these operations.
        image: its image when the load began, or created it; None if it does not exist.
        location: its directory, or the one that the metastore would choose.
        left: of directories that its drop has left where they are, which and why.
        refused: why it lacks what the source has of the database itself; "" where it does not.
    """

    def __init__(self, target: Target, name: str, check: Callable[[], None], *, dry: bool) -> None:
        self.target, self.name, self.check, self.dry = target, name, check, dry
        self.left: list[str] = []
        self.refused = ""
        self._read()
        self.exists = self.there
        self.state = self._written = replica_state(self.image)

    def _read(self) -> None:
        self.image = self.target.metastore.database(self.name)
        self.there = self.image is not None
        self._journal: Journal | None = None
        self._taken: TakenPlaces | None = None
        self.location = ((self.image and self.image.locationUri) or self.target.default_locations(self.name)[0]).rstrip("/")

    @property
    def journal(self) -> Journal:
        """The journal in its directory, for all that a load asks it."""
        self._journal = self._journal or Journal(self.target.storage, self.location)
        return self._journal

    @property
    def taken(self) -> TakenPlaces:
        """The directories in it that are taken, for all that a load places."""
        self._taken = self._taken or TakenPlaces(self.target, self.name, self.location)
        return self._taken

    def create(self, image: Database, state: ReplicaState | None, source: str) -> bool:
        """Creates it together with its state, in one call; returns whether anything was changed.

        What an earlier one of its name has left open of the source's transactions is ended before.

        Args:
            image: its properties.
            state: its state; None if the database itself is no replica, but one table in it.
            source: identity of the load's source.

        Raises:
            Refused: the policy has it created in a directory of replication's own, or that takes no external tables.
        """
        self.exists, self.state = True, state or self.state
        if self.dry:
            return False
        self.check()
        image = owned_on_target(image, self.target.policy.owners)
        image.locationUri = self.target.policy.locations.get(self.name)
        if image.locationUri and is_reserved(image.locationUri):
            raise Refused(f"locations.{self.name} of the policy leads into {RESERVED}, replication's own: choose another")
        if image.locationUri and (reason := without_external(image, self.target.metastore.config_value)):
            raise Refused(f"locations.{self.name} of the policy: {reason}; choose another")
        end_left(self.target, self.name, policy_of(source, self.name), self.check)
        made = image if state is None else self._with(image, state)
        self.refused = refused_properties.created(self.target.metastore, made, self.check)
        self._written = self.state
        self._read()  # its directory is the metastore's choice, where it is not the policy's
        if not self.there:
            raise ReplicationError(
                f"the metastore answers that it has created the target database {self.name!r}, and it has not: load again"
            )
        self.journal.end()  # the directory may be that of an earlier one, which was dropped by hand
        return True

    def alter(self, image: Database, record: Callable[[Database], None]) -> bool:
        """Changes its properties, unless the metastore refuses them; returns whether anything was changed.

        Args:
            image: the new properties.
            record: called with the database as it was before.
        """
        with parameter_lock(self.target.metastore, self.name):
            current = self.target.metastore.database(self.name)
            if current is None:
                raise ReplicationError(f"the target database {self.name!r} went away during the load")
            altered = self._with(current, self._written, owned_on_target(image, self.target.policy.owners))
            self.refused = ""
            if altered == current:
                return False
            self.check()
            record(current)
            self.refused = refused_properties.altered(self.target.metastore, self.name, altered, current)
        return not self.refused

    def drop(self, evid: int, conflicts: Conflicts) -> bool:
        """Drops it, or only our replicas in it if it contains foreign objects or is ``default``; returns whether it was dropped.

        It stays too with replicas that a materialized view of another database reads: the metastore does not drop them.

        Its directory goes to retention, or only those of its tables if another database lies in it. What the store does not let
        go, such as a directory with snapshots, is left where it is: with it a database of that name could never come again.

        Args:
            evid: event id of the drop.
            conflicts: decides about foreign tables, functions, stored procedures and packages.

        Raises:
            Refused: it contains foreign objects, and the policy refuses to keep them.
        """
        dropped, self._taken = False, None
        if self.exists and not self.dry:
            metastore = self.target.metastore
            names = metastore.table_names(self.name)
            kept = conflicts.dropped_with(metastore.tables(self.name, names))
            kept += self._read_by_views(names, kept)
            functions = metastore.functions(self.name)
            strange = foreign_functions(self.target, self.name, self.location, functions)
            code = conflicts.dropped_with_code([*strange, *metastore.procedures(self.name)])
            others = databases_within(metastore, self.location, self.name)
            self.check()
            end_left(self.target, self.name, policy_of(conflicts.source, self.name), self.check)
            if kept or code or self.name.lower() == _UNDROPPABLE:
                self._drop_tables(evid, names, kept, others)
                for function in functions:
                    if function.functionName not in code:
                        self.check()
                        metastore.drop_function(self.name, function.functionName)
                self._end_journal()
                self.write_state(ReplicaState())
                return False
            # The directory first: a load killed between the two calls finds the database still there, and drops it again.
            if others:
                self._drop_tables(evid, names, kept, others)
                self._retire(self.location, partial(retire_own, self.target.storage, self.location, evid))
            else:
                for name in names:
                    self.check()
                    metastore.drop_table(self.name, name, delete_data=False)
                self._retire(self.location, partial(retire_database, self.target.storage, self.location, evid))
            self._end_journal()
            self.check()
            metastore.drop_database(self.name, delete_data=False, cascade=True)
            self.there, self.image, dropped = False, None, True
        self.exists = False
        self.state = self._written = ReplicaState()
        return dropped

    def _read_by_views(self, names: list[str], kept: list[str]) -> list[str]:
        """Tables that the metastore does not drop, since materialized views read them that stay; sorts those that go first."""
        found = self.target.metastore.materialized_views_over(self.name)
        going = {f"{self.name}.{name}" for name in names if name not in kept}
        stay = {name: views for name, all_ in found.items() if name in names and (views := sorted(set(all_) - going))}
        for name in sorted(stay.keys() - kept):
            shown = f"{self.name}.{name}"
            why = (
                f"{shown} stays, and {self.name} with it: the materialized view {stay[name][0]} reads it; drop that, then {shown}"
            )
            _LOG.warning("target database %s: %s", self.name, why, extra=about(self.name))
            self.left.append(why)
        views = set(chain(*found.values()))
        names.sort(key=lambda name: f"{self.name}.{name}" not in views)  # which go before what they read
        return sorted(stay.keys() - kept)

    def _drop_tables(self, evid: int, names: list[str], kept: list[str], others: list[str]) -> None:
        """Drops all tables but those that are kept; their directories are retired where nothing that stays lies.

        Each directory goes first: a load that is killed then finds the table still there. A drop that is refused brings it back.

        Args:
            evid: event id of the drop.
            names: of all tables, in the order in which the metastore drops them.
            kept: those of foreign tables that stay.
            others: directories of other databases in this one's.
        """
        metastore, dropped = self.target.metastore, [name for name in names if name not in kept]
        live = live_locations(metastore, self.name, others, dropped)
        found = {table.tableName: table for table in metastore.tables(self.name, dropped)}  # in no certain order
        for table in (found[name] for name in dropped if name in found):
            place = table.sd.location
            retired = self._retire(str(place), partial(retire_unused, self.target.storage, self.location, place, evid, live))
            try:
                drop_table(metastore, table)
            except MetastoreError:
                if retired:
                    self.target.storage.rename(retired, paths.collapsed(str(place)))
                raise

    def _end_journal(self) -> None:
        """It stays where the directory does: no undo of the next database of the name goes back to before the drop.

        Without the right to do so the load fails: a right that is lacked, or a key that has changed, may come back.
        """
        self._retire(Layout(self.location).journal, self.journal.end, needed=True)

    def _retire(self, directory: str, move: Callable[[], str | None], *, needed: bool = False) -> str:
        """Moves a directory; returns where it is then, as far as that is told."""
        self.check()
        try:
            return move() or ""
        except ReplicationError as error:
            if not _stays(error) or (needed and isinstance(error, Denied)):
                raise  # the next load may move it
            why = f"the directory {directory} of what is dropped cannot be moved, and stays until it is deleted by hand: {error}"
            _LOG.warning("target database %s: %s", self.name, why, extra=about(self.name))
            self.left.append(why)
            return ""

    def write_state(self, state: ReplicaState) -> None:
        """Writes its state if it changed."""
        self.state = state
        if self.dry or state == self._written:
            return
        with parameter_lock(self.target.metastore, self.name):
            current = self.target.metastore.database(self.name)
            if current is None:
                return
            self.check()
            altered = self._with(current, state)
            if altered.parameters != current.parameters:
                self.target.metastore.alter_database(self.name, altered, current)
        self._written = state

    def _with(self, database: Database, state: ReplicaState, image: Database | None = None) -> Database:
        """A database with a state; of a policy with ``read_only`` a replica is marked so, until it is none any more."""
        made = database_with_state(database, state, image)
        if self.target.policy.read_only and state.source:
            made.parameters = read_only(made.parameters, "true")
        elif self.target.policy.read_only and SOURCE in (database.parameters or {}):
            made.parameters = read_only(made.parameters, "")
        return made

    def raise_table(self, name: str, evid: int, source: str) -> None:
        """Raises the state id of one replica, after a load of this table only."""
        table = self.target.metastore.table(self.name, name)
        if self.dry or table is None or not is_ours(table, source) or gate.applied(evid, table_id=object_id(table)):
            return
        raised = copy_of(table)
        raised.parameters = {**(table.parameters or {}), LAST_ID: str(evid)}
        self.check()
        self.target.metastore.alter_table(self.name, name, raised)
