from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hive_replication.errors import ReplicationError
from hive_replication.load.journal import journal as journal_module
from hive_replication.load.journal import lane_record
from hive_replication.load.journal.journal import Journal
from hive_replication.load.journal.journal_writer import JournalWriter
from hive_replication.load.journal.lane_record import LaneRecord, Step
from hive_replication.load.replica.state import SOURCE, ReplicaState
from hive_replication.load.retention.old_directories import old_directories
from hive_replication.metastore.types import FieldSchema, Partition, StorageDescriptor, Table, directory_of
from hive_replication.policy import Root
from hive_replication.storage import Storage, TooLarge
from tests.bucket import bucket_storage


class Killed(BaseException):
    """The process dies."""


def test_lanes_are_read_in_the_order_they_were_written(tmp_path: Path) -> None:
    """By name the eleventh came before the third: of two changes of a table the later one has to be taken back first."""
    journal = Journal(Storage((Root(uri=tmp_path.as_uri()),)), f"{tmp_path.as_uri()}/db.db")
    writer = journal.begin(1, 9)
    for number in range(12):
        writer.lane(LaneRecord((f"t{number}",), ()))
    writer.done(9)
    (entry,) = journal.entries()
    assert (entry.status, entry.to_evid) == ("done", 9)
    assert [lane.record.names for lane in journal.lanes(entry)] == [(f"t{number}",) for number in range(12)]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of a journal may have 8 kB."""
    for module in (journal_module, lane_record):
        monkeypatch.setattr(module, "MOST", 8_000)
    monkeypatch.setattr(lane_record, "PART", 4_000)


def dropped(base: str) -> LaneRecord:
    """A table that is dropped with 300 partitions, every third of them elsewhere."""
    places = [f"{base}/{'.repl/7-1' if number % 3 == 0 else 't'}/ds={number}" for number in range(300)]
    parts = {f"ds={one.rpartition('=')[2]}": Partition([one], "db", "t", sd=StorageDescriptor(location=one)) for one in places}
    table = Table("t", "db", sd=StorageDescriptor(location=f"{base}/t"), partitionKeys=[FieldSchema("ds", "string", "")])
    steps = (Step("DropTable", 9, "t", origin="t"),)
    left = (f"{base}/t", *(place for place in places if "/.repl/" in place), f"{base}/of an attempt")
    return LaneRecord(("t",), steps, {"t": table}, {"t": parts}, {}, left, tuple(places))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("users", [False, True])
def test_the_images_of_many_partitions_go_to_files_that_can_be_read_again(tmp_path: Path, *, users: bool) -> None:
    """Above 64 MiB no file was: directories that exist were used no longer, and nothing was swept or undone."""
    base = f"{tmp_path.as_uri()}/db.db"
    journal, record = Journal(Storage((Root(uri=tmp_path.as_uri()),)), base), dropped(base)
    record.tables["t"].parameters = {} if users else {SOURCE: "uuid/db"}
    writer = journal.begin(1, 9)
    writer.lane(record)
    writer.lane(LaneRecord(("u",), ()))
    writer.done(9)
    (entry,) = journal.entries()
    *pieces, last, other = [lane.record for lane in journal.lanes(entry)]
    assert len(pieces) > 20
    assert (last.steps, list(last.tables), other.names) == (record.steps, ["t"], ("u",))
    assert all((one.names, one.steps) == (("t",), ()) for one in pieces)
    assert all(list(one.tables) == (["t"] if users else []) for one in pieces), "an undo compares what is there with it"
    images = [(name, directory_of(part)) for one in pieces for name, part in one.partitions["t"].items()]
    assert (len(images), dict(images)) == (300, {name: directory_of(part) for name, part in record.partitions["t"].items()})
    assert sorted(place for one in (*pieces, last) for place in one.placed) == sorted(record.placed)
    kept = [place for one in (*pieces, last) for place in one.kept]
    assert sorted(kept) == sorted(record.kept)
    assert all(journal.kept().contains(place) for place in record.kept)
    assert old_directories(journal.places_of([entry])).keys() == set(record.left)


@pytest.mark.usefixtures("small")
def test_what_cannot_be_split_is_not_written(tmp_path: Path) -> None:
    """It would be read by no later load."""
    journal = Journal(Storage((Root(uri=tmp_path.as_uri()),)), f"{tmp_path.as_uri()}/db.db")
    names = tuple(f"ds={number}" for number in range(2_000))
    with pytest.raises(TooLarge, match=r"in one file about t, and 8,000 are read: load fewer events at a time \(max_events"):
        journal.begin(1, 9).lane(LaneRecord(("t",), (Step("DropPartitions", 9, "t", partitions=names),)))
    full = LaneRecord(("t",), (), files={"hdfs://t/few": ("f",), "hdfs://t/many": names})
    with pytest.raises(TooLarge, match="hdfs://t/many has 2,000 files; write what lies in it anew at the source with fewer"):
        journal.begin(1, 9).lane(full)
    assert all(lane.record.files.keys() == {"hdfs://t/few"} for entry in journal.entries() for lane in journal.lanes(entry))


def test_what_undos_may_need_is_read_once_from_one_small_file_a_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All lanes of a week's loads were read, images and all, for each segment that met a directory."""
    base = f"{tmp_path.as_uri()}/db.db"
    storage, loads = Storage((Root(uri=tmp_path.as_uri()),)), 20
    read, reads = storage.read, list[str]()
    monkeypatch.setattr(storage, "read", lambda uri, **more: (reads.append(uri.rpartition("/")[2]), read(uri, **more))[1])
    journal = Journal(storage, base)

    def load(number: int) -> list[str]:
        writer = journal.begin(number, number + 1)
        for name in "ab":
            place = f"{base}/{name}{number}"
            table = Table(name, "db", sd=StorageDescriptor(location=place), partitionKeys=[])
            writer.lane(LaneRecord((name,), (), {name: table}, left=(place, f"{base}/of an attempt")))
        writer.state(ReplicaState("uuid/db", number + 1))
        writer.done(number + 1)
        return [f"{base}/{name}{number}" for name in "ab"]

    places = [place for number in range(loads) for place in load(number)]
    for _ in range(2):
        kept = journal.kept()
        assert [kept.contains(place) for place in places] == [True] * len(places)
        assert not kept.contains(f"{base}/of an attempt")
    assert reads == ["kept"] * loads
    places += load(loads)
    assert all(map(journal.kept().contains, places))
    assert reads == ["kept"] * (loads + 1)


