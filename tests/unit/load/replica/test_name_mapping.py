from __future__ import annotations

from dataclasses import replace
from zlib import crc32

import pytest
from hive_metastore.ttypes import PrincipalPrivilegeSet, PrivilegeGrantInfo
from hypothesis import given
from hypothesis import strategies as st

from hive_replication.load.operations.functions import create_function
from hive_replication.load.replica.name_mapping import NameMapping, point_at
from hive_replication.load.replica.owners import owned_on_target
from hive_replication.metastore.types import (
    Database,
    Function,
    Partition,
    PrincipalType,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
)
from hive_replication.storage.boundary import qualified

MAPPING = NameMapping(
    source="uuid/sales",
    source_database="sales",
    target_database="copy",
    source_location="hdfs://src:8020/w/sales.db",
    target_location="hdfs://dst:8020/t/copy.db",
    source_roots=("hdfs://src:8020/", "hdfs://src-old:8020/"),
)


def table(name: str = "t", location: str | None = None, **fields: object) -> Table:
    location = f"hdfs://src:8020/w/sales.db/{name}" if location is None else location
    defaults = {"tableType": "MANAGED_TABLE", "parameters": {}} | fields
    return Table(
        tableName=name,
        dbName="sales",
        catName="hive",
        partitionKeys=[],
        sd=StorageDescriptor(location=location, serdeInfo=SerDeInfo(parameters={"path": location})),
        **defaults,
    )


def test_owners_have_the_names_that_the_policy_gives_them() -> None:
    owners = {"alice": "bob", "bob": "carol"}
    mapping = replace(MAPPING, owners=owners)
    for owner, kind, wanted in (
        ("alice", PrincipalType.USER, "bob"),
        ("bob", None, "carol"),
        ("alice", PrincipalType.ROLE, "alice"),
        ("dave", PrincipalType.USER, "dave"),
        (None, None, None),
    ):
        assert mapping.new_table(table(owner=owner, ownerType=kind), 7).owner == wanted
        assert owned_on_target(Database(name="d", ownerName=owner, ownerType=kind), owners).ownerName == wanted
        function = Function(functionName="f", dbName="d", ownerName=owner, ownerType=kind)
        assert create_function(mapping, function, (), 7).image.ownerName == wanted
    assert MAPPING.new_table(table(owner="alice"), 7).owner == "alice"


@pytest.mark.parametrize("kind", ["MANAGED_TABLE", "VIRTUAL_VIEW"])
def test_what_a_create_table_grants_at_the_source_is_not_granted_on_the_target(kind: str) -> None:
    """Hive's client gives the owner its privileges in the call that creates a table, and the event has them."""
    granted = [PrivilegeGrantInfo("SELECT", 0, "alice", PrincipalType.USER, grantOption=True)]
    privileges = PrincipalPrivilegeSet({"alice": granted}, {}, {"public": granted})
    created = table(tableType=kind, owner="alice", privileges=privileges)
    mapping = replace(MAPPING, owners={"alice": "bob"})
    assert mapping.new_table(created, 7).privileges is None
    assert created.privileges == privileges


@pytest.mark.parametrize(
    ("mapping", "location", "expected"),
    [
        (MAPPING, "hdfs://src:8020/w/sales.db/t", "hdfs://dst:8020/t/copy.db/t"),
        (MAPPING, "hdfs://src:8020/w/sales.db/deep/er", "hdfs://dst:8020/t/copy.db/deep/er"),
        (MAPPING, "hdfs://src:8020/w/sales.db/t/", "hdfs://dst:8020/t/copy.db/t"),
        (MAPPING, "hdfs://src:8020/w/sales.dbx/t", "hdfs://dst:8020/t/copy.db/t"),
        (MAPPING, "hdfs://src:8020/elsewhere/x", "hdfs://dst:8020/t/copy.db/t"),
        (MAPPING, "", "hdfs://dst:8020/t/copy.db/t"),
        (replace(MAPPING, source_table="t", target_table="u"), "hdfs://src:8020/w/sales.db/t", "hdfs://dst:8020/t/copy.db/u"),
        (replace(MAPPING, source_table="t", target_table="t"), "hdfs://src:8020/w/sales.db/d/t", "hdfs://dst:8020/t/copy.db/d/t"),
        (replace(MAPPING, external_root="hdfs://dst:8020/ext"), "hdfs://src:8020/x/y", "hdfs://dst:8020/t/copy.db/t"),
    ],
)
def test_where_a_new_table_goes(mapping: NameMapping, location: str, expected: str) -> None:
    assert mapping.table_location(table(location=location)) == expected


