"""Which files of a transactional table a bootstrap takes."""

from __future__ import annotations

import json
import pickle
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.acid.write_ids import Hidden, WriteIds
from hive_replication.dump.bootstrap.acid_snapshot import (
    SeenFiles,
    Snapshot,
    SnapshotListing,
    mixed_directory,
    needed,
    renamed_base,
    seen_files,
)
from hive_replication.dump.bootstrap.table_reader import ObjectReader, Read
from hive_replication.dump.format.record_types import Scope, TableRecord
from hive_replication.dump.listing import Lister
from hive_replication.errors import ReplicationError
from hive_replication.events.files import FileRef
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.types import Database, NotificationEvent, StorageDescriptor, Table
from hive_replication.parallel import Threads
from hive_replication.policy import Root
from hive_replication.policy.acid import Acid
from hive_replication.storage import FileChecksum, Storage
from hive_replication.storage.file_status import FileStatus
from tests.faults import unreadable_directories
from tests.moving import Draft

ORIGINAL = FileRef("hdfs://s/t/000000_0")


def file(directory: str) -> FileRef:
    return FileRef(f"hdfs://s/t/{directory}/bucket_00000", subdir=directory)


def taken(write_ids: WriteIds, *directories: str) -> list[str]:
    found = needed([ORIGINAL, *map(file, directories)], directories, write_ids, ())
    return [one.uri.removeprefix("hdfs://s/t/").partition("/")[0] for one in found]


def test_committed_writes_and_what_was_there_before() -> None:
    names = [f"delta_000000{n}_000000{n}_0000" for n in (1, 2, 3)]
    assert taken(WriteIds(3, frozenset({3}), frozenset({2})), *names) == ["000000_0", names[0]]


def test_a_base_hides_what_came_before_it() -> None:
    names = ["delta_0000001_0000001_0000", "base_0000002", "delta_0000003_0000003_0000"]
    assert taken(WriteIds(3), *names) == names[1:]


@pytest.mark.parametrize(
    ("directory", "aborted", "expected"),
    [
        ("delta_0000001_0000003", {2}, "delta_0000001_0000003"),
        ("delta_0000001_0000003", {4}, ""),
        ("delta_0000001_0000003_v0000012", {2}, ""),  # a compaction took no rows of it
        ("delta_0000002_0000002_0000", {2}, ""),
    ],
)
def test_rows_of_aborted_writes_between_others_are_found(directory: str, aborted: set[int], expected: str) -> None:
    needs = needed([file(directory)], [directory], WriteIds(3), ())
    assert mixed_directory(needs, frozenset(aborted)) == expected


@pytest.mark.parametrize(
    ("path", "aborted", "expected"),
    [
        ("base_0000003_v0000012/000000_0", {3}, "base_0000003_v0000012"),
        ("base_0000003_v0000012/HIVE_UNION_SUBDIR_1/000000_0", {3}, "base_0000003_v0000012"),
        ("base_0000003_v0000012/bucket_00000", {3}, ""),  # with ids of its own
        ("base_0000003_v0000012/000000_0", {2}, ""),
        ("delta_0000001_0000003_v0000012/000000_0", {3}, ""),
        ("000000_0", {3}, ""),
    ],
)
def test_a_base_of_rows_without_ids_that_gets_another_name_is_found(path: str, aborted: set[int], expected: str) -> None:
    """Hive makes the ids from its name: deletes of the source hit no row of the replica, or another one."""
    top, subdir = path.partition("/")[0], path.rpartition("/")[0]
    found = needed([FileRef(f"hdfs://s/t/{path}", subdir=subdir)], [top], WriteIds(3, aborted=frozenset(aborted)), ())
    assert renamed_base(found) == expected


@pytest.mark.parametrize("marker", [FileRef.unreadable_directory("hdfs://s/t"), FileRef.missing_directory("hdfs://s/t")])
def test_what_stands_for_a_directory_that_could_not_be_listed_is_kept_beside_a_base(marker: FileRef) -> None:
    """One directory below could not be read, and the table was dumped as empty."""
    assert list(needed([marker], ["base_0000005", "delta_0000006_0000006"], WriteIds(6), ())) == [marker]