def test_the_batches_of_a_load_read_no_lane_of_their_own_and_those_of_a_killed_load_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch that met a directory read all lanes that those before it had written."""
    base = f"{tmp_path.as_uri()}/db.db"
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    read, reads = storage.read, list[str]()

    def counted(uri: str, *, most: int) -> bytes:
        reads.append(uri)
        return read(uri, most=most)

    monkeypatch.setattr(storage, "read", counted)

    def lane(writer: JournalWriter, place: str) -> str:
        table = Table("t", "db", sd=StorageDescriptor(location=place), partitionKeys=[])
        writer.lane(LaneRecord(("t",), (), {"t": table}, left=(place,)))
        return place

    killed = Journal(storage, base).begin(0, 1)
    places = [lane(killed, f"{base}/killed{number}") for number in range(2)]
    journal = Journal(storage, base)
    own = journal.begin(0, 2)
    for batch in range(3):
        kept = journal.kept()
        assert [kept.contains(place) for place in places] == [True] * len(places)
        places += [lane(own, f"{base}/{batch}-{number}") for number in range(20)]
    assert sorted(reads) == [f"{killed.directory}/{number}.json" for number in range(2)]
    own.state(ReplicaState("uuid/db", 2))
    own.done(2)
    assert all(map(journal.kept().contains, places))
    assert all(map(Journal(storage, base).kept().contains, places))


def test_what_undos_may_need_of_other_loads_is_read_from_their_lanes(tmp_path: Path) -> None:
    """Of one that runs, or was killed, of one of an earlier version, and of one of which a table was taken back."""
    base = f"{tmp_path.as_uri()}/db.db"
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    journal = Journal(storage, base)
    for number, done in enumerate((False, True, True)):
        writer = journal.begin(number, number + 1)
        for name in "ab":
            table = Table(name, "db", sd=StorageDescriptor(location=f"{base}/{name}{number}"), partitionKeys=[])
            writer.lane(LaneRecord((name,), (), {name: table}, left=(f"{base}/{name}{number}",)))
        if done:
            writer.state(ReplicaState("uuid/db", number + 1))
            writer.done(number + 1)
    _, second, third = journal.entries()
    storage.delete(f"{second.directory}/kept")
    journal.mark_undone(journal.lanes(third)[0])
    for reader in (journal, Journal(storage, base)):
        kept = reader.kept()
        found = {f"{name}{number}" for name in "ab" for number in range(3) if kept.contains(f"{base}/{name}{number}")}
        assert found == {"a0", "b0", "a1", "b1", "b2"}
    storage.write(f"{third.directory}/kept", b"[7]", overwrite=True)
    storage.rename(f"{third.directory}/0.undone", f"{third.directory}/0.json")
    with pytest.raises(ReplicationError, match="kept is unreadable"):
        Journal(storage, base).kept()


@pytest.mark.parametrize("begins", ["done", "undone"], ids=["a load ends", "an undo ends"])
@pytest.mark.parametrize("call", ["cp_file", "rm_file"])
@pytest.mark.parametrize("after", range(5))
def test_a_journal_that_an_object_store_had_renamed_in_part_is_whole(
    monkeypatch: pytest.MonkeyPatch, begins: str, call: str, after: int
) -> None:
    """It was two loads, each with a part of the lanes, and loads and undos met a name that was taken, for ever."""
    storage = bucket_storage(monkeypatch)
    backend: Any = storage._backend("memory://bucket/", storage.roots[0])  # type: ignore[attr-defined]
    journal = Journal(storage, "memory://bucket/db.db")
    writer, state = journal.begin(1, 9), ReplicaState("uuid/db", 8)
    for number in range(3):
        writer.lane(LaneRecord((f"t{number}",), ()))
    writer.state(state)
    if begins == "undone":
        writer.done(8)
        (entry,) = journal.entries()
        for lane in journal.lanes(journal.mark(entry, "open"))[1:]:
            journal.mark_undone(lane)
    whole = getattr(backend._files, call)
    left = iter(range(after))

    def killed(*args: str) -> None:
        if next(left, None) is None:
            raise Killed
        whole(*args)

    monkeypatch.setattr(backend, "_take_back", lambda *_: None)  # the process is no more
    entries = journal.entries()
    with monkeypatch.context() as patch:
        patch.setattr(backend._files, call, killed)
        with pytest.raises(Killed):
            _ = writer.done(8) if begins == "done" else journal.mark(entries[0], "undone")
    (entry,) = journal.entries()
    at_last = begins if call == "rm_file" or after else "open"
    assert entry.status == at_last
    undone = [lane.undone for lane in journal.lanes(entry)]
    assert undone == ([False, False, False] if begins == "done" else [False, True, True])
    assert journal.state(entry) == state
    (entry,) = journal.mark_finished([entry], state)
    assert not entry.rest
    assert len(storage.ls("memory://bucket/db.db/.repl/journal")) == 1
    assert len(journal.lanes(entry)) == 3


def test_a_lane_that_an_object_store_had_marked_in_part_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was read twice, and the undo that went on met a name that was taken, for ever."""
    storage = bucket_storage(monkeypatch)
    journal = Journal(storage, "memory://bucket/db.db")
    writer = journal.begin(1, 9)
    for number in range(2):
        writer.lane(LaneRecord((f"t{number}",), ()))
    storage.write(f"{writer.directory}/1.undone", storage.read(f"{writer.directory}/1.json"))
    (entry,) = journal.entries()
    assert [(lane.record.names, lane.undone) for lane in journal.lanes(entry)] == [(("t0",), False), (("t1",), True)]