def test_a_source_database_may_have_a_directory_for_managed_tables_and_one_for_external_ones() -> None:
    mapping = replace(MAPPING, external_root="hdfs://dst:8020/ext", source_managed="hdfs://src:8020/m/sales.db")
    for home in ("w", "m"):
        for kind in ("EXTERNAL_TABLE", "MANAGED_TABLE"):
            found = table(location=f"hdfs://src:8020/{home}/sales.db/deep/t", tableType=kind)
            assert mapping.table_location(found) == "hdfs://dst:8020/t/copy.db/deep/t"
        assert mapping.value(f"hdfs://src:8020/{home}/sales.db/a") == "hdfs://dst:8020/t/copy.db/a"


def test_external_data_keeps_its_path_below_the_external_root() -> None:
    mapping = replace(MAPPING, external_root="hdfs://dst:8020/ext/")
    outside = table(location="hdfs://src:8020/lake/x", tableType="EXTERNAL_TABLE")
    assert mapping.table_location(outside) == "hdfs://dst:8020/ext/lake/x"
    assert mapping.table_location(table(tableType="EXTERNAL_TABLE")) == "hdfs://dst:8020/t/copy.db/t"
    assert MAPPING.table_location(outside) == "hdfs://dst:8020/t/copy.db/t"


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("hdfs://src:8020/lake/2026/01/", "hdfs://dst:8020/ext/lake/2026/01"),
        ("hdfs://src-old:8020/lake/p=1", "hdfs://dst:8020/ext/lake/p=1"),
        ("hdfs://src:8020/w/sales.db/elsewhere", ""),  # below the database's directory
        ("hdfs://src:8020/tables/t/2026", ""),  # below the table's
        ("hdfs://src:8020/tables/t", ""),
        ("hdfs://src:8020/other.db/.repl/170-0/p=1", ""),
        ("", ""),
    ],
)
def test_a_partition_outside_of_its_external_table_keeps_its_path(location: str, expected: str) -> None:
    """A24: as Hive's, below ``hive.repl.replica.external.table.base.dir``."""
    mapping = replace(MAPPING, external_root="hdfs://dst:8020/ext/")
    part = Partition(values=["1"], sd=StorageDescriptor(location=location))
    of = table(location="hdfs://src:8020/tables/t", tableType="EXTERNAL_TABLE")
    assert mapping.partition_location(part, of) == expected
    assert mapping.new_partition(part, of, "t", 1).sd.location == expected
    assert mapping.partition_location(part, table()) == ""  # a managed table's
    assert MAPPING.partition_location(part, of) == ""  # the policy names no place for it


@pytest.mark.parametrize(("name", "place"), [("t", "t"), ("c/b", "c-47-b"), ("..", "-46--46-")])
def test_data_of_a_replica_that_is_a_source_goes_to_hives_plain_path(name: str, place: str) -> None:
    """Such a replica has it below ``.repl``; the name of its table may mean something in a path."""
    staged = table(name, "hdfs://src:8020/w/sales.db/.repl/170-0")
    assert MAPPING.table_location(staged) == f"hdfs://dst:8020/t/copy.db/{place}"


def test_the_image_of_a_table() -> None:
    source = table(
        parameters={"repl.last.id": "3", "hive.repl.ckpt.key": "x", "hive_replication.source": "evil", "colour": "blue"}
    )
    image = MAPPING.new_table(source, 17)
    assert (image.dbName, image.tableName, image.catName) == ("copy", "t", None)
    assert image.parameters == {"colour": "blue", "hive_replication.source": "uuid/sales", "repl.last.id": "17"}
    assert image.sd.serdeInfo.parameters == {"path": "hdfs://dst:8020/t/copy.db/t"}
    assert source.parameters["repl.last.id"] == "3"
    renamed = replace(MAPPING, source_table="t", target_table="u").new_table(source, 17)
    assert (renamed.tableName, renamed.sd.serdeInfo.parameters["path"]) == ("u", "hdfs://dst:8020/t/copy.db/u")


