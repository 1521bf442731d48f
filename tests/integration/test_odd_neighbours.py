"""Odd names, messages and files, many at once, beside ten ordinary tables that the same window must bring: on 3.1.3 and 4.2.

Whatever a metastore accepts is replicated, or held with a sentence; a neighbour never waits for it, and it leaves no trace once
it is dropped.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hive_metastore.ttypes import Catalog, CreateCatalogRequest

from hive_replication.api import verify
from hive_replication.connect import Connection, connect
from hive_replication.lag import lag
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.load.report import LoadReport
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Database, FieldSchema, NotificationEvent, Table, copy_of
from hive_replication.operate import release, repair, undo
from hive_replication.recover import recover
from resources.embedded.cluster import Cluster
from resources.embedded.policy import policy
from tests.origin import TEXT, Origin
from tests.warehouse import Warehouse

pytestmark = pytest.mark.servers

ORDINARY = [f"plain{number}" for number in range(10)]
#: Accepted by both versions, and by Hive 4.2 alone.
BOTH = ["c/b", "_functions", "_metadata", "_files", "_dumpmetadata", "_finished_dump", "n" * 120, "m" * 200]
ONLY_4 = ["a-b", "x y", "a.b", "$x", "a#b", "a%b", "a%2fb", "a'b", 'a"b', "a`b", "a=b", "a?b", "a*b", "a[b", "a;b",
          "a@b", "repl-5-1", "x__dump", "a|b", "a+b", "<b>", "(a)", "~", "a,b"]  # fmt: skip
#: Accepted by Hive 4.2, but: a table that cannot be told from a function, and tables that its metastore cannot alter.
FUNCTION, DOTS = "f()", (".", "..")
VALUES = ["a/b", "..", "x y", "a=b", "%41", "#", "ü雪", "a\nb", "a\tb", "'", '"', "\\", "*", "{", "^", " ", "b...c", "|", "~"]
FILES = ["a\nb", "a\tb", "a#b", "a##b", "a%b", "a%0Ab", "\x01x", "\x7f", "x y", "ü雪", "a?b", "a*b", "[a]", "a;b", "'", '"', "+"]


@dataclass
class Pair:
    """A source database and its replica, on metastores of one version."""

    connection: Connection
    database: str
    names: Sequence[str]

    @property
    def origin(self) -> Origin:
        return Origin(self.connection, self.database)

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse(self.connection, None, self.database)  # type: ignore[arg-type]

    def state(self) -> ReplicaState:
        return replica_state(self.connection.target.metastore.database(self.database))

    def insert(self, table: str, name: str, rows: str = "1\n", day: str | None = None) -> None:
        """Inserts a file of this name, with its event."""
        storage, metastore = self.connection.source.storage, self.connection.source.metastore
        if day is None:
            location = self.origin.location(table)
        else:
            found = metastore.table(self.database, table)
            assert found is not None
            (location,) = [str(part.sd.location) for part in metastore.partitions(self.database, table) if part.values == [day]]
        uri = f"{location}/{name}"
        storage.write(uri, rows.encode())
        checksum = storage.checksum(uri)
        assert checksum is not None
        values = None if day is None else [day]
        metastore.fire_insert_event(self.database, table, values=values, files=[uri], checksums=[checksum.value], replace=False)

    def neighbours(self, name: str) -> None:
        """An INSERT into each of the ordinary tables."""
        for table in ORDINARY:
            self.insert(table, name)

    def assert_neighbours_equal(self) -> None:
        contents = [self.warehouse.content(source=source) for source in (False, True)]
        for table in ORDINARY:
            assert contents[0][table] == contents[1][table]

    def target_names(self) -> set[str]:
        return set(self.connection.target.metastore.table_names(self.database))


_VERSIONS = pytest.param("3.1.3", marks=pytest.mark.long), "4.2"


@pytest.fixture(params=_VERSIONS, scope="module")
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["tree", pytest.param("packed", marks=pytest.mark.long)])
def pair(version: str, request: pytest.FixtureRequest, unique: str) -> Pair:
    return _pair(version, request, unique, packed=request.param == "packed")


@pytest.fixture
def tree(version: str, request: pytest.FixtureRequest, unique: str) -> Pair:
    return _pair(version, request, unique, packed=False)


def _pair(version: str, request: pytest.FixtureRequest, unique: str, *, packed: bool) -> Pair:
    cluster: Cluster = request.getfixturevalue("cluster")
    sides = ("source", "target")
    if version == "4.2":
        sides = (request.getfixturevalue("source4").name, request.getfixturevalue("target4").name)
    chosen = policy(cluster, {unique: unique}, *sides).model_copy(update={"packed_above": 0 if packed else 10_000})
    made = Pair(connect(chosen), unique, BOTH if version == "3.1.3" else [*BOTH, *ONLY_4])
    made.origin.create_database()
    for table in ORDINARY:
        made.origin.create(table)
    return made


def test_odd_names(pair: Pair) -> None:
    """Tables, partitions, columns and files of odd names come with a bootstrap, with a window, and go without a trace."""
    first, later = pair.names[::2], pair.names[1::2]
    for name in first:
        pair.origin.create(name)
        pair.insert(name, "0")
    pair.origin.create("_functions" if "_functions" in later else "parts", "a=b/c")
    _assert_whole(pair, pair.warehouse.replicate())

    for name in later:
        if name != "_functions":
            pair.origin.create(name)
        pair.insert(name, "0", day="a=b/c" if name == "_functions" else None)
    for name in first:
        pair.insert(name, "1")
    pair.origin.create("by_value", *VALUES)
    for value in VALUES:
        pair.insert("by_value", "0", day=value)
    pair.origin.create("files")
    for name in FILES:
        pair.insert("files", name)
    _with_odd_columns(pair)
    pair.neighbours("1")
    _assert_whole(pair, pair.warehouse.replicate())

    metastore = pair.connection.source.metastore
    for name in (*pair.names, "by_value", "files", "columns"):
        metastore.drop_table(pair.database, name, delete_data=True)
    pair.neighbours("2")
    _assert_whole(pair, pair.warehouse.replicate())
    assert pair.state().at == {}
    assert pair.target_names() == set(metastore.table_names(pair.database))


def _assert_whole(pair: Pair, report: LoadReport) -> None:
    assert report.held == ()
    assert pair.state().held == {}
    pair.warehouse.assert_equal_but_paths()


def _with_odd_columns(pair: Pair) -> None:
    sd = copy_of(TEXT)
    sd.cols = [FieldSchema(name, "int", "a\tcomment\nof two lines") for name in ("x y", "a.b", "ü", "a/b", "`", "a#b", "%")]
    keys = [FieldSchema("p q", "string", None), FieldSchema("r=s", "string", None)]
    table = Table("columns", pair.database, owner="hive", sd=sd, partitionKeys=keys, parameters={}, tableType="MANAGED_TABLE")
    pair.connection.source.metastore.create_table(table)


def test_a_file_of_an_odd_name_in_a_bootstrap(pair: Pair) -> None:
    for name in FILES:
        pair.insert(ORDINARY[0], name)
    _assert_whole(pair, pair.warehouse.replicate())


@pytest.mark.long
def test_commands_about_odd_names(tree: Pair) -> None:
    """Comparison, repair and undo of a table between backquotes; one that goes back beyond its repair is recovered whole."""
    names = [name for name in ("c/b", "_metadata", "a.b", "x y", "a%b") if name in tree.names]
    for name in names:
        tree.origin.create(name)
        tree.insert(name, "0")
    first = tree.warehouse.replicate().to_evid
    for name in names:
        tree.insert(name, "1")
    tree.neighbours("1")
    tree.warehouse.replicate()
    target, called = tree.connection.target, {name: f"{tree.database}.`{name}`" for name in names}
    for name in names:
        assert [one.differences for one in verify(tree.connection, called[name])] == [()]
        table = target.metastore.table(tree.database, name)
        assert table is not None
        target.storage.delete(f"{table.sd.location}/1")
        assert [bool(one.differences) for one in verify(tree.connection, called[name])] == [True]
        assert repair(tree.connection, called[name]).left == ()
    _assert_whole(tree, tree.warehouse.replicate())
    for name in names:
        undo(tree.connection, called[name], first)
        assert tree.state().waits(name)
        assert release(tree.connection, called[name])
    assert recover(tree.connection, tree.database) is not None
    _assert_whole(tree, tree.warehouse.load(tree.warehouse.dump(tree.warehouse.status()).directory))


def test_names_that_hold_their_tables(tree: Pair, version: str) -> None:
    """With a sentence, until they are dropped."""
    if version == "3.1.3":
        pytest.skip("Hive 3.1.3 refuses the names")
    tree.warehouse.replicate()
    for name in (FUNCTION, *DOTS):
        tree.origin.create(name)
    for name in DOTS:
        tree.insert(name, "0")
    tree.neighbours("0")
    report = tree.warehouse.replicate()
    held = {name: one.reason for one in report.held for name in one.tables}
    assert held.keys() <= {"f() (table)", *DOTS}
    assert "cannot be told from a function" in held["f() (table)"]
    tree.assert_neighbours_equal()
    for name in DOTS:
        tree.insert(name, "1")
    tree.neighbours("1")
    report = tree.warehouse.load(tree.warehouse.dump(tree.warehouse.status()).directory)
    held = {name: one.reason for one in report.held for name in one.tables}
    assert held.keys() == {"f() (table)", *DOTS}
    assert all("name must be" in held[name] for name in DOTS)  # the metastore's own words
    tree.assert_neighbours_equal()
    for name in (FUNCTION, *DOTS):
        tree.connection.source.metastore.drop_table(tree.database, name, delete_data=True)
    report = tree.warehouse.load(tree.warehouse.dump(tree.warehouse.status()).directory)
    assert report.held == ()
    assert (tree.state().held, tree.state().at) == ({}, {})
    assert tree.target_names() == set(ORDINARY)


def _edited(change: Callable[[dict[str, Any]], object]) -> Callable[[NotificationEvent], None]:
    def edit(event: NotificationEvent) -> None:
        text = event.message
        if event.messageFormat.startswith("gzip"):
            text = gzip.decompress(base64.b64decode(text)).decode()
        message = json.loads(text)
        changed = change(message)
        event.message, event.messageFormat = json.dumps(message if changed is None else changed), "json-0.2"

    return edit


def _packed(data: bytes) -> Callable[[NotificationEvent], None]:
    def edit(event: NotificationEvent) -> None:
        event.message, event.messageFormat = base64.b64encode(data).decode(), "gzip(json-2.0)"

    return edit


def _image(key: str, **values: object) -> Callable[[NotificationEvent], None]:
    """Fields of a thrift object in a message, by their numbers ``_<n>``."""
    return _edited(
        lambda message: message.update({key: json.dumps(json.loads(message[key]) | {k[1:]: v for k, v in values.items()})})
    )


#: What may stand in the log for the INSERT of a table; each holds its table.
MESSAGES: dict[str, Callable[[NotificationEvent], None]] = {
    "flipped": _packed(gzip.compress(b"{}")[:-6] + b"\0\0\0\0\0\0"),
    "cut_off": _packed(gzip.compress(b"{}" * 9_000)[:-9]),
    "bomb": _packed(gzip.compress(bytes(2**27))),
    "no_gzip": _packed(b"{}"),
    "no_base64": lambda event: setattr(event, "message", "☃") or setattr(event, "messageFormat", "gzip(json-2.0)"),
    "null": lambda event: setattr(event, "message", None),
    "json_null": _edited(lambda _: []),
    "deep": lambda event: setattr(event, "messageFormat", "json-0.2") or setattr(event, "message", "[" * 100_000),
    "cut_json": _edited(lambda message: message.pop("tableObjJson") and None),
    "infinite": _edited(lambda message: message.update(files=[1e999])),
    "surrogate": _edited(lambda message: message.update(files=["hdfs://x/\ud800#0#"])),
    "another_table": _image("tableObjJson", _1={"str": ORDINARY[0]}),
    "another_database": _image("tableObjJson", _2={"str": "default"}),
    "no_catalog_of_ours": _image("tableObjJson", _17={"str": "other"}),
    "outside": _edited(lambda message: message.update(files=["file:///etc/passwd###"])),
    "upwards": _edited(lambda message: message.update(files=[message["files"][0] + "/../../x"])),
    "place": _image("tableObjJson", _7={"rec": {"2": {"str": "hdfs://127.0.0.1/a/../../b"}}}),
}


@pytest.mark.long
def test_odd_messages(tree: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holds its table with a sentence, in one window with ten ordinary tables; a drop ends the hold."""
    for name in MESSAGES:
        tree.origin.create(name)
    tree.warehouse.replicate()
    real = Metastore.events

    def events(self: Metastore, *args: Any, **options: Any) -> Iterator[NotificationEvent]:
        for event in real(self, *args, **options):
            if event.dbName == tree.database and event.eventType == "INSERT" and event.tableName in MESSAGES:
                MESSAGES[event.tableName](event)
            yield event

    monkeypatch.setattr(Metastore, "events", events)
    for name in MESSAGES:
        tree.insert(name, "0")
    tree.neighbours("0")
    assert lag(tree.connection.source, tree.connection.target, tree.database).waiting == len(MESSAGES) + len(ORDINARY)
    report = tree.warehouse.replicate()
    held = {name: one.reason for one in report.held for name in one.tables}
    assert held.keys() == MESSAGES.keys()
    assert all(reason.isprintable() and "event" in reason for reason in held.values()), held
    tree.assert_neighbours_equal()

    for name in MESSAGES:
        tree.connection.source.metastore.drop_table(tree.database, name, delete_data=True)
    tree.neighbours("1")
    report = tree.warehouse.load(tree.warehouse.dump(tree.warehouse.status()).directory)
    assert report.held == ()
    assert (tree.state().held, tree.state().at) == ({}, {})
    tree.warehouse.assert_equal_but_paths()


