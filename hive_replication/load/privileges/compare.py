"""What to grant and to revoke on the target, from grants and roles of both sides (pure).

A privilege is compared by what it is on, who has it, and its name: for whoever asks, it does not matter who granted it, and
a metastore revokes one without asking by whom it was granted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

from hive_replication.metastore.privileges import Grant, Membership, Principal
from hive_replication.metastore.types import PrincipalType

T = TypeVar("T", Grant, Membership)

#: ``grant option``: it is there, but may not be granted to others; ``revoke option``: the other way round.
Action = Literal["grant", "grant option", "revoke", "revoke option"]
#: Every metastore has these roles, and settings of the server say who has them.
RESERVED = frozenset({"admin", "public"})


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """Something to grant or revoke on the target."""

    action: Action
    of: T


@dataclass(frozen=True, slots=True)
class Changes:
    """What makes the target's grants and roles those of the source.

    Args:
        roles: names of roles to create.
        members: memberships of roles.
        grants: privileges on the database and what is in it.
    """

    roles: tuple[str, ...] = ()
    members: tuple[Change[Membership], ...] = ()
    grants: tuple[Change[Grant], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.roles or self.members or self.grants)

    def without(self, others: Changes) -> Changes:
        """Those that are not among others."""
        return Changes(
            tuple(one for one in self.roles if one not in others.roles),
            tuple(one for one in self.members if one not in others.members),
            tuple(one for one in self.grants if one not in others.grants),
        )

    def numbers(self) -> dict[str, int]:
        """How many there are of each kind; those that are 0 are left out."""
        found = {
            "roles created": len(self.roles),
            "roles granted": sum(one.action.startswith("grant") for one in self.members),
            "roles revoked": sum(one.action.startswith("revoke") for one in self.members),
            "privileges granted": sum(one.action.startswith("grant") for one in self.grants),
            "privileges revoked": sum(one.action.startswith("revoke") for one in self.grants),
        }
        return {what: number for what, number in found.items() if number}


@dataclass(frozen=True, slots=True)
class Names:
    """Names of principals on the target.

    Args:
        principals: by those at the source, whatever they are.
        owners: those of users, where ``principals`` does not name them (policy ``owners``).
    """

    principals: Mapping[str, str]
    owners: Mapping[str, str]

    def __call__(self, principal: Principal) -> Principal:
        """A principal of the source on the target."""
        name = principal.name
        own = self.owners.get(name, name) if principal.kind == PrincipalType.USER else name
        return Principal(principal.kind, self.principals.get(name, own))

    def role(self, name: str) -> str:
        """A role of the source on the target."""
        return self(Principal(PrincipalType.ROLE, name)).name


def wanted_grants(grants: Iterable[Grant], table: Callable[[str], str | None], names: Names) -> Iterator[Grant]:
    """The source's grants as the target is to have them.

    Args:
        grants: of the source.
        table: names a table of the source, or "" for the database, on the target; None where its grants are left alone.
        names: of principals.
    """
    for grant in grants:
        name = table(grant.on.table)
        if name is not None:
            yield replace(grant, on=replace(grant.on, table=name), to=names(grant.to), grantor=names(grant.grantor))


def wanted_members(members: Iterable[Membership], names: Names) -> Iterator[Membership]:
    """The source's memberships as the target is to have them, without :data:`RESERVED` roles and those of a role in itself."""
    for member in members:
        role, to = names.role(member.role), names(member.to)
        if role.lower() not in RESERVED and to != Principal(PrincipalType.ROLE, role):
            yield Membership(role, to, member.option, names(member.grantor))


def memberships(roles: Iterable[str], members: Callable[[str], Iterable[Membership]]) -> Iterator[Membership]:
    """Who has some roles, and the roles that have these, and so on.

    Args:
        roles: names.
        members: reads those of one role.
    """
    waiting, known = sorted(set(roles)), set(roles)
    while waiting:
        for member in members(waiting.pop(0)):
            yield member
            if member.to.is_role and member.to.name not in known:
                known.add(member.to.name)
                waiting.append(member.to.name)


def compared(wanted: Iterable[T], found: Iterable[T], *, remove: bool) -> Iterator[Change[T]]:
    """What is to be granted and revoked.

    Args:
        wanted: what the target is to have.
        found: what it has.
        remove: whether to revoke what it is not to have.
    """
    want, have = _by_key(wanted), _by_key(found)
    for key, one in want.items():
        there = have.get(key)
        if there is None:
            yield Change("grant", one)
        elif one.option and not there.option:
            yield Change("grant option", one)
    for key, one in have.items() if remove else ():
        if key not in want:
            yield Change("revoke", one)
        elif one.option and not want[key].option:
            yield Change("revoke option", one)


def _by_key(items: Iterable[T]) -> dict[object, T]:
    """By what is one privilege or membership; of several grantors the first, one whose grant has the option before others."""
    found: dict[object, T] = {}
    for one in items:
        there = found.get(one.key)
        if there is None or (one.option and not there.option):
            found[one.key] = one
    return found
