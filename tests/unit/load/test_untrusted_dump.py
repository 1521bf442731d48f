"""What a load refuses of a dump whose digests are right: what lies outside its window, its place and its policy."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

import hive_replication
from hive_replication.connect import Connection
from hive_replication.dump.format.packed_store import PackedStore
from hive_replication.dump.format.record_types import EventRecord
from hive_replication.errors import Refused
from hive_replication.events.event_records import Notification
from hive_replication.events.files import FileRef
from hive_replication.load.command import plan_load
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.untrusted_dump import NOT_OF_POLICY, validate_files
from hive_replication.load.window_events import decoded_events
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.types import Function
from hive_replication.policy import PolicyScope
from hive_replication.statements import ReplLoad
from tests.bootstraps import SOURCE, header, loaded, loading, record
from tests.fuzz.dumps import Dump, dumps, plan, resealed, target_of
from tests.fuzz.memory import MemoryStorage

WINDOW = next(dump for dump in dumps() if dump.snapshot is not None and f"{dump.directory}/part-00000.parquet" not in dump.files)


def edited(dump: Dump, name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, bytes]:
    uri = f"{dump.directory}/{name}"
    value = json.loads(dump.sealed[uri])
    return resealed(dump.directory, dump.sealed | {uri: json.dumps(change(value)).encode()})


@pytest.mark.parametrize("evid", [10**15, 1])
def test_an_event_outside_the_window(evid: int) -> None:
    """The id would be the table's state id: all that comes later would be skipped as applied already."""
    name = max(
        (uri.split("/")[-2] for uri in WINDOW.files if uri.endswith("/_metadata") and uri.split("/")[-2].isdigit()), key=int
    )
    files = {
        uri.replace(f"{WINDOW.directory}/{name}/", f"{WINDOW.directory}/{evid}/"): data for uri, data in WINDOW.sealed.items()
    }
    uri = f"{WINDOW.directory}/{evid}/_metadata"
    files[uri] = json.dumps(json.loads(files[uri]) | {"evid": evid}).encode()
    with pytest.raises(Refused, match=f"the dump has the event {evid}, which lies outside its window from "):
        plan(WINDOW, resealed(WINDOW.directory, files))


def test_a_header_that_names_another_database() -> None:
    files = edited(WINDOW, "_dumpmetadata", lambda header: header | {"scope": header["scope"] | {"database": "default"}})
    with pytest.raises(Refused, match="lies among those of 'recorded_05' and says that it is of 'default'"):
        plan(WINDOW, files)
    target = target_of(WINDOW, changes := [])
    root = target.policy.dump_root
    with pytest.raises(Refused, match="lies among those of"):
        plan_load(target, ReplLoad(WINDOW.directory, "recorded_05"), PackedStore(MemoryStorage(root, files), root))
    assert changes == []


def test_a_dump_of_another_policy_needs_a_name() -> None:
    target = target_of(WINDOW, changes := [])
    policy = target.policy.model_copy(update={"databases": {"sales": "sales"}})
    root = policy.dump_root
    store = PackedStore(MemoryStorage(root, WINDOW.sealed), root)
    target = type(target)(target.metastore, target.storage, policy, target.source_storage)
    source = SimpleNamespace(metastore=None)
    connection = cast("Connection", SimpleNamespace(source=source, target=target, store=store, copier=None))
    with pytest.raises(Refused, match="is of 'recorded_05', which is no database of the policy: name the target database"):
        hive_replication.load(connection, WINDOW.directory)
    with pytest.raises(Refused, match="which is no database of the policy"):
        hive_replication.plan(connection, WINDOW.directory)
    assert changes == []


def test_a_cmroot_is_checked_where_it_may_be_read() -> None:
    """Of S3 Hive records no checksum, and a cmroot on HDFS all the same: every INSERT was held for it."""

    def check(uri: str) -> None:
        if not uri.startswith("s3a://b/"):
            raise Refused(uri)

    target = cast("Any", SimpleNamespace(source_storage=SimpleNamespace(check=check)))
    validate_files(target, [FileRef("s3a://b/f", "", "hdfs://nn/cm")], "event 5")
    with pytest.raises(Refused, match="hdfs://nn/cm"):
        validate_files(target, [FileRef("s3a://b/f", "00", "hdfs://nn/cm")], "event 5")


@pytest.mark.parametrize("below", ["..", "../..", ".repl", ".repl/journal", "x/../y", "/x", "delta_1_1//x"])
def test_a_file_goes_to_no_directory_but_below_that_of_its_table(below: str) -> None:
    """``.repl`` is replication's own: a dump placed files in a directory of that name below a table's."""
    target = cast("Any", SimpleNamespace(source_storage=SimpleNamespace(check=lambda _: None)))
    validate_files(target, [FileRef("hdfs://s/t/f", subdir="delta_1_1")], "event 5")
    with pytest.raises(Refused, match="would lead out of its directory"):
        validate_files(target, [FileRef("hdfs://s/t/f", subdir=below)], "event 5")


def test_a_table_that_is_none_of_the_scope_of_its_dump_is_not_loaded() -> None:
    """A record of ``secret`` was loaded whatever the policy excluded, and so was any other one of a dump of one table."""
    secret, orders = record("secret"), record("orders")
    taken = PolicyScope(exclude=("secret",)).text
    for head, named in ((header(60, taken=taken), "secret"), (header(60, "orders"), "secret"), (header(60, "secret"), "orders")):
        load = loaded(ReplicaState(SOURCE, 50), head, [], [orders, secret])
        assert load.lanes.keys() == {"orders", "secret"} - {named}
        assert [(one.evid, one.what, one.reason) for one in load.skipped] == [(60, named, NOT_OF_POLICY)]


@pytest.mark.parametrize(("table", "read"), [(None, 1), ("orders", 0)])
def test_a_window_of_one_table_brings_no_functions(table: str | None, read: int) -> None:
    """Functions are of the database: a load of ``orders`` made those that were created in its window."""
    message = json.dumps({"db": "db", "functionObjJson": tjson.dumps(Function("f", "db", "C", "me", 1, 0, 1, []))})
    session = loading(ReplicaState(SOURCE, 50), replace(header(60, table), kind="incremental", from_evid=50), [])
    events = (EventRecord(Notification(55, 5, "CREATE_FUNCTION", "db", "", message)),)
    session.reader = cast("Any", SimpleNamespace(header=session.reader.header, events=lambda: iter(events)))
    assert len([*decoded_events(session)]) == read
    assert [one.reason for one in session.skipped] == ["a load of one table brings no functions"] * (1 - read)
