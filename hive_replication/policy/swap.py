"""The policy that replicates back: source and target swapped (pure)."""

from __future__ import annotations

from hive_replication.errors import BadRequest
from hive_replication.policy.model import Policy, is_pattern

#: Directories on the old target, which mean nothing on the new one.
_OF_THE_TARGET = ("locations", "external_root", "functions_root")


def swapped(policy: Policy) -> Policy:
    """The policy of the other direction: databases by their names on the other side, without directories of the old target.

    Args:
        policy: of one direction.

    Raises:
        BadRequest: it gives databases of a pattern other names, which no pattern turns back.
    """
    for name, target in policy.databases.items():
        if is_pattern(name) and target != "*":
            raise BadRequest(f"{name!r}: {target!r} gives databases other names: name each of them in databases, then swap again")
    databases = dict((name, target) if is_pattern(name) else (target, name) for name, target in policy.databases.items())
    kept = policy.model_dump(mode="json", exclude_defaults=True, exclude={"source", "target", "databases", *_OF_THE_TARGET})
    sides = {"source": policy.target.model_dump(mode="json"), "target": policy.source.model_dump(mode="json")}
    return Policy.model_validate({**kept, **sides, "databases": databases})
