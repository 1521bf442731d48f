"""Views, rewritten for replicas of databases that have other names (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hive_replication.load.replica.view_text import CannotRewrite, ReadsReplica, reference
from hive_replication.metastore.table_kinds import is_view
from hive_replication.metastore.types import Table, copy_of
from hive_replication.policy.model import RenamedViews

#: Parameters in which Spark keeps the database of unqualified names in a view's text (3.1 and later, and before).
_SPARK = ("view.catalogAndNamespace.part.1", "view.default.database")
_PRESTO = "presto_view"
_WORD = re.compile(r"\w+")


def renamed_databases(databases: Mapping[str, str], source: str, target: str) -> dict[str, str]:
    """The databases that have another name on the target.

    Args:
        databases: target names by source names, as in the policy.
        source: a database that is replicated.
        target: its name on the target.
    """
    return {old: new for old, new in {**databases, source: target}.items() if old != new}


def sources_of_replicas(databases: Mapping[str, str]) -> dict[str, str]:
    """The sources of replicas, by names that are those of replicas alone: what the source calls so is not on the target."""
    return {new.lower(): old for old, new in databases.items() if new.lower() not in databases}


def why_named(table: Table, databases: Mapping[str, str]) -> str:
    """Why a view's text as it is would be wrong on the target, "" where it is not, and for any other table."""
    for source, target in databases.items():
        if named := reference(table, source):
            return f"the view reads {named}, and the database is {target} on the target"
    for target, source in sources_of_replicas(databases).items():
        if named := reference(table, target):
            return f"the view reads {named}, and {target} is the replica of {source} on the target"
    return ""


def rewritten(table: Table, databases: Mapping[str, str]) -> Table:
    """A view that reads the databases by their names on the target; any other table, and a view that names none, as it is.

    Args:
        table: of the source.
        databases: names on the target by those at the source, in lower case.

    Raises:
        CannotRewrite: a text cannot be rewritten for certain; ReadsReplica where it is certain that none would be right.
    """
    if not databases or not is_view(table):
        return table
    parameters = table.parameters or {}
    if parameters.get(_PRESTO, "").lower() == "true":
        raise CannotRewrite("its query is in the SQL of Presto or Trino")
    image = copy_of(table)
    default = next((parameters[key].lower() for key in _SPARK if key in parameters), "")
    spark = {key: _renamed(parameters[key], databases) for key in _SPARK if key in parameters}
    image.parameters = {**parameters, **spark}
    image.viewOriginalText = _text(table.viewOriginalText, databases, default)
    image.viewExpandedText = _text(table.viewExpandedText, databases, default)
    return image


def keeps_text(table: Table, databases: Mapping[str, str], setting: RenamedViews) -> bool:
    """Whether a view is replicated with its text as it is, although databases that it names have other names on the target.

    Args:
        table: of the source.
        databases: names on the target by those at the source, in lower case.
        setting: the policy's.
    """
    try:
        return rewritten(table, databases) != table and setting == "warn"
    except ReadsReplica:
        return setting == "warn"
    except CannotRewrite:
        return setting in ("warn", "rewrite-or-warn")


def _renamed(name: str, databases: Mapping[str, str]) -> str:
    if source := sources_of_replicas(databases).get(name.lower()):
        raise ReadsReplica(name, source)
    return databases.get(name.lower(), name)


def _text(text: str | None, databases: Mapping[str, str], default: str) -> str | None:
    words, replicas = {word.lower() for word in _WORD.findall(text or "")}, sources_of_replicas(databases)
    named, taken = sorted(words & databases.keys()), sorted(words & replicas.keys())
    if not text or not (named or taken):
        return text
    from hive_replication.load.replica.view_query import with_databases  # only now: its parser takes a while to import

    renamed, others = ((name, databases[name]) for name in named), ((name, replicas[name]) for name in taken)
    return with_databases(text, tuple(renamed), tuple(others), default)
