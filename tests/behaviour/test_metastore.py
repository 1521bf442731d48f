"""The metastore client against real metastores of every version; all must behave alike. Those in between are long tests."""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from hive_metastore.ttypes import AddPackageRequest, CommitTxnRequest, OpenTxnRequest, StoredProcedure

from hive_replication.errors import BadRequest, MissingEvents
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import AlreadyExists, MetastoreError, NotFound
from hive_replication.metastore.names import partition_name
from hive_replication.metastore.types import (
    Database,
    FieldSchema,
    NotificationEvent,
    Partition,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
    copy_of,
)
from resources.embedded.cluster import Cluster
from resources.embedded.versions import VERSIONS

pytestmark = pytest.mark.servers

SPECIAL = [("2024-01-01", "de"), ("a b/c%d", "ü☃😀"), ("q'\"#:=?*[]{}^\\ ", "x/y"), ("\x01", "100%")]


SIDES = {"source" + end: version.number for end, version in VERSIONS.items()}
OFTEN = ("source", "source4")
PARAMS = [
    pytest.param(side, id=f"hive-{number}", marks=() if side in OFTEN else pytest.mark.long) for side, number in SIDES.items()
]


@pytest.fixture(scope="module", params=PARAMS)
def metastore(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Metastore]:
    cluster.up([request.param])
    with Metastore(cluster.side(request.param).metastore) as client:
        yield client
    if request.param not in OFTEN:
        cluster.down([f"{request.param}.metastore"])


def of_hive2(metastore: Metastore) -> bool:
    return metastore.features.major == 2


@pytest.fixture
def db(metastore: Metastore) -> Iterator[str]:
    name = f"ms_{uuid4().hex[:8]}"
    metastore.create_database(Database(name=name, ownerName="hive"))
    yield name
    metastore.drop_database(name, delete_data=True, cascade=True)


def storage(location: str | None = None) -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema(name="id", type="int", comment="é")],
        location=location,
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo(
            serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={"field.delim": "\x01"}
        ),
        parameters={},
        bucketCols=[],
        sortCols=[],
    )


def make_table(metastore: Metastore, db: str, name: str = "t", *, keys: tuple[str, ...] = ()) -> Table:
    partition_keys = [FieldSchema(name=key, type="string") for key in keys]
    parameters = {"EXTERNAL": "TRUE", "note": "naïve ☃", "numRows": "42", "transient_lastDdlTime": "1700000000"}
    table = Table(
        tableName=name, dbName=db, tableType="EXTERNAL_TABLE", sd=storage(), partitionKeys=partition_keys, parameters=parameters
    )
    metastore.create_table(table)
    made = metastore.table(db, name)
    assert made is not None
    return made


def partition_of(table: Table, *values: str) -> Partition:
    descriptor = copy_of(table.sd)
    descriptor.location = f"{table.sd.location}/{abs(hash(values))}"
    parameters = {"repl.last.id": "7", "transient_lastDdlTime": "1700000000"}
    return Partition(values=list(values), dbName=table.dbName, tableName=table.tableName, sd=descriptor, parameters=parameters)


def test_the_server_says_what_it_is(metastore: Metastore, request: pytest.FixtureRequest) -> None:
    number = request.node.callspec.id.removeprefix("hive-")
    assert metastore.version() == (number if metastore.features.major >= 4 else number[0])
    assert len(metastore.uuid()) == (0 if of_hive2(metastore) else 36)


def test_stored_procedures_and_packages(metastore: Metastore, db: str) -> None:
    """Earlier versions than Hive 4 have none, and do not know the calls."""
    assert metastore.procedures(db) == []
    if metastore.features.major < 4:
        return
    procedure = StoredProcedure(name="p", dbName=db, catName="hive", ownerName="hive", source="CREATE PROCEDURE p() BEGIN END;")
    package = AddPackageRequest(catName="hive", dbName=db, packageName="k", ownerName="hive", header="", body="")
    metastore.call("create_stored_procedure", lambda client: client.create_stored_procedure(procedure))
    metastore.call("add_package", lambda client: client.add_package(package))
    assert metastore.procedures(db) == ["p", "k"]


