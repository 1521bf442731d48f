# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
"""A dump proves itself: whatever is changed in it, it is refused as a whole, before anything is planned."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hive_replication.dump.format import digests, packed_writer
from hive_replication.dump.format.ack import ACK
from hive_replication.dump.format.checkpoints import Checkpoint
from hive_replication.dump.format.interface import DumpStore, DumpWriter
from hive_replication.dump.format.packed_parquet import SCHEMA
from hive_replication.dump.format.packed_store import PackedStore
from hive_replication.dump.format.record_types import DumpHeader, EventRecord, FileGroup, PartitionRecord, Scope, TableRecord
from hive_replication.dump.format.tree import TreeStore
from hive_replication.errors import BadRequest, Refused
from hive_replication.events.event_records import Notification
from hive_replication.events.files import FileRef
from hive_replication.metastore.types import Database, FieldSchema, Partition, StorageDescriptor, Table
from hive_replication.policy import Root
from hive_replication.signing import SigningKey
from hive_replication.storage import Storage
from tests.dumps import edit, reseal, without_digests
from tests.faults import Killed

FILES = (FileRef("hdfs://s/w/f#1%", "00ff", "hdfs://s/cm"), FileRef("hdfs://s/w/g"))
HEADER = DumpHeader("incremental", Scope("db"), "uuid", Database(name="db", parameters={}), 1, 9, 0, "", 0.0)
FORMATS: dict[str, Callable[..., DumpStore]] = {
    "tree": TreeStore,
    "packed": PackedStore,
    "either": partial(PackedStore, above=50),
}


@pytest.fixture(params=FORMATS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> DumpStore:
    root = tmp_path.as_uri()
    return FORMATS[request.param](Storage((Root(uri=root),)), root)


def sd() -> StorageDescriptor:
    return StorageDescriptor(cols=[FieldSchema(name="a", type="int")], location="hdfs://s/w/t", parameters={})


def objects(writer: DumpWriter) -> str:
    writer.put_table(TableRecord(Table(tableName="t", dbName="db", sd=sd(), parameters={}, partitionKeys=[]), FILES))
    for number in range(3):
        writer.put_partition(PartitionRecord("t", f"p={number}", Partition(values=[str(number)], sd=sd(), parameters={}), FILES))
    return writer.finish(replace(HEADER, kind="bootstrap")).directory


def event(evid: int) -> EventRecord:
    return EventRecord(Notification(evid, 8, "INSERT", "db", "t", '{"a": 1}'), (FileGroup("p=1", FILES),), "hash")


def events(writer: DumpWriter, *evids: int) -> str:
    for evid in evids or (3, 5, 8):
        writer.put_event(event(evid))
    return writer.finish(HEADER).directory


def content(store: DumpStore, directory: str) -> list[object]:
    reader = store.open(directory)
    tables = list(reader.tables())
    parts = [part for table in tables for part in reader.partitions(table.name)]
    return [reader.header, tables, parts, list(reader.functions()), list(reader.events())]


def files_of(directory: str) -> list[Path]:
    return sorted(path for path in Path(directory.removeprefix("file://")).rglob("*") if path.is_file())


@pytest.mark.no_cover
@pytest.mark.parametrize("write", [objects, events])
def test_no_flipped_bit_is_read_as_another_dump(store: DumpStore, write: Callable[[DumpWriter], str]) -> None:
    directory = write(store.create(Scope("db")))
    before, chance, said = content(store, directory), random.Random(7), list[str]()
    for path in files_of(directory):
        data = path.read_bytes()
        for place in chance.sample(range(len(data) * 8), min(40, len(data) * 8)):
            changed = bytearray(data)
            changed[place // 8] ^= 1 << place % 8
            path.write_bytes(changed)
            try:
                assert content(store, directory) == before, f"bit {place} of {path} changes what is read"
            except BadRequest as error:
                said.append(str(error))
        path.write_bytes(data)
    assert content(store, directory) == before
    assert all("dump again" in one and "\n" not in one for one in said)


@pytest.mark.parametrize("write", [objects, events])
def test_nothing_of_a_dump_can_be_lost_or_exchanged(store: DumpStore, write: Callable[[DumpWriter], str]) -> None:
    directory, other = write(store.create(Scope("db"))), write(store.create(Scope("db")))
    for path in files_of(directory):
        data = path.read_bytes()
        path.unlink()
        with pytest.raises(BadRequest, match=r"incomplete|unreadable"):
            store.open(directory)
        path.write_bytes(data)
    content(store, directory)
    header = Path(directory.removeprefix("file://")) / "_dumpmetadata"
    edit(store.storage, f"{other}/_dumpmetadata", lambda value: value | {"to_evid": 10})  # type: ignore[attr-defined]
    header.write_bytes((Path(other.removeprefix("file://")) / "_dumpmetadata").read_bytes())
    with pytest.raises(BadRequest, match="_dumpmetadata is not what was written: its SHA-256 differs"):
        store.open(directory)


def test_a_dump_that_had_digests_must_have_them(store: DumpStore) -> None:
    directory, storage = events(store.create(Scope("db"))), store.storage  # type: ignore[attr-defined]
    edit(storage, f"{directory}/{ACK}", lambda ack: {k: v for k, v in ack.items() if k not in ("files", "digest")})
    with pytest.raises(BadRequest, match="its header says that it has digests, and the ack file has none"):
        store.open(directory)
    without_digests(storage, directory)  # one of an earlier version
    assert len(list(store.open(directory).events())) == 3


@pytest.mark.parametrize("digests", [True, False])
@pytest.mark.parametrize("write", [objects, events])
def test_the_numbers_of_records_are_compared(store: DumpStore, write: Callable[[DumpWriter], str], digests: bool) -> None:
    storage = store.storage  # type: ignore[attr-defined]
    change = reseal if digests else without_digests
    for name in ("tables", "partitions", "events", "functions"):
        directory = write(store.create(Scope("db")))
        change(storage, directory)
        there = json.loads(storage.read(f"{directory}/{ACK}"))[name]
        change(storage, directory, **{name: there + 1})
        with pytest.raises(BadRequest, match=f"{there} {name} instead of {there + 1}"):
            store.open(directory)


@pytest.mark.parametrize("digests", [True, False])
@pytest.mark.parametrize("write", [objects, events])
def test_no_parts_are_no_empty_dump(tmp_path: Path, write: Callable[[DumpWriter], str], digests: bool) -> None:
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    store = PackedStore(storage, tmp_path.as_uri())
    directory = write(store.create(Scope("db")))
    (reseal if digests else without_digests)(storage, directory, parts={})
    with pytest.raises(BadRequest, match=r"0 (tables|events) instead of"):
        store.open(directory)


def test_two_records_of_one_event(tmp_path: Path) -> None:
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    store = PackedStore(storage, tmp_path.as_uri())
    directory = events(store.create(Scope("db")))
    part = Path(directory.removeprefix("file://")) / "part-00000.parquet"
    rows = pq.read_table(part)
    pq.write_table(pa.concat_tables([rows, rows]).combine_chunks(), part)
    parts = json.loads(storage.read(f"{directory}/{ACK}"))["parts"]
    parts["part-00000.parquet"]["rows"] = 6
    reseal(storage, directory, parts=parts, events=6)
    with pytest.raises(BadRequest, match="two records"):
        list(store.open(directory).events())


BAD = [1500.0, float("inf"), True, -1, 2**63, 10**30, "9", None, [9]]


@pytest.mark.parametrize("value", BAD, ids=map(str, BAD))
@pytest.mark.parametrize("name", ["from_evid", "to_evid", "to_time"])
def test_numbers_of_a_header(store: DumpStore, name: str, value: object) -> None:
    directory, storage = events(store.create(Scope("db"))), store.storage  # type: ignore[attr-defined]
    edit(storage, f"{directory}/_dumpmetadata", lambda header: header | {name: value})
    reseal(storage, directory)
    with pytest.raises(BadRequest, match=r"is unreadable: .*; dump again") as error:
        store.open(directory)
    assert "\n" not in str(error.value)


def test_a_window_that_ends_before_it_begins(store: DumpStore) -> None:
    directory, storage = events(store.create(Scope("db"))), store.storage  # type: ignore[attr-defined]
    edit(storage, f"{directory}/_dumpmetadata", lambda header: header | {"from_evid": 10})
    reseal(storage, directory)
    with pytest.raises(BadRequest, match="its window ends at event 9, before it begins, after event 10"):
        store.open(directory)


def bomb(strings: bool) -> bytes:
    """7 KB that become gigabytes: one long text in every row, or more rows than anybody writes."""
    row: dict[str, Any] = {"kind": "event", "table": "", "name": "", "record": b"x" * (1 << 20 if strings else 1), "files": []}
    number = 4_000 if strings else 3_000_000
    evids = pa.array(range(number), pa.int64())
    columns = [
        evids
        if field.name == "evid"
        else pa.DictionaryArray.from_arrays(pa.array([0] * number), pa.array([row[field.name]], field.type))
        for field in SCHEMA
        if field.name != "files"
    ]
    files = pa.array([[]] * number, SCHEMA.field("files").type)
    sink = pa.BufferOutputStream()
    names = [field.name for field in SCHEMA if field.name != "files"]
    with pq.ParquetWriter(sink, SCHEMA, compression="zstd") as out:
        for start in range(0, number, 200 if strings else number):
            end = min(number, start + 200) if strings else number
            some = [column.slice(start, end - start) for column in columns]
            plain = [one.dictionary_decode() if pa.types.is_dictionary(one.type) else one for one in some]
            out.write_table(pa.Table.from_arrays([*plain, files.slice(start, end - start)], [*names, "files"]).cast(SCHEMA))
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("strings", [True, False])
def test_small_files_that_become_large(tmp_path: Path, strings: bool) -> None:
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    store = PackedStore(storage, tmp_path.as_uri())
    directory = events(store.create(Scope("db")))
    data = bomb(strings)
    storage.write(f"{directory}/part-00000.parquet", data)
    reseal(storage, directory)
    before = pa.default_memory_pool()
    taken = pa.proxy_memory_pool(before)  # counts from here on, also what is given back
    pa.set_memory_pool(taken)
    try:
        with pytest.raises(BadRequest, match="more than"):
            store.open(directory)
    finally:
        pa.set_memory_pool(before)
    assert taken.max_memory() < 200 << 20


@pytest.mark.parametrize("name", ["_dumpmetadata", ACK])
def test_a_file_of_blanks_is_not_read_to_its_end(store: DumpStore, name: str) -> None:
    directory = events(store.create(Scope("db")))
    with (Path(directory.removeprefix("file://")) / name).open("wb") as file:
        file.truncate(1 << 30)
    tracemalloc.start()
    try:
        with pytest.raises(BadRequest, match=r"has more than the|is not what was written"):
            store.open(directory)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 100 << 20


def test_only_signed_dumps(tmp_path: Path) -> None:
    storage, root = Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri()
    key, other = SigningKey(b"a key of the policy"), SigningKey(b"a key of somebody else")
    signed = PackedStore(storage, root, 50, key)
    directory = events(signed.create(Scope("db")))
    assert len(list(signed.open(directory).events())) == 3
    assert len(list(PackedStore(storage, root).open(directory).events())) == 3  # who has no key does not ask
    for forged in (None, other):
        edit(storage, f"{directory}/8/_metadata", lambda value: value | {"type": "DROP_TABLE"})
        reseal(storage, directory, forged)
        with pytest.raises(Refused, match="is not signed by the signing_key of the policy"):
            signed.open(directory)
    reseal(storage, directory, key)
    signed.open(directory)
    storage.rename(directory, f"{root}/another/{directory.rpartition('/')[2]}")
    with pytest.raises(Refused, match="is not signed"):
        signed.open(f"{root}/another/{directory.rpartition('/')[2]}")


def kill(monkeypatch: pytest.MonkeyPatch, storage: Storage, names: tuple[str, ...]) -> None:
    """Ends the writer when it writes one of these files."""
    whole = storage.write_once

    def write_once(uri: str, data: bytes) -> None:
        if uri.rpartition("/")[2].startswith(names):
            raise Killed
        whole(uri, data)

    monkeypatch.setattr(storage, "write_once", write_once)


def test_a_dump_killed_just_before_its_ack_is_resumed(store: DumpStore, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = store.storage  # type: ignore[attr-defined]
    first = store.create(Scope("db"), "the request")
    for evid in (3, 5):
        first.put_event(event(evid))
    first.keep(Checkpoint(5, "hash"))
    first.put_event(event(8))
    with monkeypatch.context() as patch:
        kill(patch, storage, (ACK,))
        with pytest.raises(Killed):
            first.finish(HEADER)
        first.suspend()
    second = store.create(Scope("db"), "the request")
    assert second.directory == first.directory
    assert second.done is not None
    assert (second.done.evid, second.number_of_events) == (5, 2)
    second.put_event(event(8))
    directory = second.finish(HEADER).directory
    assert list(store.open(directory).events()) == [event(evid) for evid in (3, 5, 8)]


def test_what_is_left_of_a_removed_dump_is_not_resumed(store: DumpStore, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = store.storage  # type: ignore[attr-defined]
    first = store.create(Scope("db"), "the request")
    first.put_event(event(3))
    first.keep(Checkpoint(3, "hash"))
    directory = first.finish(HEADER).directory
    first.suspend()
    delete = storage.delete

    def killed(uri: str, *, recursive: bool = False) -> bool:
        if recursive:
            raise Killed
        return delete(uri)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "delete", killed)
        with pytest.raises(Killed):
            store.remove(directory)
    assert not storage.exists(f"{directory}/{ACK}")
    assert store.create(Scope("db"), "the request").directory != directory


def test_a_dump_damaged_before_it_is_resumed_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_writer, "_FULL", 3)
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    store = PackedStore(storage, tmp_path.as_uri())
    for damage in ("flip", "delete"):
        first = store.create(Scope("db"), f"request {damage}")
        for evid in (3, 5, 8):
            first.put_event(event(evid))
        first.keep(Checkpoint(8, "hash"))
        first.suspend()
        part = Path(first.directory.removeprefix("file://")) / "part-00001.parquet"
        data = bytearray(part.read_bytes())
        data[20] ^= 1
        part.unlink() if damage == "delete" else part.write_bytes(data)
        second = store.create(Scope("db"), f"request {damage}")
        assert second.directory != first.directory
        assert second.done is None
        assert not storage.exists(first.directory)


def test_a_dump_with_a_file_that_no_writer_wrote_is_made_anew(store: DumpStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an interrupted dump each file was read whole, however large somebody had made it."""
    first = store.create(Scope("db"), "the request")
    first.put_event(event(3))
    first.keep(Checkpoint(3, "hash"))
    first.suspend()
    note = Path(first.directory.removeprefix("file://")) / "_checkpoint_1"
    note.write_text(json.dumps(json.loads(note.read_bytes()) | {"files": {}}))  # of an earlier version, without digests
    for name in ("_metadata", ".parquet"):
        monkeypatch.setitem(digests.MOST, name, 50)
    second = store.create(Scope("db"), "the request")
    assert (second.directory != first.directory, second.done) == (True, None)
    assert not store.storage.exists(first.directory)


