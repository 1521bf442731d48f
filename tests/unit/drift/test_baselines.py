"""Baselines of drift: kept for each table, and computed again if they are lost."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from hive_replication.bounded_json import MIB
from hive_replication.drift import baselines
from hive_replication.drift.baselines import Baseline, Memory
from hive_replication.policy import Root
from hive_replication.storage import Storage


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(Storage((Root(uri=f"file://{tmp_path}"),)), f"file://{tmp_path}/db")


def test_baselines_are_read_as_written_for_each_table(memory: Memory, tmp_path: Path) -> None:
    assert memory.read("t") == {}
    known = {"": Baseline("00ff", 7), "ds=1/country=Österreich %2F": Baseline("11ee", 0, "22ff", 9)}
    memory.write("t", known)
    assert (memory.read("t"), memory.read("other")) == (known, {})
    memory.write("t", {"ds=2": Baseline("22dd", 9)})
    assert memory.read("t") == {"ds=2": Baseline("22dd", 9)}
    assert [path.name for path in (tmp_path / "db" / ".repl" / "listing").iterdir()] == ["t.json"]


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[1]", '{"": "digest"}', '{"": ["digest", 1, "", "then"]}', '{"": ["digest", "seven"]}', '{"": 5}'),
        *('{"": ["digest", Infinity]}', '{"": ["digest", 1, "", 1e999]}', "[" * 100_000),
        *('{"": ["digest", -1]}', '{"": ["digest", 1%s]}' % ("0" * 30), '{"": [null, 1]}', '{"": ["digest", true]}'),
    ],
    ids=lambda text: text[:30],
)
def test_an_unreadable_file_is_no_baseline_and_is_logged(
    memory: Memory, tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    memory.write("t", {})
    (tmp_path / "db" / ".repl" / "listing" / "t.json").write_text(text, encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        assert memory.read("t") == {}
    assert "the baseline is unreadable" in caplog.text


def test_a_file_that_is_larger_than_any_is_no_baseline(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever may write below the database's directory decides how large it is."""
    memory.write("t", {"": Baseline("00ff", 7)})
    monkeypatch.setattr(baselines, "_MOST", 5)
    with caplog.at_level(logging.WARNING):
        assert memory.read("t") == {}
    assert "t.json has more than the 5 bytes that are read" in caplog.text


@pytest.mark.parametrize(("setting", "most"), [("_MOST", 20), ("_VALUES", 4)])
def test_baselines_that_would_not_be_read_are_not_written(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, setting: str, most: int
) -> None:
    """Each scan wrote them again, and none could read them; those of before still count."""
    few = {"": Baseline("00ff", 7)}
    memory.write("t", few)
    monkeypatch.setattr(baselines, setting, most)
    with caplog.at_level(logging.WARNING):
        memory.write("t", few | {"ds=1": Baseline("11ee", 7)})
        assert memory.read("t") == few
    (said,) = caplog.messages
    assert said.startswith("the baselines of 2 objects are not kept: it has ")
    assert "each scan compares the objects that have none with their replicas" in said


def test_the_partitions_that_drift_counts_on_have_a_place() -> None:
    """A million of one table, with marks of snapshots and long names."""
    name = f"ds=2026-01-01/region={'x' * 150}/hour=23"
    one = json.dumps({name: Baseline("0123456789abcdef", 123_456_789, "0123456789abcdef", 1_760_000_000)})
    assert len(one) * 1_000_000 < baselines._MOST == 256 * MIB
    assert sum(map(one.count, ",[{")) * 1_000_000 < baselines._VALUES
