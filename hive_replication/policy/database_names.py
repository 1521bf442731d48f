"""Names of databases in a policy: what it calls them on either side, and settings that name some of them (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from hive_replication.policy.scope import in_lower_case, matches
from hive_replication.policy.wrong_setting import WrongSetting

# As Hive's metastore takes for a database, and statements for its name; of tables it takes others too.
_NAME = re.compile(r"[a-z0-9_]+")


def is_pattern(database: str) -> bool:
    """Whether a name in ``databases`` is a shell pattern."""
    return any(mark in database for mark in "*?[")


def valid_databases(databases: dict[str, str]) -> dict[str, str]:
    """Target names by source names, all in lower case.

    Raises:
        ValueError: a name is of another catalog, stands twice, or a pattern has no name on the target.
    """
    sources: dict[str, str] = {}
    folded: dict[str, str] = {}
    for source, target in ((in_lower_case(source), target.lower()) for source, target in databases.items()):
        for name in (source, target):
            if "@" in name or "#" in name:
                raise ValueError(f"{name!r} is no database of the catalog hive, the only one that is replicated")
        if source in folded:
            raise ValueError(f"{source!r} is named twice: Hive's names have no case")
        if is_pattern(source) != ("*" in target) or target.count("*") > 1:
            raise ValueError(f"{source!r}: {target!r}: a pattern needs one * in its target name, which stands for the source's")
        if target in sources and not is_pattern(source):
            raise ValueError(f"{sources[target]!r} and {source!r} have the same target {target!r}")
        sources[target] = source
        folded[source] = target
    return folded


def valid_names(databases: dict[str, str]) -> dict[str, str]:
    """Target names by source names in lower case, if a metastore takes them and statements can name them.

    Raises:
        ValueError: one is none that a database can have.
    """
    for source, target in databases.items():
        for name in (target,) if is_pattern(source) else (source, target):
            if not _NAME.fullmatch(name.replace("*", "_")):
                raise ValueError(f"{source!r}: {target!r}: {name!r} is no name of a database: it has letters, digits and _ only")
    return databases


def unused(
    setting: str, names: Iterable[str], databases: Mapping[str, str], *, on_target: bool = False
) -> Iterator[WrongSetting]:
    """What is wrong with names in a setting that are no database of the policy: they do nothing.

    Args:
        setting: where the names stand; patterns among them may wait for databases.
        names: of databases.
        databases: of the policy.
        on_target: whether they are names on the target.
    """
    for name in names:
        if is_pattern(name) and not on_target:
            continue
        known = databases.values() if on_target else databases
        if not any(fnmatchcase(name.lower(), one) if on_target else matches(name, [one]) for one in known):
            where = " on the target" if on_target else ""
            said = f"{setting}.{name}: no database of the policy has this name{where}; it has: {', '.join(known)}"
            yield WrongSetting((setting, name), said)