def test_a_damaged_checkpoint_in_the_middle_ends_resuming(store: DumpStore) -> None:
    first = store.create(Scope("db"), "the request")
    for evid in (3, 5):
        first.put_event(event(evid))
        first.keep(Checkpoint(evid, "hash"))
    first.suspend()
    (Path(first.directory.removeprefix("file://")) / "_checkpoint_1").write_bytes(b"{}}")
    assert store.create(Scope("db"), "the request").directory != first.directory


KEY = SigningKey(b"a key of the policy")


def interrupted(store: PackedStore, *evids: int) -> Path:
    """A dump that ends after a checkpoint of these events; its directory."""
    writer = store.create(Scope("db"), "the request")
    for evid in evids:
        writer.put_event(event(evid))
    writer.keep(Checkpoint(evids[-1], "hash"))
    writer.suspend()
    return Path(writer.directory.removeprefix("file://"))


def resumed(store: PackedStore, *evids: int) -> list[int]:
    """The events of the dump of the same request that is finished with these."""
    writer = store.create(Scope("db"), "the request")
    for evid in evids:
        writer.put_event(event(evid))
    return [found.notification.evid for found in store.open(writer.finish(HEADER).directory).events()]


@pytest.mark.parametrize("above", [0, 50])
def test_with_a_key_only_its_own_interrupted_dumps_are_resumed(tmp_path: Path, above: int) -> None:
    """Whoever can write to the dump root could have a planted dump finished, and signed."""
    storage, root = Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri()
    signed = PackedStore(storage, root, above, KEY)
    for foreign in (None, SigningKey(b"a key of somebody else")):
        planted = interrupted(PackedStore(storage, root, above, foreign), 3, 5)
        assert resumed(signed, 8) == [8]
        assert not (planted / ACK).exists()
    interrupted(signed, 3, 5)
    assert resumed(signed, 8) == [3, 5, 8]