def test_the_image_of_a_partition() -> None:
    sd = StorageDescriptor(location="hdfs://src:8020/w/sales.db/t/p=1", serdeInfo=SerDeInfo(parameters={}))
    image = MAPPING.new_partition(
        Partition(values=["1"], dbName="sales", tableName="t", sd=sd, parameters=None), table(), "u", 17
    )
    assert (image.dbName, image.tableName, image.values) == ("copy", "u", ["1"])
    assert image.parameters == {"hive_replication.source": "uuid/sales", "repl.last.id": "17"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", ""),
        ("blue", "blue"),
        ("hdfs://other:8020/x", "hdfs://other:8020/x"),
        ("hdfs://src:8020/w/sales.db", "hdfs://dst:8020/t/copy.db"),
        ("hdfs://src:8020/w/sales.db/t/schema.avsc", "hdfs://dst:8020/t/copy.db/t/schema.avsc"),
        ("hdfs://src:8020/schemas/a.avsc", "hdfs://dst:8020/t/copy.db/.repl/external/schemas/a.avsc"),
        ("hdfs:///w/sales.db/t/x", "hdfs://dst:8020/t/copy.db/t/x"),
        ("s3a:///x", "s3a:///x"),
        ("hdfs://src-old:8020/x", "hdfs://dst:8020/t/copy.db/.repl/external/x"),
    ],
)
def test_parameters_that_hold_paths(value: str, expected: str) -> None:
    assert MAPPING.value(value) == expected


def test_a_directory_of_its_own_is_followed() -> None:
    old, new = "hdfs://src:8020/lake/t", "hdfs://dst:8020/t/copy.db/t"
    assert MAPPING.value(f"{old}/x", old, new) == f"{new}/x"
    assert MAPPING.value(old, old, new) == new
    assert MAPPING.value(f"{old}x", old, new) == "hdfs://dst:8020/t/copy.db/.repl/external/lake/tx"


def test_pointing_at_a_directory() -> None:
    sd = StorageDescriptor(location="old", serdeInfo=SerDeInfo(parameters={"path": "old", "other": "old"}))
    point_at(sd, "new")
    assert (sd.location, sd.serdeInfo.parameters) == ("new", {"path": "new", "other": "old"})
    plain = StorageDescriptor(serdeInfo=SerDeInfo(parameters={}))
    point_at(plain, "new")
    assert (plain.location, plain.serdeInfo.parameters) == ("new", {})
    point_at(StorageDescriptor(), None)


paths = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["hdfs://src:8020", "hdfs://src-old:8020"]),
        st.sampled_from(
            ["", "/", "/w", "/w/sales.db", "/w/sales.db/", "/w/sales.db/t", "/w/sales.db/t/p=1", "/w/sales.dbx", "/x/t"]
        ),
        st.sampled_from(["", "/", "/deep", "/a b%20#"]),
    ),
)
values = paths | st.text(max_size=5)


@given(
    paths | st.just(""),
    st.dictionaries(st.sampled_from(["path", "avro.schema.url", "note"]), values, max_size=3),
    st.sampled_from(["MANAGED_TABLE", "EXTERNAL_TABLE"]),
    st.sampled_from(["", "hdfs://dst:8020/ext"]),
)
def test_nothing_under_a_source_root_stays(location: str, parameters: dict[str, str], kind: str, external: str) -> None:
    mapping = replace(MAPPING, external_root=external)
    source = table(location=location, parameters=parameters, tableType=kind)
    source.sd.serdeInfo.parameters, source.sd.parameters = dict(parameters), dict(parameters)
    image = mapping.new_table(source, 1)
    point_at(image.sd, mapping.table_location(source))
    assert "hdfs://src" not in repr(image)
    part = Partition(values=["1"], sd=source.sd, parameters=dict(parameters))
    image = mapping.new_partition(part, table(), "t", 1)
    point_at(image.sd, f"{mapping.table_location(source)}/p=1")
    assert "hdfs://src" not in repr(image)


