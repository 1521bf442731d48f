"""What the shell completes: words of statements, databases of the policy, and their tables, for which the source is asked."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hive_replication.cli.settings import DEFAULT_CONFIG
from hive_replication.errors import ReplicationError

if TYPE_CHECKING:
    from hive_replication.policy import Policy

_PATIENCE = 3  # seconds that a metastore may take


def databases(context: typer.Context, incomplete: str) -> list[str]:
    """Databases of the policy by their names on the source."""
    policy = _policy(context)
    return _beginning(_names(policy), incomplete) if policy else []


def objects(context: typer.Context, incomplete: str) -> list[str]:
    """Databases on the source, and after a dot their tables."""
    return _objects(_policy(context), incomplete, source=True)


def replicas(context: typer.Context, incomplete: str) -> list[str]:
    """The same on the target."""
    return _objects(_policy(context), incomplete, source=False)


def words(context: typer.Context, incomplete: str) -> list[str]:
    """The next word of a statement."""
    before = [word.upper() for word in context.params.get("words") or ()]
    if not before:
        return _beginning(["DUMP", "LOAD", "STATUS"], incomplete.upper())
    if len(before) == 1:
        names = _objects(_policy(context), incomplete, source=before[0] == "DUMP")
        return [*_beginning(["FROM"] if before[0] == "LOAD" else [], incomplete.upper()), *names]
    return _beginning([word for word in ("FROM", "TO", "BATCH") if word not in before], incomplete.upper())


def _objects(policy: Policy | None, incomplete: str, *, source: bool) -> list[str]:
    if policy is None:
        return []
    database, dot, _ = incomplete.lower().partition(".")
    if not dot:
        return _beginning(_names(policy) if source else map(policy.target_of, _names(policy)), incomplete)
    from hive_replication.metastore.client import Metastore

    side = policy.source if source else policy.target
    with suppress(ReplicationError), Metastore.of(side, timeout=_PATIENCE, retries=1) as metastore:
        tables = filter(policy.includes, metastore.table_names(database))
        return _beginning((f"{database}.{table}" for table in tables), incomplete)
    return []


def _names(policy: Policy) -> list[str]:
    from hive_replication.policy.database_names import is_pattern

    return [name for name in policy.databases if not is_pattern(name)]


def _policy(context: typer.Context) -> Policy | None:
    """The policy of the command line so far; None where it cannot be read: a completion is no place for errors."""
    from hive_replication.policy import load_policy

    given = context.params.get("config") or context.find_root().params.get("config") or os.environ.get("HIVE_REPL_CONFIG")
    with suppress(ReplicationError):
        return load_policy(Path(given) if given else DEFAULT_CONFIG)
    return None


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.lower().startswith(incomplete.lower()))