def test_databases(metastore: Metastore) -> None:
    name = f"ms_{uuid4().hex[:8]}"
    assert metastore.database(name) is None
    assert not metastore.drop_database(name)
    metastore.create_database(Database(name=name, description="d", ownerName="hive", ownerType=1, parameters={"note": "naïve ☃"}))
    with pytest.raises(AlreadyExists, match=name):
        metastore.create_database(Database(name=name))
    made = metastore.database(name)
    assert made is not None
    assert (made.parameters, made.ownerName, made.description) == ({"note": "naïve ☃"}, "hive", "d")
    made.parameters["more"] = "x"
    metastore.alter_database(name, made)
    assert metastore.database(name) == made
    assert metastore.databases(f"{name[:-1]}*") == [name]
    make_table(metastore, name)
    with pytest.raises(MetastoreError, match="not empty"):
        metastore.drop_database(name)
    assert metastore.drop_database(name, delete_data=True, cascade=True)
    assert metastore.database(name) is None


def test_a_table_is_read_as_written(metastore: Metastore, db: str) -> None:
    made = make_table(metastore, db, keys=("ds",))
    assert (made.parameters["note"], made.sd.serdeInfo.parameters["field.delim"]) == ("naïve ☃", "\x01")
    assert made.sd.cols == [FieldSchema(name="id", type="int", comment="é")]
    assert tjson.loads(Table, tjson.dumps(made)) == made
    assert metastore.table(db, "absent") is None
    with pytest.raises(AlreadyExists):
        make_table(metastore, db)
    with pytest.raises(MetastoreError):
        make_table(metastore, "no_such_database")


def test_alter_changes_what_is_asked_and_nothing_else(metastore: Metastore, db: str) -> None:
    made = make_table(metastore, db)
    made.parameters["repl.last.id"] = "7"
    metastore.alter_table(db, "t", made)
    altered = metastore.table(db, "t")
    assert altered == made  # transient_lastDdlTime and numRows included


def test_a_rename_and_a_drop(metastore: Metastore, db: str) -> None:
    made = make_table(metastore, db)
    make_table(metastore, db, "other")
    made.tableName = "other"
    with pytest.raises(MetastoreError, match="other"):
        metastore.alter_table(db, "t", made)
    made.tableName = "t2"
    metastore.alter_table(db, "t", made)
    assert sorted(metastore.table_names(db)) == ["other", "t2"]
    assert metastore.table_names(db, "t*") == ["t2"]
    assert metastore.drop_table(db, "t2")
    assert not metastore.drop_table(db, "t2")
    with pytest.raises(MetastoreError):
        metastore.alter_table(db, "t2", made)


def test_many_tables_come_in_batches(metastore: Metastore, db: str) -> None:
    names = [f"t{n}" for n in range(5)]
    for name in names:
        make_table(metastore, db, name)
    with Metastore(metastore.uri, batch=2) as small:
        found = list(small.tables(db, iter([*names, "absent"])))
    assert sorted(table.tableName for table in found) == names


def test_tables_stored_as_directories(metastore: Metastore, db: str) -> None:
    descriptor = storage()
    descriptor.storedAsSubDirectories = True
    descriptor.skewedInfo = SkewedInfo(["id"], [["1"]], {("1",): "hdfs://nn/x/id=1"})
    metastore.create_table(
        Table(
            tableName="t", dbName=db, tableType="EXTERNAL_TABLE", sd=descriptor, partitionKeys=[], parameters={"EXTERNAL": "TRUE"}
        )
    )
    made = metastore.table(db, "t")
    assert made is not None
    assert made.sd.skewedInfo == descriptor.skewedInfo
    [event] = [e for e in metastore.events(metastore.current_event_id() - 1) if e.eventType == "CREATE_TABLE"]
    assert tjson.loads(Table, message_of(event)["tableObjJson"]).sd.skewedInfo == descriptor.skewedInfo