SCHEMAS = "hdfs://dst:8020/t/copy.db/.repl/external/.schemas/of=copy-62867a2a"


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("hdfs://src:8020/schemas/a.avsc", f"{SCHEMAS}/at=src_8020/schemas/a.avsc"),
        ("hdfs://src:8020/w/sales.db/t/_s/a.avsc", f"{SCHEMAS}/at=src_8020/w/sales.db/t/_s/a.avsc"),
        ("/schemas/a.avsc", f"{SCHEMAS}/at=src_8020/schemas/a.avsc"),
        ("hdfs:///schemas/a.avsc", f"{SCHEMAS}/at=src_8020/schemas/a.avsc"),
        ("hdfs:/schemas/a.avsc", f"{SCHEMAS}/at=src_8020/schemas/a.avsc"),
        ("hdfs://src:8020/w/a/.schemas/v.avsc", f"{SCHEMAS}/at=src_8020/w/a/.schemas/v.avsc"),
        ("hdfs://src:8020/w/b/.schemas/v.avsc", f"{SCHEMAS}/at=src_8020/w/b/.schemas/v.avsc"),
        ("hdfs://src:8020/.schemas/of=x-1/at=a/v.avsc", f"{SCHEMAS}/at=src_8020/.schemas/of=x-1/at=a/v.avsc"),
        ("http://registry/a", "http://registry/a"),
        ("none", "none"),
    ],
)
def test_files_with_schemas_have_a_place_apart_from_all_data(uri: str, place: str) -> None:
    source = table(parameters={"avro.schema.url": uri})
    source.sd.serdeInfo.parameters["Avro.Schema.Url"] = uri
    image = MAPPING.new_table(source, 1)
    assert (image.parameters["avro.schema.url"], image.sd.serdeInfo.parameters["Avro.Schema.Url"]) == (place, place)
    whole = qualified(uri, "hdfs://src:8020/")
    assert MAPPING.schema_files(source) == ({place: whole} if place != uri else {})
    assert replace(MAPPING, metadata_only=True).schema_files(source) == {}
    outside = replace(MAPPING, external_root="hdfs://dst:8020/ext").schema_files(source)
    assert all(one.startswith("hdfs://dst:8020/ext/.schemas/") for one in outside)


REPLICA = replace(MAPPING, of_replica=True, source_managed="hdfs://src:8020/m/sales.db")
OF_SALES = f"of=sales-{crc32(MAPPING.source_location.encode()):08x}"


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("w/sales.db/.repl/external/.schemas/s/a", "at=src_8020/s/a"),
        ("w/sales.db/.repl/external/.schemas/of=x-1/at=a/s/a", "at=a/s/a"),
        (f"m/sales.db/.repl/external/.schemas/{OF_SALES}/at=a/s/a", "at=a/s/a"),
        (f"ext/.schemas/{OF_SALES}/at=a/s/a", "at=a/s/a"),
        (f"ext/.schemas/{OF_SALES}/at=a/w/a/.schemas/v.avsc", "at=a/w/a/.schemas/v.avsc"),
        (f"ext/.schemas/{OF_SALES}/at=a/.schemas/{OF_SALES}/at=b/s/a", f"at=a/.schemas/{OF_SALES}/at=b/s/a"),
    ],
)
def test_schemas_of_a_replica_that_is_a_source_keep_the_place_of_their_first_source(uri: str, place: str) -> None:
    source = table(parameters={"avro.schema.url": f"hdfs://src:8020/{uri}"})
    assert REPLICA.schema_files(source) == {f"{SCHEMAS}/{place}": f"hdfs://src:8020/{uri}"}


@pytest.mark.parametrize(
    "own",
    [
        "w/sales.db/mine/.schemas/of=x",
        "w/sales.db/mine/.repl/external/.schemas",
        "w/x.db/.repl/external/.schemas",
        "a/.schemas/of=x-1",
    ],
)
@pytest.mark.parametrize("mapping", [MAPPING, REPLICA], ids=["of a source", "of a replica"])
def test_a_user_of_the_source_replaces_no_schema_of_another_table(mapping: NameMapping, own: str) -> None:
    """The file of a path that looks like one of replication had the place of another's, wherever it lay."""
    paths = (f"{own}/w/sales.db/schemas/orders.avsc", f"{own}/at=src_8020/w/sales.db/schemas/orders.avsc")
    for path in (*paths, "w/sales.db/schemas/orders.avsc"):
        source = table(parameters={"avro.schema.url": f"hdfs://src:8020/{path}"})
        assert mapping.schema_files(source) == {f"{SCHEMAS}/at=src_8020/{path}": f"hdfs://src:8020/{path}"}


def test_schemas_of_one_path_have_a_place_for_each_store_and_for_each_database_that_shares_a_root() -> None:
    """The second replaced the first, whose tables showed wrong rows."""
    first = replace(MAPPING, external_root="hdfs://dst:8020/ext")
    others = (
        replace(first, source_location="hdfs://b:8020/w/sales.db", source_roots=("hdfs://b:8020/",), target_database="copy_b"),
        replace(first, target_location="hdfs://dst:8020/other/copy.db"),  # of another metastore, and a source named alike
        replace(first, source_location="hdfs://src-old:8020/w/sales.db"),
        replace(first, source_location="s3a://src_8020/w/sales.db", source_roots=("s3a://src_8020/",)),
    )
    places: set[str] = set()
    for mapping in (first, *others):
        image = mapping.new_table(table(parameters={"avro.schema.url": "/schemas/orders.avsc"}), 1)
        places.add(image.parameters["avro.schema.url"])
    assert len(places) == 5


