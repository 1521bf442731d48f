"""The policy that replicates back: source and target swapped (pure)."""

from __future__ import annotations

from hive_replication.errors import BadRequest
from hive_replication.policy.model import Policy, is_pattern

#: Directories on the old target, which mean nothing on the new one.
_OF_THE_TARGET = ("locations", "external_root", "functions_root")


def swapped(policy: Policy) -> Policy:
    """The policy of the other direction: names of databases and owners turned round, without directories of the old target.

    What it kept outside its databases' directories (external tables, jars of functions) may be read.

    Args:
        policy: of one direction.

    Raises:
        BadRequest: it gives databases of a pattern other names, or two owners one name, which nothing turns back.
    """
    for name, target in policy.databases.items():
        if is_pattern(name) and target != "*":
            raise BadRequest(f"{name!r}: {target!r} gives databases other names: name each of them in databases, then swap again")
    databases = dict((name, target) if is_pattern(name) else (target, name) for name, target in policy.databases.items())
    owners = {target: owner for owner, target in policy.owners.items()}
    if len(owners) < len(policy.owners):
        raise BadRequest("owners gives two owners one name, which nothing turns back: leave one of them out, then swap again")
    of_names = {target: dict(policy.filters(name).texts) for name, target in policy.databases.items() if not is_pattern(name)}
    filters = {
        name: texts for name, texts in policy.partition_filters.items() if is_pattern(name) or name not in policy.databases
    }
    filters |= {target: texts for target, texts in of_names.items() if texts}
    left_out = {"source", "target", "databases", "owners", "partition_filters", *_OF_THE_TARGET}
    kept = policy.model_dump(mode="json", exclude_defaults=True, exclude=left_out)
    outside = filter(None, (policy.external_root, policy.functions_root))
    source = policy.target.model_copy(update={"paths": tuple(dict.fromkeys((*policy.target.paths, *outside)))})
    sides = {"source": source.model_dump(mode="json"), "target": policy.source.model_dump(mode="json")}
    return Policy.model_validate({**kept, **sides, "databases": databases, "owners": owners, "partition_filters": filters})
