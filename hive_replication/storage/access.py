"""Who may do what with a file or directory of HDFS: owner, group, mode and ACL, and what is left where not all can be kept.

Everything here is pure. Whatever it drops, nobody but the owner gets more than before: see :meth:`Access.without_group`,
:meth:`Access.without_acl` and :meth:`Access.below`. Bits are those of one class: 4 read, 2 write, 1 execute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

#: What an ACL entry of a name is about.
AclKind = Literal["user", "group"]


@dataclass(frozen=True, slots=True, order=True)
class AclEntry:
    """An entry of an ACL; in a directory's default ACL also those without name, for owner, group and others.

    Args:
        kind: ``user`` or ``group``; in a default ACL also ``mask`` and ``other``.
        name: of the user or group, "" for the owner or the owning group.
        bits: what the entry allows, the mask applied except in a default ACL.
    """

    kind: AclKind | Literal["mask", "other"]
    name: str
    bits: int


@dataclass(frozen=True, slots=True)
class Access:
    """Owner, group, mode and ACL.

    Args:
        owner: user name.
        group: the owning group.
        user: bits of the owner.
        members: bits of the owning group, the ACL's mask applied.
        other: bits of everybody else.
        sticky: whether only owners may remove what a directory holds.
        named: entries of the ACL, sorted.
        default: entries of a directory's default ACL, sorted; new files in it inherit them.
    """

    owner: str
    group: str
    user: int
    members: int
    other: int
    sticky: bool = False
    named: tuple[AclEntry, ...] = ()
    default: tuple[AclEntry, ...] = ()

    @classmethod
    def of_mode(cls, owner: str, group: str, mode: int) -> Access:
        """Access without an ACL; ``mode`` is octal's ``0o1777`` at most."""
        return cls(owner, group, mode >> 6 & 7, mode >> 3 & 7, mode & 7, bool(mode & 0o1000))

    @property
    def mode(self) -> int:
        """Permission bits; with an ACL those of the group are its mask, as HDFS shows them."""
        mask = _union((self.members, *(entry.bits for entry in self.named)))
        return self.sticky << 9 | self.user << 6 | mask << 3 | self.other

    @property
    def has_acl(self) -> bool:
        """Whether there is more than owner, group and mode."""
        return bool(self.named or self.default)

    def private(self) -> Access:
        """For the owner alone."""
        return Access(self.owner, self.group, self.user, 0, 0, self.sticky)

    def closed(self) -> Access:
        """For the owner alone by its mode, an ACL being there still: its mask is empty."""
        return _with_bits(self, lambda _: 0)

    def without_group(self) -> Access:
        """For another, unknown group: neither its members nor those of the present one get more than they have."""
        both = self.members & self.other
        return replace(self, members=both, other=both)

    def without_acl(self) -> Access:
        """With owner, group and mode only: whom an entry names is one of the group or of the others then."""
        users = [entry.bits for entry in self.named if entry.kind == "user"]
        others = _common((self.other, *(entry.bits for entry in self.named)))
        return replace(self, members=_common((self.members, *users)), other=others, named=(), default=())

    def exceeds(self, source: Access) -> bool:
        """Whether it allows somebody more than its source; owners are left aside."""
        allowed = source if self.named else source.without_acl()
        if self.group != source.group:
            allowed = allowed.without_group()
        all_of_it = allowed.members & allowed.other
        mine, theirs = ({(one.kind, one.name): one.bits for one in access.named} for access in (self, allowed))
        pairs = [(self.members, allowed.members), (self.other, allowed.other)]
        pairs += [(bits, theirs.get(name, all_of_it)) for name, bits in mine.items()]
        pairs += [(self.members | self.other, bits) for name, bits in theirs.items() if name not in mine]
        if source.sticky and not self.sticky and any(has & 2 for has, _ in pairs):
            return True  # who may write there may remove what others have
        return any(has & ~may for has, may in pairs)

    def __str__(self) -> str:
        acl = "".join(f", {one.kind} {one.name} {one.bits:o}" for one in self.named)
        return f"{self.owner}:{self.group} {self.mode:o}{acl}"

    def below(self, directory: Access) -> Access:
        """What is left of it in a directory that has to be passed; the owner keeps what he has.

        Passing needs the right to execute alone. Where both tell people apart, and by other names, it is for the owner alone.
        """
        outer = _with_bits(directory, lambda bits: 7 if bits & 1 else 0)
        if _is_for_all(outer):
            return _with_bits(self, lambda bits: bits & outer.other)
        if _is_for_all(self):
            kept = _with_bits(outer, lambda bits: bits & self.other)
            return replace(kept, owner=self.owner, user=self.user, sticky=self.sticky, default=self.default)
        names = [(entry.kind, entry.name) for entry in self.named]
        if (self.group, names) != (outer.group, [(entry.kind, entry.name) for entry in outer.named]):
            return self.private()
        named = tuple(replace(one, bits=one.bits & two.bits) for one, two in zip(self.named, outer.named, strict=True))
        return replace(self, members=self.members & outer.members, other=self.other & outer.other, named=named)


def _union(bits: Iterable[int]) -> int:
    return reduce(lambda one, two: one | two, bits)


def _common(bits: Iterable[int]) -> int:
    return reduce(lambda one, two: one & two, bits)


def _with_bits(access: Access, change: Callable[[int], int]) -> Access:
    """With other bits for all but the owner."""
    named = tuple(replace(entry, bits=change(entry.bits)) for entry in access.named)
    return replace(access, members=change(access.members), other=change(access.other), named=named)


def _is_for_all(access: Access) -> bool:
    return all(bits == access.other for bits in (access.members, *(entry.bits for entry in access.named)))


def effective(chain: Iterable[Access]) -> Access:
    """What a chain of directories allows together, from the root to the one that is meant.

    Raises:
        TypeError: the chain is empty.
    """
    return reduce(lambda directory, inner: inner.below(directory), chain)