def test_partitions_with_special_values(metastore: Metastore, db: str) -> None:
    table = make_table(metastore, db, keys=("ds", "country"))
    names = {partition_name(["ds", "country"], values): values for values in SPECIAL}
    metastore.add_partitions(db, "t", [partition_of(table, *values) for values in SPECIAL])
    assert set(metastore.partition_names(db, "t")) == set(names)
    assert metastore.partition_count(db, "t") == len(SPECIAL)
    assert {tuple(p.values) for p in metastore.partitions(db, "t")} == set(SPECIAL)
    for name, values in names.items():
        [found] = metastore.partitions(db, "t", [name, "ds=absent/country=x"])
        assert tuple(found.values) == values
        found.parameters["repl.last.id"] = "9"
        metastore.alter_partitions(db, "t", [found])
        [altered] = metastore.partitions(db, "t", [name])
        assert altered == found
        metastore.drop_partitions(db, "t", [name, "ds=absent/country=x"])
        assert name not in metastore.partition_names(db, "t")
    assert metastore.partition_count(db, "t") == 0


def test_partitions_are_added_all_or_none(metastore: Metastore, db: str) -> None:
    table = make_table(metastore, db, keys=("ds",))
    metastore.add_partitions(db, "t", [partition_of(table, "2")])
    with pytest.raises(AlreadyExists):
        metastore.add_partitions(db, "t", [partition_of(table, "1"), partition_of(table, "2"), partition_of(table, "3")])
    assert metastore.partition_names(db, "t") == ["ds=2"]
    with pytest.raises(MetastoreError):
        metastore.alter_partitions(db, "t", [partition_of(table, "1")])
    with pytest.raises(MetastoreError):
        metastore.add_partitions(db, "absent", [partition_of(table, "1")])
    with pytest.raises(NotFound):
        list(metastore.partitions(db, "absent"))


def test_partitions_of_several_write_ids_are_altered(metastore: Metastore, db: str) -> None:
    """Metastore 4.2 logs an event for each write id, of what it is told or of what it has, and fails where those are several."""
    table = make_table(metastore, db, keys=("ds",))
    parts = [partition_of(table, str(number)) for number in range(4)]
    metastore.add_partitions(db, "t", parts)
    for number, part in enumerate(parts):
        part.writeId, part.parameters = number % 2 + 1, {"altered": str(number)}
    metastore.alter_partitions(db, "t", parts)
    for part in parts:
        part.writeId = -1
    metastore.alter_partitions(db, "t", parts)
    found = {part.values[0]: part.parameters["altered"] for part in metastore.partitions(db, "t")}
    assert found == {"0": "0", "1": "1", "2": "2", "3": "3"}


def test_a_partition_is_renamed(metastore: Metastore, db: str) -> None:
    table = make_table(metastore, db, keys=("ds",))
    metastore.add_partitions(db, "t", [partition_of(table, "a/b"), partition_of(table, "c")])
    [moved] = metastore.partitions(db, "t", ["ds=a%2Fb"])
    moved.values = ["ü%"]
    metastore.rename_partition(db, "t", ["a/b"], moved)
    assert set(metastore.partition_names(db, "t")) == {"ds=c", "ds=ü%25"}
    moved.values = ["c"]
    with pytest.raises(MetastoreError):
        metastore.rename_partition(db, "t", ["ü%"], moved)


def test_more_partitions_than_a_call_takes(metastore: Metastore, db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metastore, "_batch", 50)
    table = make_table(metastore, db, keys=("ds",))
    metastore.add_partitions(db, "t", [partition_of(table, f"{n:03}") for n in range(120)])
    found = [partition.values[0] for partition in metastore.partitions(db, "t")]
    assert sorted(found) == [f"{n:03}" for n in range(120)]
    metastore.drop_partitions(db, "t", (f"ds={n:03}" for n in range(119)))
    assert metastore.partition_names(db, "t") == ["ds=119"]


