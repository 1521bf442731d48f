"""Patterns of the policy that match nothing: they are misspelt, or of tables or databases that are yet to come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from hive_replication.connect.databases import PatternMatches
from hive_replication.doctor.finding import Finding, ok, warning
from hive_replication.policy.scope import matches


def pattern_findings(
    patterns: Mapping[str, Sequence[str]], tables: Iterable[str], unknown: Sequence[str] = ()
) -> Iterator[Finding]:
    """Judges the patterns of tables (pure).

    Args:
        patterns: by setting of the policy.
        tables: names of all tables in the policy's databases at the source.
        unknown: databases whose tables are not among them, as the metastore does not show these.
    """
    names = set(tables)
    but = f", but maybe one of {', '.join(unknown)}" if unknown else ""
    for setting, given in patterns.items():
        idle = [pattern for pattern in given if pattern != "*" and not any(matches(name, [pattern]) for name in names)]
        for pattern in idle:
            advice = f"correct it in {setting}, unless its tables are yet to come; names have no case, and no database in front"
            yield warning("source", f"pattern in {setting}", f"{pattern!r} matches no table{but}", advice)
        if given and not idle:
            yield ok("source", f"patterns in {setting}", "each matches a table" if names else "there are no tables yet")


def database_findings(patterns: PatternMatches) -> Iterator[Finding]:
    """Judges the patterns of databases (pure).

    Args:
        patterns: what they stand for.
    """
    check = "pattern in databases"
    idle = [pattern for pattern, names in patterns.databases.items() if not names]
    for pattern in idle:
        advice = "correct it in databases, unless its databases are yet to come; names have no case"
        yield warning("source", check, f"{pattern!r} matches no database that is replicated", advice)
    for name, why in patterns.left_out.items():
        found, _, advice = why.partition(": ")
        yield warning("source", f"database {name}", f"matched by a pattern and not replicated: {found}", advice)
    if patterns.databases and not idle:
        yield ok("source", "patterns in databases", "each matches a database")
