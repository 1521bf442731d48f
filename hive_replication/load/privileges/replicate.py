"""Compares grants and roles of a replica with those of its source, grants and revokes, and looks what came of it.

Nothing is kept of it between two calls: each compares what both metastores have, so one that was killed is simply made again.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hive_replication.load.privileges.compare import (
    RESERVED,
    Change,
    Changes,
    Names,
    compared,
    memberships,
    wanted_grants,
    wanted_members,
)
from hive_replication.load.privileges.later_names import LaterNames
from hive_replication.load.replica.state import ReplicaState, is_ours
from hive_replication.load.replica.target import Target
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.names import partition_name
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.privileges import Grant, Membership
from hive_replication.metastore.tables import batches
from hive_replication.metastore.types import Table

_LOG = logging.getLogger(__name__)

_BATCH = 500  # privileges that are granted or revoked in one call
_ENOUGH = 10  # calls that a metastore may refuse, and carry out none, before no more are made
_ROUNDS = 4  # each revokes a privilege of one grantor; those that have more are revoked by the next load


@dataclass(frozen=True)
class Replica:
    """What is compared: a target database, or some tables of it.

    Args:
        source_database: its name at the source.
        database: its name on the target.
        identity: what its replicas are stamped with.
        state: of the target database; the grants on a database that is no replica itself are left alone.
        includes: whether a source table belongs to the policy.
        tables: names on the target of some source tables; None for the whole database.
        stands: event id of the source that these tables stand at; that of the database where None.
    """

    source_database: str
    database: str
    identity: str
    state: ReplicaState
    includes: Callable[[str], bool]
    tables: Mapping[str, str] | None = None
    stands: int | None = None

    def on_target(self, table: str) -> str | None:
        """Name on the target of a source table, or "" of the database; None where its grants are left alone."""
        if not table:
            return "" if self.state.source and self.tables is None else None
        name = (table if self.includes(table) else None) if self.tables is None else self.tables.get(table)
        return None if name in self.state.held or name in self.state.left else name

    def of_target(self, table: str) -> bool:
        """Whether grants on a table of the target, or with "" on the database itself, are compared."""
        sources = [table] if self.tables is None else [one for one, name in self.tables.items() if name == table]
        return any(self.on_target(one) == table for one in sources)


@dataclass(frozen=True, slots=True)
class PrivilegeReport:
    """What was found of grants and roles, and done about it.

    Args:
        database: target database.
        found: what differed.
        left: what differs still; all of it where only a look was asked for.
        problems: why something could not be done, a sentence each.
    """

    database: str
    found: Changes
    left: Changes
    problems: tuple[str, ...] = ()

    @property
    def numbers(self) -> Mapping[str, int]:
        """How many were granted, revoked and created, without those that are 0."""
        return self.found.without(self.left).numbers()

    @property
    def exit_code(self) -> int:
        """0 if nothing differs any more, else 1."""
        return 1 if self.left or self.problems else 0

    def rows(self) -> Iterator[tuple[str, str, str, str, str]]:
        """What differed, for people: what is to be done, a privilege or role, what it is on, who has it, and from whom."""
        for role in self.found.roles:
            yield "create", f"role {role}", "", "", ""
        for member in self.found.members:
            yield member.action, f"role {member.of.role}", "", _who(member.of), str(member.of.grantor)
        for change in self.found.grants:
            yield change.action, change.of.privilege, change.of.on.of(self.database), _who(change.of), str(change.of.grantor)


def replicate_privileges(
    source: Metastore, target: Target, replica: Replica, check: Callable[[], None], *, apply: bool = True
) -> PrivilegeReport:
    """Makes the target's grants and roles those of the source, as the policy says (``privileges``).

    Args:
        source: metastore of the source.
        target: the target side.
        replica: what is compared.
        check: raises if the lock on the target database is lost.
        apply: grant and revoke what differs; else it is compared only.

    Raises:
        MetastoreError: one of the metastores refuses to tell its grants, or all of what was to be done.
        Unreachable: one of them does not answer; another call goes on.
    """
    stands = replica.state.applied or 0 if replica.stands is None else replica.stands
    most = target.policy.max_message_bytes
    later = LaterNames(source, replica.source_database, stands, most, replica.on_target, replica.state.at)
    comparison = _Comparison(source, target, replica, later)
    found, problems = comparison.changes()
    left, work = found, _Work(target.metastore, replica.database, check)
    for _ in range(_ROUNDS if apply else 0):
        if not left or work.refused:
            break
        work.carry_out(left)
        left, problems = comparison.changes()
    if left and apply:
        problems = (*problems, *work.problems(left))
    return PrivilegeReport(replica.database, found, left, tuple(problems))


@dataclass(frozen=True)
class _Comparison:
    """Both sides of a replica."""

    source: Metastore
    target: Target
    replica: Replica
    later: LaterNames

    def changes(self) -> tuple[Changes, Sequence[str]]:
        """What is to be done now, and why something else is not."""
        replica, policy = self.replica, self.target.policy
        names, settings = Names(policy.privileges.principals, policy.owners), policy.privileges
        at_source = self.source.table_names(replica.source_database)
        ours = self._grants(self.source, replica.source_database, at_source, lambda table: replica.on_target(table) is not None)
        there = self.target.metastore.table_names(replica.database)
        theirs = self._grants(self.target.metastore, replica.database, there, replica.of_target)
        wanted = wanted_grants(ours, replica.on_target, names)
        kept = {replica.on_target(name) for name in at_source}
        found = self._on_replicas(list(compared(wanted, theirs, remove=settings.remove)), kept)
        grants, problems = self.later.without(found)
        roles_there = set(self.target.metastore.role_names()) | RESERVED
        needed = {one.of.to.name for one in grants if one.of.to.is_role and one.action.startswith("grant")} - roles_there
        members, lacking = tuple[Change[Membership], ...](), set[str]()
        if settings.roles:
            members, roles = self._members({one.to.name for one in ours if one.to.is_role}, names, roles_there)
            lacking = (roles | needed) - roles_there
        without = needed - lacking
        possible = tuple(one for one in grants if not (one.of.to.is_role and one.of.to.name in without))
        problems += [
            f"the target has no role {name}, which privileges are granted to: create it, or set privileges.roles in the policy"
            for name in sorted(without)
        ]
        return Changes(tuple(sorted(lacking)), members, possible), problems

    def _members(self, first: set[str], names: Names, there: set[str]) -> tuple[tuple[Change[Membership], ...], set[str]]:
        """What is to be done about the members of some roles of the source, and the names of all these roles on the target."""
        wanted = list(wanted_members(memberships(first - RESERVED, self.source.members), names))
        roles = {names.role(name) for name in first} | {one.role for one in wanted}
        roles |= {one.to.name for one in wanted if one.to.is_role}
        theirs = [one for role in sorted(roles & there - RESERVED) for one in self.target.metastore.members(role)]
        return tuple(compared(wanted, theirs, remove=self.target.policy.privileges.remove)), roles

    def _grants(self, metastore: Metastore, db: str, tables: Iterable[str], taken: Callable[[str], bool]) -> list[Grant]:
        found = metastore.grants(db, filter(taken, tables), self.target.threads)
        return [one for one in found if taken(one.on.table)]

    def _on_replicas(self, changes: Sequence[Change[Grant]], source: Collection[str | None]) -> list[Change[Grant]]:
        """Those on replicas that are there; and of a table that the source does not have nothing is revoked: it may be renamed.

        Args:
            changes: found by names alone.
            source: names on the target of the tables that the source has.
        """
        names = {one.of.on.table for one in changes} - {""}
        ours = {
            table.tableName.lower(): table
            for table in self.target.metastore.tables(self.replica.database, sorted(names))
            if is_ours(table, self.replica.identity)
        }
        parts: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        for one in changes:
            if one.of.on.values and one.of.on.table in ours:
                parts[one.of.on.table].add(one.of.on.values)
        present = {name: self._present(ours[name], values) for name, values in parts.items()}
        return [
            one
            for one in changes
            if (not one.of.on.table or one.of.on.table in ours)
            and not (one.action.startswith("revoke") and one.of.on.table and one.of.on.table not in source)
            and (not one.of.on.values or one.of.on.values in present[one.of.on.table])
        ]

    def _present(self, table: Table, partitions: Collection[tuple[str, ...]]) -> set[tuple[str, ...]]:
        """Those of a replica's partitions that are there and inside the policy's filter."""
        keys = [key.name for key in table.partitionKeys or []]
        asked = sorted(partition_name(keys, values) for values in partitions if len(values) == len(keys))
        metastore = self.target.within_filters(self.replica.source_database).metastore
        name = table.tableName.lower()
        return {tuple(one.values) for one in by_name(table, metastore.partitions(self.replica.database, name, asked)).values()}


@dataclass
class _Work:
    """Grants and revokes on the target, and remembers what it refuses: one of them keeps no other from being done."""

    metastore: Metastore
    database: str
    check: Callable[[], None]
    done: int = 0
    refused: dict[object, MetastoreError] = field(default_factory=dict[object, MetastoreError])

    def carry_out(self, changes: Changes) -> None:
        """Does what is to be done; roles first, since a privilege can be granted to a role that is there."""
        for role in changes.roles:
            self._try(role, lambda role=role: self.metastore.create_role(role, self.metastore.access.known_as))
        for member in changes.members:
            self._try(member, lambda member=member: self._member(member))
        grants = _by_action(changes.grants)
        self._all(grants["grant option"], lambda some: self.metastore.revoke(self.database, some))
        self._all([*grants["grant option"], *grants["grant"]], lambda some: self.metastore.grant(self.database, some))
        self._all(grants["revoke"], lambda some: self.metastore.revoke(self.database, some))
        self._all(grants["revoke option"], lambda some: self.metastore.revoke(self.database, some, option_only=True))

    def problems(self, left: Changes) -> Iterator[str]:
        """Why what is left was not done, a sentence for each reason."""
        left_over = [*left.roles, *left.members, *left.grants]
        reasons: dict[str, int] = defaultdict(int)
        for one in left_over:
            error = self.refused.get(one)
            reasons[str(error) if error else "the metastore answers that it is done, and it is not"] += 1
        for reason, number in list(reasons.items())[:_ENOUGH]:
            yield f"{number} of {len(left_over)} grants and roles that differ stay as they are: {reason}"

    def _member(self, change: Change[Membership]) -> None:
        match change.action:
            case "grant":
                self.metastore.grant_role(change.of)
            case "grant option":
                self.metastore.revoke_role(change.of)
                self.metastore.grant_role(change.of)
            case "revoke":
                self.metastore.revoke_role(change.of)
            case "revoke option":
                self.metastore.revoke_role(change.of, option_only=True)

    def _all(self, changes: Sequence[Change[Grant]], do: Callable[[Sequence[Grant]], None]) -> None:
        """Some privileges, a batch a call; one by one where the metastore refuses a batch."""
        for batch in batches(changes, _BATCH):
            try:
                self.check()
                do([one.of for one in batch])
                self.done += 1
            except MetastoreError as error:
                _LOG.info("privileges are granted and revoked one by one: %s", error)
                for one in batch:
                    self._try(one, lambda one=one: do([one.of]))

    def _try(self, what: object, do: Callable[[], None]) -> None:
        """Does something, or remembers why it is refused.

        Raises:
            MetastoreError: the metastore refuses one after another.
        """
        self.check()
        try:
            do()
            self.done += 1
        except MetastoreError as error:
            self.refused[what] = error
            if not self.done and len(self.refused) >= _ENOUGH:
                raise


def _who(one: Grant | Membership) -> str:
    return f"{one.to} with grant option" if one.option else str(one.to)


def _by_action(changes: Sequence[Change[Grant]]) -> Mapping[str, list[Change[Grant]]]:
    found: dict[str, list[Change[Grant]]] = defaultdict(list)
    for one in changes:
        found[one.action].append(one)
    return found