def moved(directory: Path) -> None:
    directory.rename(directory.with_name(directory.name + "0"))


def renumbered(directory: Path) -> None:
    (directory / "_checkpoint_1").rename(directory / "_checkpoint_2")


def edited(directory: Path) -> None:
    note = directory / "_checkpoint_1"
    note.write_text(note.read_text().replace('"evid": 5', '"evid": 7'))


def of_another_request(directory: Path) -> None:
    claim = directory / "_attempt_1"
    claim.write_text(claim.read_text().replace("the request", "another request"))


@pytest.mark.parametrize("change", [moved, renumbered, edited, of_another_request])
def test_a_signed_checkpoint_is_of_no_use_elsewhere(tmp_path: Path, change: Callable[[Path], None]) -> None:
    storage, root = Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri()
    signed = PackedStore(storage, root, key=KEY)
    change(interrupted(signed, 3, 5))
    request = "another request" if change is of_another_request else "the request"
    assert signed.create(Scope("db"), request).done is None


def test_a_dump_that_lacks_a_checkpoint_in_between_is_not_resumed(tmp_path: Path) -> None:
    storage, root = Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri()
    signed = PackedStore(storage, root, key=KEY)
    writer = signed.create(Scope("db"), "the request")
    for evid in (3, 5, 8):
        writer.put_event(event(evid))
        writer.keep(Checkpoint(evid, "hash"))
    writer.suspend()
    storage.delete(f"{writer.directory}/_checkpoint_2")
    assert signed.create(Scope("db"), "the request").done is None


