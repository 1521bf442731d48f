"""Files of transactional tables as the witness compares them, after compactions and losses."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hive_replication.acid.write_ids import Hidden, WriteIds
from hive_replication.dump.bootstrap.acid_snapshot import SnapshotListing
from hive_replication.dump.listing import Lister
from hive_replication.metastore.types import StorageDescriptor, Table
from hive_replication.policy import Root
from hive_replication.storage import Storage
from hive_replication.verify.acid import Seen
from hive_replication.verify.witness import transactional
from hive_replication.verify.witness.files import FileFacts
from hive_replication.verify.witness.transactional import Shown, transactional_facts

TEXT = "org.apache.hadoop.mapred.TextInputFormat"
DELTAS = [f"delta_{n:07d}_{n:07d}" for n in range(1, 31)]
UNREAD = FileFacts({}, {}, 0, unread=True)


def shown(folder: Path) -> Shown:
    storage = Storage((Root(uri=folder.as_uri()),))
    listing = SnapshotListing(storage, Lister(storage), lambda: Hidden(99))
    table = Table(tableName="t", sd=StorageDescriptor(location=folder.as_uri(), inputFormat=TEXT))
    seen = Seen(storage, listing, insert_only=True, write_ids=WriteIds(30))
    return Shown(seen, table, seen.files(table))


def write(folder: Path, *names: str, text: str = "") -> Path:
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "000000_0").write_text(text or f"{name}\n")
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "source", *DELTAS)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return write(tmp_path / "target", *DELTAS)


@pytest.fixture(params=[16 << 20, 0], ids=["rows read", "too many rows"])
def most(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(transactional, "_MOST_BYTES", request.param)
    return request.param


def differing(source: Path, target: Path) -> set[str]:
    found = transactional_facts(shown(source), shown(target), 0)
    return {name for name in found.source.keys() | found.target.keys() if found.source.get(name) != found.target.get(name)}


@pytest.mark.usefixtures("most")
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_lost_delta_is_told_of_however_many_files(source: Path, target: Path, side: str) -> None:
    """Any difference of more than 50 files was taken for a compaction."""
    shutil.rmtree((target if side == "target" else source) / DELTAS[6])
    assert differing(source, target) == {f"{DELTAS[6]}/000000_0"}


@pytest.mark.usefixtures("most")
def test_a_file_of_another_size_or_content_is_told(source: Path, target: Path) -> None:
    """Stores without checksums had only names compared."""
    (target / DELTAS[6] / "000000_0").write_text("longer than before")
    assert differing(source, target) == {f"{DELTAS[6]}/000000_0"}


def test_content_of_some_small_files_is_compared_without_checksums(source: Path, target: Path) -> None:
    (target / DELTAS[6] / "000000_0").write_text("x" * len(f"{DELTAS[6]}\n"))
    found = transactional_facts(shown(source), shown(target), 200)
    assert found.checksums == 30
    assert found.source != found.target


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_compaction_of_one_side_is_no_difference(source: Path, target: Path, side: str, most: int) -> None:
    compacted = target if side == "target" else source
    write(compacted, "base_0000020_v0000009", text="".join(f"{name}\n" for name in DELTAS[:20]))
    found = transactional_facts(shown(source), shown(target), 0)
    assert (found.source, found.target, found.unread) == ({}, {}, not most)


@pytest.mark.usefixtures("most")
def test_a_compaction_hides_no_delta_after_it(source: Path, target: Path) -> None:
    write(target, "base_0000020_v0000009", text="".join(f"{name}\n" for name in DELTAS[:20]))
    shutil.rmtree(target / DELTAS[29])
    assert f"{DELTAS[29]}/000000_0" in differing(source, target)


def test_a_compaction_that_leaves_no_row_is_no_difference(tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactional, "_MOST_BYTES", 0)
    (tmp_path / "source" / "base_0000030_v0000009").mkdir(parents=True)
    assert transactional_facts(shown(tmp_path / "source"), shown(target), 0) == UNREAD


def test_compactions_of_the_same_writes_by_both_sides_may_differ_in_bytes(tmp_path: Path, most: int) -> None:
    sides = [write(tmp_path / side, "base_0000030_v0000009", text=text) for side, text in (("a", "1\n2\n"), ("b", "2\n1\n3\n"))]
    found = transactional_facts(*map(shown, sides), 0)
    assert (found.source != found.target, found.unread) == (bool(most), not most)


def test_a_copied_base_is_that_of_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactional, "_MOST_BYTES", 0)
    source, target = write(tmp_path / "a", "base_0000030_v0000009", text="12"), write(tmp_path / "b", "base_0000030", text="1")
    assert differing(source, target) == {"base_0000030/000000_0"}