def test_another_catalog(tree: Pair, version: str) -> None:
    """A database of the same name in another catalog: what happens there happens to no replica."""
    metastore, name = tree.connection.source.metastore, ORDINARY[0]
    tree.insert(name, "0")
    tree.warehouse.replicate()
    other, root = f"c{tree.database}", tree.connection.source.policy.source.roots[0].uri
    request = CreateCatalogRequest(Catalog(name=other, description="", locationUri=f"{root}catalogs/{other}"))
    metastore.call("create_catalog", lambda client: client.create_catalog(request))
    place = f"{root}catalogs/{other}/{tree.database}"
    database = Database(name=tree.database, parameters={}, locationUri=place, catalogName=other)
    metastore.call("create_database", lambda client: client.create_database(database))
    try:
        for table in (name, "phantom"):
            sd = copy_of(TEXT)
            sd.location = f"{place}/{table}"
            made = Table(table, tree.database, owner="hive", sd=sd, partitionKeys=[], parameters={"EXTERNAL": "TRUE"},
                         tableType="EXTERNAL_TABLE", catName=other)  # fmt: skip
            metastore.call("create_table", lambda client, made=made: client.create_table(made))
        metastore.call("drop_table", lambda client: client.drop_table(f"@{other}#{tree.database}", name, True))
    finally:
        metastore.call("drop_database", lambda client: client.drop_database(f"@{other}#{tree.database}", True, True))
    assert lag(tree.connection.source, tree.connection.target, tree.database).waiting == 0
    report = tree.warehouse.replicate()
    assert (report.held, dict(report.applied)) == ((), {})
    assert tree.connection.target.metastore.database(tree.database) is not None
    assert tree.target_names() == set(ORDINARY)
    tree.neighbours("1")
    _assert_whole(tree, tree.warehouse.replicate())