def test_threads_share_a_client(metastore: Metastore, db: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: make_table(metastore, db, f"t{n}"), range(24)))
    assert len(metastore.table_names(db)) == 24


def message_of(event: NotificationEvent) -> dict[str, str]:
    packed = (event.messageFormat or "").startswith("gzip")
    return json.loads(gzip.decompress(base64.b64decode(event.message)) if packed else event.message)


def test_events_are_read_in_order(metastore: Metastore, db: str) -> None:
    start = metastore.current_event_id()
    table = make_table(metastore, db, keys=("ds",))
    metastore.add_partitions(db, "t", [partition_of(table, "ü")])
    uri = f"{table.sd.location}/f"
    metastore.fire_insert_event(db, "t", values=["ü"], files=[uri], checksums=["00ff"], replace=True)
    ours = [event for event in metastore.events(start, batch=1) if event.dbName == db]
    assert [event.eventType for event in ours] == ["CREATE_TABLE", "ADD_PARTITION", "INSERT"]
    created = tjson.loads(Table, message_of(ours[0])["tableObjJson"])
    assert (created.tableName, created.sd.serdeInfo.parameters, created.parameters["note"]) == (
        "t",
        {"field.delim": "\x01"},
        "naïve ☃",
    )
    inserted = message_of(ours[2])
    if of_hive2(metastore):
        assert (inserted["files"], inserted["partKeyVals"]) == ([f"{uri}#00ff"], {"ds": "ü"})
    else:
        assert inserted["replace"] == "true"
        assert inserted["files"][0].startswith(f"{uri}#00ff#")
        assert tjson.loads(Partition, inserted["ptnObjJson"]).values == ["ü"]
    assert [event.eventId for event in metastore.events(start, start + 2)] == [start + 1, start + 2]
    assert [event.eventId for event in metastore.events(start, start + 2, batch=1)] == [start + 1, start + 2]


def run_transaction(metastore: Metastore) -> None:
    opening = OpenTxnRequest(num_txns=1, user="test", hostname="localhost")
    opened = metastore.call("open_txns", lambda client: client.open_txns(opening), repeatable=False)
    commit = CommitTxnRequest(txnid=opened.txn_ids[0])
    metastore.call("commit_txn", lambda client: client.commit_txn(commit), repeatable=False)


def test_every_event_of_concurrent_writers_has_an_id_of_its_own(metastore: Metastore, db: str) -> None:
    def write(writer: int) -> None:
        for name in (f"t{writer}_{number}" for number in range(5)):
            table = make_table(metastore, db, name, keys=("ds",))
            metastore.add_partitions(db, name, [partition_of(table, "1")])
            run_transaction(metastore)
            metastore.drop_table(db, name)

    start = metastore.current_event_id()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    if of_hive2(metastore):  # HIVE-16886; nothing is passed over
        with pytest.raises(MissingEvents, match=r"again after event \d+; hive-repl recover"):
            list(metastore.events(start))
        return
    events = list(metastore.events(start))  # fails where an id is missing or there twice
    ours = Counter(event.eventType for event in events if event.dbName == db)
    assert ours == {"CREATE_TABLE": 40, "ADD_PARTITION": 40, "DROP_TABLE": 40}
    transactions = Counter(event.eventType for event in events)
    assert min(transactions["OPEN_TXN"], transactions["COMMIT_TXN"]) >= 40


def test_an_empty_window_and_another_history(metastore: Metastore) -> None:
    newest = metastore.current_event_id()
    assert list(metastore.events(newest, newest)) == []
    with pytest.raises(MissingEvents, match="another log, or its metastore was restored"):
        list(metastore.events(newest + 1_000_000))


def test_a_list_of_addresses(metastore: Metastore) -> None:
    with Metastore(f"thrift://127.0.0.1:1,{metastore.uri}") as second:
        assert second.uuid() == metastore.uuid()
    with pytest.raises(BadRequest):
        Metastore("127.0.0.1:9083")