def test_with_a_key_files_that_no_checkpoint_names_are_none_of_the_dump(tmp_path: Path) -> None:
    storage, root = Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri()
    signed, other = PackedStore(storage, root, key=KEY), PackedStore(storage, f"{root}/other")
    directory, planted = interrupted(signed, 3, 5), interrupted(other, 5)
    (planted / "part-00000.parquet").rename(directory / "part-00007.parquet")
    assert resumed(signed, 8) == [3, 5, 8]
    assert not (directory / "part-00007.parquet").exists()


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize(
    "name", ["part-00000 (1).parquet", "part-00000-copy.parquet", "part-0.parquet", "part-.parquet", "x.parquet"]
)
def test_a_copy_of_a_part_is_none_of_a_dump_that_is_gone_on_with(tmp_path: Path, name: str, key: SigningKey | None) -> None:
    """It ended each repeat of the dump."""
    store = PackedStore(Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri(), key=key)
    directory = interrupted(store, 3, 5)
    (directory / name).write_bytes((directory / "part-00000.parquet").read_bytes())
    assert resumed(store, 8) == [3, 5, 8]
    assert not (directory / name).exists()


@pytest.mark.parametrize("kind", [TreeStore, PackedStore])
def test_records_that_are_read_back_are_those_that_were_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[TreeStore]
) -> None:
    monkeypatch.setattr(packed_writer, "_FULL", 1)
    storage, root = Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri()
    writers = [kind(storage, f"{root}/{owner}").create(Scope("db"), "the request") for owner in ("ours", "others")]
    for writer, owner in zip(writers, ("ours", "others"), strict=True):
        writer.put_table(TableRecord(Table(tableName="t", dbName="db", owner=owner, sd=sd(), parameters={}, partitionKeys=[])))
        writer.keep(Checkpoint(3, "hash", {"t": (3, 3)}))
    place = "part-00000.parquet" if kind is PackedStore else "db/t/_metadata"
    mine, theirs = (f"{writer.directory}/{place}" for writer in writers)
    storage.write(mine, storage.read(theirs))
    with pytest.raises(BadRequest, match="is not what was written"):
        writers[0].table("t")
