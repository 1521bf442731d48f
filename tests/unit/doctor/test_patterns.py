"""What the doctor says of patterns."""

from __future__ import annotations

from hive_replication.connect.databases import PatternMatches
from hive_replication.doctor.patterns import database_findings, pattern_findings


def test_a_pattern_that_matches_nothing_is_told_and_case_is_none() -> None:
    found = list(pattern_findings({"tables": ("*A1", "ordres"), "exclude": ()}, ["xa1", "orders"]))
    assert [(one.verdict, one.check, one.found) for one in found] == [
        ("warning", "pattern in tables", "'ordres' matches no table")
    ]
    assert "tables" in found[0].advice


def test_patterns_that_match_are_well() -> None:
    found = list(pattern_findings({"tables": ("*",), "exclude": ("TMP_*",)}, ["tmp_x"]))
    assert [(one.verdict, one.check) for one in found] == [("ok", "patterns in tables"), ("ok", "patterns in exclude")]


def test_a_pattern_of_databases_that_matches_none_is_told() -> None:
    found = list(database_findings(PatternMatches({"salse_*": [], "hr_*": ["hr_a"]})))
    assert [(one.verdict, one.found) for one in found] == [("warning", "'salse_*' matches no database that is replicated")]
    assert [one.verdict for one in database_findings(PatternMatches({"hr_*": ["hr_a"]}))] == ["ok"]
    assert not list(database_findings(PatternMatches()))
