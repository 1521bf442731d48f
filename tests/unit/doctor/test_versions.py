"""Versions that the doctor knows."""

from __future__ import annotations

import pytest

from hive_replication.doctor.versions import pair_findings, version_findings
from hive_replication.metastore.dialect import Features


@pytest.mark.parametrize("version", ["3", "3.1.3", "4.0.1", "4.1.0", "4.2.0", "4.2.1-SNAPSHOT"])
@pytest.mark.parametrize("side", ["source", "target"])
def test_known_ones_have_nothing_to_tell(side: str, version: str) -> None:
    assert not list(version_findings(side, version))


@pytest.mark.parametrize(
    ("version", "verdict", "says"),
    [
        ("1", "error", "older than Hive 2.3"),
        ("2", "warning", "TRUNCATE not at all"),
        ("4.3.0", "warning", "newer than 4.2"),
        ("5", "warning", "newer than 4.2"),
        ("custom", "warning", "none that is known"),
    ],
)
def test_others_do(version: str, verdict: str, says: str) -> None:
    (found,) = version_findings("source", version)
    assert (found.side, found.verdict) == ("source", verdict)
    assert says in found.found


def test_an_old_target_lacks_nothing() -> None:
    assert not list(version_findings("target", "2"))


@pytest.mark.parametrize(
    ("source", "target", "says"),
    [
        ("3", "4.2.0", ""),
        ("4.0.1", "4.2.0", ""),
        ("4.2.0", "3", "older than the source's 4.2.0"),
        ("4.2.0", "4.2.1-SNAPSHOT", ""),
        ("3.1.3", "3", ""),
        ("4.10.0", "4.2.0", "older than the source's 4.10.0"),
    ],
)
def test_the_way_to_an_older_version_is_told(source: str, target: str, says: str) -> None:
    found = list(pair_findings(Features(source, ""), Features(target, "")))
    assert [(one.side, one.verdict) for one in found] == [("target", "warning")] * bool(says)
    assert all(says in one.found for one in found)