def test_the_place_of_a_schema_stays_when_a_replica_goes_back_and_forth() -> None:
    back = replace(MAPPING, source_location=MAPPING.target_location, target_location="hdfs://src:8020/w/sales.db")
    back = replace(back, source_roots=("hdfs://dst:8020/",), source_database="copy", target_database="sales", of_replica=True)

    def there(uri: str, by: NameMapping) -> str:
        return by.new_table(table(parameters={"avro.schema.url": uri}), 1).parameters["avro.schema.url"]

    for root, root_back in (("", ""), ("hdfs://dst:8020/ext", "hdfs://src:8020/ext")):
        forth, again = replace(MAPPING, external_root=root), replace(back, external_root=root_back)
        first = there("hdfs://src:8020/schemas/a", forth)
        assert there(there(first, again), replace(forth, of_replica=True)) == first


def test_locations_of_skewed_values_do_not_stay() -> None:
    skewed = SkewedInfo(["a"], [["1"]], {("1",): "hdfs://src:8020/w/sales.db/t/a=1"})
    source = table()
    source.sd.skewedInfo = skewed
    image = MAPPING.new_table(source, 1)
    point_at(image.sd, "hdfs://dst:8020/t/copy.db/t")
    assert image.sd.skewedInfo.skewedColValueLocationMaps == {("1",): "hdfs://dst:8020/t/copy.db/t/a=1"}
    sd = StorageDescriptor(location="hdfs://src:8020/w/sales.db/t/p=1", skewedInfo=skewed)
    part = MAPPING.new_partition(Partition(values=["1"], sd=sd), table(), "t", 1)
    assert "hdfs://src" not in repr(part.sd.skewedInfo)


def test_directories_of_skewed_values_go_with_the_data() -> None:
    """With ``hive.optimize.listbucketing`` a query of such a value reads that directory alone, which was the old one."""
    values = {("1", "a b"): "hdfs://src:8020/w/sales.db/t/p=1/a=1/b=a b", ("2", "c"): "hdfs://src:8020/lake/a=2/b=c"}
    sd = StorageDescriptor(location="hdfs://src:8020/w/sales.db/t/p=1", skewedInfo=SkewedInfo(["a", "b"], [], values))
    image = MAPPING.new_partition(Partition(values=["1"], sd=sd), table(), "t", 1)
    for place in ("hdfs://dst:8020/t/copy.db/t/p=1", "hdfs://dst:8020/t/copy.db/.repl/9-0/p=1", "hdfs://dst:8020/x/"):
        point_at(image.sd, place)
        assert image.sd.skewedInfo.skewedColValueLocationMaps == {
            ("1", "a b"): f"{place.rstrip('/')}/a=1/b=a b",
            ("2", "c"): "hdfs://dst:8020/t/copy.db/.repl/external/lake/a=2/b=c",
        }
    point_at(image.sd, None)
    assert len(values) == 2


def test_a_replica_without_data_claims_no_statistics() -> None:
    """A21: Hive answers COUNT(*) from them."""
    told = {
        "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}',
        "numRows": "3",
        "numFiles": "1",
        "totalSize": "6",
        "rawDataSize": "3",
        "spark.sql.statistics.numRows": "3",
        "colour": "blue",
    }
    table = Table("t", "db", sd=StorageDescriptor(location=""), parameters=told, tableType="MANAGED_TABLE")
    with_data, without = (replace(MAPPING, metadata_only=value).new_table(table, 7).parameters for value in (False, True))
    assert told.items() <= with_data.items()
    assert {key for key in without if key in told} == {"colour"}


def test_a_transactional_replica_claims_no_statistics() -> None:
    """A commit changes no description, so that Hive would answer COUNT(*) from what a new table claims, which has no rows."""
    told = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}', "numRows": "0"}
    sd = StorageDescriptor(location="")
    transactional = Table("t", "db", sd=sd, parameters={**told, "transactional": "true"}, tableType="MANAGED_TABLE", writeId=0)
    plain = Table("t", "db", sd=sd, parameters=told, tableType="MANAGED_TABLE")
    part = Partition(values=["1"], sd=sd, parameters=told)
    for of, claims in ((transactional, False), (plain, True)):
        for image in (MAPPING.new_table(of, 7), MAPPING.new_partition(part, of, "t", 7)):
            assert ("COLUMN_STATS_ACCURATE" in image.parameters) is claims
            assert image.parameters["numRows"] == "0"
