"""Patterns of the policy that match no table: they are misspelt, or of tables that are yet to come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from hive_replication.doctor.finding import Finding, ok, warning
from hive_replication.policy.scope import matches


def pattern_findings(patterns: Mapping[str, Sequence[str]], tables: Iterable[str]) -> Iterator[Finding]:
    """Judges the patterns of tables (pure).

    Args:
        patterns: by setting of the policy.
        tables: names of all tables in the policy's databases at the source.
    """
    names = set(tables)
    for setting, given in patterns.items():
        idle = [pattern for pattern in given if pattern != "*" and not any(matches(name, [pattern]) for name in names)]
        for pattern in idle:
            advice = f"correct it in {setting}, unless its tables are yet to come; names have no case, and no database in front"
            yield warning("source", f"pattern in {setting}", f"{pattern!r} matches no table", advice)
        if given and not idle:
            yield ok("source", f"patterns in {setting}", "each matches a table" if names else "there are no tables yet")
