"""The policy that replicates back: source and target swapped (pure)."""

from __future__ import annotations

from collections.abc import Mapping

from hive_replication.errors import BadRequest
from hive_replication.policy.database_names import is_pattern
from hive_replication.policy.model import Policy

#: Directories on the old target, which mean nothing on the new one.
_OF_THE_TARGET = ("locations", "external_root", "functions_root")


def swapped(policy: Policy) -> Policy:
    """The policy of the other direction: names turned round, without directories of the old target.

    What it kept outside its databases' directories (external tables, jars of functions) may be read.

    Args:
        policy: of one direction.

    Raises:
        BadRequest: it gives databases of a pattern other names, or two owners or principals one name, which nothing turns back.
    """
    for name, target in policy.databases.items():
        if is_pattern(name) and target != "*":
            raise BadRequest(f"{name!r}: {target!r} gives databases other names: name each of them in databases, then swap again")
    databases = dict((name, target) if is_pattern(name) else (target, name) for name, target in policy.databases.items())
    owners = _turned(policy.owners, "owners", "owners")
    privileges = policy.privileges.model_copy(
        update={"principals": _turned(policy.privileges.principals, "privileges.principals", "principals")}
    )
    left_out = {"source", "target", "databases", "owners", "privileges", "partition_filters", "priorities", *_OF_THE_TARGET}
    kept = policy.model_dump(mode="json", exclude_defaults=True, exclude=left_out)
    outside = filter(None, (policy.external_root, policy.functions_root))
    source = policy.target.model_copy(update={"paths": tuple(dict.fromkeys((*policy.target.paths, *outside)))})
    sides = {"source": source.model_dump(mode="json"), "target": policy.source.model_dump(mode="json")}
    names = {"databases": databases, "owners": owners, "privileges": privileges.model_dump(mode="json", exclude_defaults=True)}
    return Policy.model_validate(
        {**kept, **sides, **names, "partition_filters": _filters(policy), "priorities": _priorities(policy)}
    )


def _filters(policy: Policy) -> dict[str, dict[str, str]]:
    """Each database keeps its partition filters under its name on the target, none included, whatever pattern that matches."""
    others = {name: texts for name, texts in policy.partition_filters.items() if is_pattern(name) or name not in policy.databases}
    by_patterns = policy.model_copy(update={"partition_filters": others})
    names = {target: policy.filters(name).texts for name, target in policy.databases.items() if not is_pattern(name)}
    return others | {target: dict(texts) for target, texts in names.items() if texts != by_patterns.filters(target).texts}


def _priorities(policy: Policy) -> dict[str, int]:
    """Each database keeps its priority, under its name on the target."""
    others = {
        name: value for name, value in policy.priorities.items() if name.lower() not in policy.databases or is_pattern(name)
    }
    by_patterns = policy.model_copy(update={"priorities": others})
    names = {target: policy.priority(name) for name, target in policy.databases.items() if not is_pattern(name)}
    return others | {target: value for target, value in names.items() if value != by_patterns.priority(target)}


def _turned(names: Mapping[str, str], setting: str, what: str) -> dict[str, str]:
    turned = {target: source for source, target in names.items()}
    if len(turned) < len(names):
        raise BadRequest(f"{setting} gives two {what} one name, which nothing turns back: leave one of them out, then swap again")
    return turned
