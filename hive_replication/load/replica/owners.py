"""Owners of replicas (pure): those of the source, or the names that the policy gives them on the target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from hive_replication.metastore.types import Database, Function, PrincipalType, copy_of

T = TypeVar("T", Database, Function)


def owner_on_target(owner: str | None, kind: int | None, owners: Mapping[str, str]) -> str | None:
    """The name of an owner on the target.

    Args:
        owner: at the source.
        kind: whether it is a user, a role or a group (Hive's ``PrincipalType``, None for a user); the policy names users only.
        owners: the policy's setting: names on the target by those at the source.
    """
    return owners.get(owner, owner) if owner and kind in (None, PrincipalType.USER) else owner


def owned_on_target(thing: T, owners: Mapping[str, str]) -> T:
    """A database or function of the source with its owner on the target."""
    image = copy_of(thing)
    image.ownerName = owner_on_target(thing.ownerName, thing.ownerType, owners)
    return image


def owner_of(image: Database, now: Database) -> tuple[str | None, int | None]:
    """Owner of a database and its kind; that which it has now where the image names none: Hive 3 has such, Hive 4 alters none."""
    one = image if image.ownerName else now
    return one.ownerName, one.ownerType