def test_a_directory_below_that_may_not_be_read_stands_for_all_of_it_unless_it_is_hidden(tmp_path: Path) -> None:
    for name in ("base_0000005", "delta_0000006_0000006", ".hive-staging_1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "bucket_00000").write_text("1")
    storage, location = Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri()

    def seen() -> list[str]:
        files = seen_files(storage, Lister(storage, holds=True), WriteIds(6), Hidden(9), location).files
        return [f"{file.subdir} {file.is_unlisted_directory}" for file in files]

    with unreadable_directories(".hive-staging_1"):
        assert seen() == ["base_0000005 False", "delta_0000006_0000006 False"]
    for name in ("base_0000005", tmp_path.name):
        with unreadable_directories(name):
            assert seen() == ["denied True"]


class Directories:
    """A storage whose cleaner deletes, when a compaction has ended, what it made needless; it is listed twice for that."""

    def __init__(self, *states: str) -> None:
        self._states = [state.split() for state in states]

    def ls(self, location: str) -> list[FileStatus]:
        names = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        self.files = [file(name) for name in names]
        return [FileStatus(f"{location}/{name}", 0, is_dir=True, modified=0) for name in names]


def listed(states: tuple[str, ...], *hidden: Hidden) -> tuple[list[str], bool, int]:
    """The directories whose files are taken, whether that is outdated, and how often the metastore was asked."""
    storage: Any = Directories(*states)
    storage.many = Threads(1, "test")
    lister: Any = SimpleNamespace(is_barred=lambda location: False, files=lambda location: storage.files)
    answers = list(hidden)
    listing = SnapshotListing(storage, lister, lambda: answers.pop(0))
    (files,) = listing.many(WriteIds(1), ["hdfs://s/t"])
    outdated = bool(listing.outdated)
    return [one.uri.removeprefix("hdfs://s/t/").partition("/")[0] for one in files], outdated, len(hidden) - len(answers)


BEFORE, UNDER_WAY, AFTER = Hidden(12, frozenset({7})), Hidden(13, frozenset({13})), Hidden(13)


def test_a_compaction_that_ends_while_directories_are_listed_is_seen() -> None:
    """The cleaner may have deleted what it made needless; one that goes on is not seen."""
    assert listed(("delta_1_1 base_1_v12",), BEFORE) == (["base_1_v12"], False, 1)
    assert listed(("delta_1_1 base_1_v13",), BEFORE, UNDER_WAY) == (["delta_1_1"], False, 2)
    assert listed(("delta_1_1 base_1_v7", "base_1_v7"), BEFORE, AFTER) == (["base_1_v7"], False, 2)
    assert listed(("base_1_v13",), BEFORE, AFTER) == (["base_1_v13"], False, 2)


def test_a_base_with_later_writes_that_is_alone_tells_that_the_snapshot_is_too_old() -> None:
    assert listed(("delta_1_1 base_2_v13",), BEFORE, AFTER) == (["delta_1_1"], False, 2)
    assert listed(("base_2_v13",), BEFORE, AFTER) == ([], True, 2)


class Still:
    """A source that nobody changes, whose transactional tables have seven write ids each."""

    many, metastore = Threads(1, "test"), property(lambda self: self)
    storage, policy = property(lambda self: self), SimpleNamespace(acid=Acid(), max_message_bytes=1)
    threads = many

    def __init__(self, **directories: str) -> None:
        self.directories, self.rounds = directories, 0

    def tables(self, _: str, names: list[str]) -> list[Table]:
        sd, parameters = StorageDescriptor, {"transactional": "true"}
        return [Table(tableName=name, dbName="db", sd=sd(location=f"hdfs://s/{name}"), parameters=parameters) for name in names]

    def write_ids(self, _: str, names: list[str]) -> dict[str, WriteIds]:
        self.rounds += 1
        assert self.rounds < 5
        return dict.fromkeys(names, WriteIds(7))

    def hidden_transactions(self) -> Hidden:
        return Hidden(300)

    def current_event_id(self) -> int:
        return 9

    def events(self, *_: int) -> list[NotificationEvent]:
        return []

    def database(self, _: str) -> Database:
        return Database(name="db", parameters={})

    def ls(self, location: str) -> list[FileStatus]:
        return [FileStatus(f"{location}/{self.directories[location.rpartition('/')[2]]}", 0, is_dir=True, modified=0)]

    def files(self, location: str) -> list[FileStatus]:
        return [FileStatus(f"{one.uri}/bucket_00000", 1, is_dir=False, modified=0) for one in self.ls(location)]

    def checksum(self, _: str) -> FileChecksum:
        return FileChecksum("MD5", "00")


@pytest.mark.parametrize("scope", [Scope("db"), Scope("db", "t")], ids=str)
def test_a_base_that_stays_ahead_of_the_write_ids_holds_its_table_alone(scope: Scope) -> None:
    """The metastore was restored from an older backup: the bootstrap of the database never ended."""
    source: Any = Still(t="base_0000010_v0000200", u="base_0000007_v0000200")
    draft = Draft()
    for table in source.tables("db", ["t", "u"]):
        draft.put_table(TableRecord(table))
    reads = dict.fromkeys("t" if scope.table else "tu", Read(9, 9))
    reader = ObjectReader(source, scope, draft, Lister(source, holds=True), reads)
    snapshot = Snapshot(source, reader, lambda end: end)
    if scope.table:
        with pytest.raises(ReplicationError, match="only a base of later writes"):
            snapshot.take(9)
        return
    assert (snapshot.take(9), source.rounds) == (9, 2)
    found = {name: [(file.uri, file.is_unlisted_directory) for file in draft.tables[name].files] for name in "tu"}
    assert found == {"t": [("hdfs://s/t/", True)], "u": [("hdfs://s/u/base_0000007_v0000200/bucket_00000", False)]}


@pytest.mark.parametrize("kind", ["default", "insert_only"])
@pytest.mark.parametrize("scope", [Scope("db"), Scope("db", "t")], ids=str)
def test_a_full_acid_table_whose_rows_would_get_other_ids_is_held(
    scope: Scope, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was insert-only when the base was made, whose last write was aborted."""
    source: Any = Still(t="base_0000007_v0000200")
    monkeypatch.setattr(source, "write_ids", lambda *_: {"t": WriteIds(7, aborted=frozenset({7}))})
    monkeypatch.setattr(source, "files", lambda uri: [FileStatus(f"{uri}/base_0000007_v0000200/000000_0", 1, False, 0)])
    draft = Draft()
    for table in source.tables("db", ["t"]):
        table.parameters["transactional_properties"] = kind
        draft.put_table(TableRecord(table))
    reader = ObjectReader(source, scope, draft, Lister(source, holds=True), {"t": Read(9, 9)})
    snapshot = Snapshot(source, reader, lambda end: end)
    if scope.table and kind == "default":
        with pytest.raises(ReplicationError, match="has rows without ids, and ends with an aborted write: write to the table"):
            snapshot.take(9)
        return
    assert snapshot.take(9) == 9
    (file,) = draft.tables["t"].files
    assert (file.is_renamed_directory, file.subdir) == ((True, "renamed") if kind == "default" else (False, "base_0000006"))


class Busy(Still):
    """A source to which something happens at each question for its newest event, or when a test says so."""

    views_of_materialized = False
    policy = SimpleNamespace(acid=Acid(), max_message_bytes=10_000)

    def __init__(self, *happens: tuple[str, str], **directories: str) -> None:
        super().__init__(**directories)
        self.happens, self.happening, self.listings, self.clock = happens, list[NotificationEvent](), list[str](), 0.0

    def happen(self, kind: str, table: str) -> None:
        message = {"tableObjJson": tjson.dumps(Table(tableName=table, dbName="db", parameters={})), "partitions": [{"p": "1"}]}
        at = 10 + len(self.happening)
        self.happening.append(NotificationEvent(at, 0, kind, "db", table, json.dumps(message), "json-0.2"))

    def current_event_id(self) -> int:
        for kind, table in self.happens:
            self.happen(kind, table)
        return 9 + len(self.happening)

    def events(self, *among: int) -> list[NotificationEvent]:
        after, until = among
        return [one for one in self.happening if after < one.eventId <= until]

    def ls(self, location: str) -> list[FileStatus]:
        self.listings.append(location.rpartition("/")[2])
        return super().ls(location)


def snapshot_of(source: Any, *tables: str) -> Snapshot:
    draft = Draft()
    for table in source.tables("db", list(tables)):
        draft.put_table(TableRecord(table))
    reads = dict.fromkeys(tables, Read(9, 9))
    reader = ObjectReader(source, Scope("db"), draft, Lister(source, holds=True), reads)
    return Snapshot(source, reader, lambda _: 9 + len(source.happening))


def test_what_others_do_beside_the_transactional_tables_of_a_dump_does_not_keep_it_from_its_end() -> None:
    """A plain table, or one outside the policy: the dump was listed again for ever."""
    source = Busy(("INSERT", "plain"), ("COMMIT_COMPACTION_EVENT", "other"), t="base_0000007", u="base_0000007")
    assert snapshot_of(source, "t", "u").take(9) == 9
    assert source.rounds == 1


@pytest.mark.parametrize("kind", ["COMMIT_COMPACTION_EVENT", "DROP_PARTITION"])
def test_only_the_tables_are_listed_again_from_which_files_were_taken(kind: str) -> None:
    class Once(Busy):
        def files(self, location: str) -> list[FileStatus]:
            if location.endswith("/t") and not self.happening:
                self.happen(kind, "t")
            return super().files(location)

    source = Once(t="base_0000007", u="base_0000007")
    assert snapshot_of(source, "t", "u").take(9) == 10
    assert (source.rounds, sorted(set(source.listings[-2:])), source.listings.count("u")) == (2, ["t"], 2)


def test_a_table_that_is_compacted_again_and_again_ends_the_dump_with_an_error() -> None:
    class Compacting(Busy):
        def write_ids(self, _: str, names: list[str]) -> dict[str, WriteIds]:
            return dict.fromkeys(names, WriteIds(7))

        def files(self, location: str) -> list[FileStatus]:
            self.happen("COMMIT_COMPACTION_EVENT", "t")
            return super().files(location)

    with pytest.raises(ReplicationError, match="change faster than they can be listed"):
        snapshot_of(Compacting(t="base_0000007"), "t").take(9)


def test_time_in_which_no_transaction_was_open_does_not_count_as_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing took longer than acid.open_txn_timeout: the first transaction that was open then was aborted at once."""

    class Slow(Busy):
        def write_ids(self, _: str, names: list[str]) -> dict[str, WriteIds]:
            self.rounds += 1
            return dict.fromkeys(names, WriteIds(8, open=frozenset({8}) if self.rounds == 2 else frozenset()))

        def files(self, location: str) -> list[FileStatus]:
            if self.rounds == 1:
                self.clock += 2 * self.policy.acid.open_txn_timeout
                self.happen("COMMIT_COMPACTION_EVENT", "t")
            return super().files(location)

    source = Slow(t="base_0000007")
    monkeypatch.setattr("time.monotonic", lambda: source.clock)
    slept = list[float]()
    monkeypatch.setattr("time.sleep", slept.append)
    assert snapshot_of(source, "t").take(9) == 10
    assert (len(slept), source.rounds) == (1, 3)


def test_waiting_ends_where_a_commit_comes_whenever_no_transaction_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time began anew each time: the tables of a window waited for hours for one that was dumped beside it."""

    class Alternating(Busy):
        policy = SimpleNamespace(acid=Acid(open_txn_timeout=60, at_timeout="fail"), max_message_bytes=10_000)

        def write_ids(self, _: str, names: list[str]) -> dict[str, WriteIds]:
            self.rounds += 1
            if self.rounds % 2 == 0:
                self.happen("INSERT", "t")
            return dict.fromkeys(names, WriteIds(8, open=frozenset({8} if self.rounds % 2 else ())))

        def writers(self, *_: object) -> list[int]:
            return [8]

        def sleep(self, _: float) -> None:
            self.clock += 10

    source = Alternating(t="base_0000007")
    monkeypatch.setattr("time.monotonic", lambda: source.clock)
    monkeypatch.setattr("time.sleep", source.sleep)
    with pytest.raises(ReplicationError, match="did not end within 60 s"):
        snapshot_of(source, "t").take(9)
    assert source.clock == 60


def test_listing_can_be_done_by_other_processes() -> None:
    """Spark executors list many directories."""
    assert pickle.loads(pickle.dumps(partial(seen_files, write_ids=WriteIds(1), hidden=BEFORE))).keywords["hidden"] == BEFORE
    assert pickle.loads(pickle.dumps(SeenFiles((ORIGINAL,)))) == SeenFiles((ORIGINAL,))
