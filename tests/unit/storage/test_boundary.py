"""What of the source may be read, and where nothing of it may go."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.dump.functions import with_stores
from hive_replication.dump.listing import Lister
from hive_replication.dump.source_boundary import SourceBoundary, not_its_own, source_boundary
from hive_replication.events.files import FileRef
from hive_replication.metastore.spark_tables import at_its_data
from hive_replication.metastore.types import Database, Function, ResourceUri, SerDeInfo, StorageDescriptor, Table
from hive_replication.policy import Policy
from hive_replication.storage import FileChecksum, FileStatus
from hive_replication.storage.boundary import EVERYWHERE, Boundary, qualified

WAREHOUSE = "hdfs://src:8020/warehouse"
DB = f"{WAREHOUSE}/sales.db"
SETTINGS = {
    "hive.metastore.warehouse.dir": "/warehouse",
    "hive.metastore.warehouse.external.dir": "/external",
    "hive.repl.cmrootdir": "/cm",
}
RETIRED = "17641944001230a1b2c3d"  # by a load; an undo points its tables there again
BOUNDARY = Boundary("source.paths", (DB, "hdfs://src:8020/lake"))


def policy(*paths: str, **databases: str) -> Policy:
    return Policy.model_validate(
        {
            "source": {"metastore": "thrift://s:1", "roots": [{"uri": "hdfs://src:8020/"}], "paths": paths},
            "target": {"metastore": "thrift://t:1", "roots": [{"uri": "hdfs://dst:8020/"}]},
            "dump_root": "hdfs://dst:8020/dumps",
            "databases": databases or {"sales": "sales"},
        }
    )


def source(*paths: str, name: str = "sales", location: str = DB, **parameters: str) -> SourceBoundary:
    database = Database(name=name, locationUri=location, parameters=parameters)
    return source_boundary(policy(*paths), name, database, lambda key, default: SETTINGS.get(key, default))


def table(location: str = f"{DB}/t", parameters: dict[str, str] | None = None, **serde: str) -> Table:
    sd = StorageDescriptor(location=location, serdeInfo=SerDeInfo(parameters=serde), parameters={})
    return Table(tableName="t", dbName="sales", tableType="EXTERNAL_TABLE", sd=sd, parameters=parameters or {})


@pytest.mark.parametrize("uri", [DB, f"{DB}/t", f"{DB}/%2Erepl/t", "HDFS://SRC:8020/lake/x", f"{DB}/.REPL/t", f"{DB}/x.repl"])
def test_directories_of_the_policy_are_allowed(uri: str) -> None:
    assert BOUNDARY.why_outside(uri) == ""


@pytest.mark.parametrize(
    "uri", ["hdfs://src:8020/secret", f"{DB}x/t", "hdfs://other:8020/lake/x", f"{DB}/../hr.db/t", "file://evil/lake", "/lake", ""]
)
def test_all_others_are_not(uri: str) -> None:
    assert BOUNDARY.why_outside(uri) != ""


def test_a_local_file_names_no_host() -> None:
    """``file://lake/x`` was read at ``./lake/x``."""
    local = Boundary("source.paths", ("file:///lake", "file://lake"))
    assert "names the host 'lake': local files have none" in local.why_outside("file://lake/x")


@pytest.mark.parametrize("uri", ["har://hdfs-src:8020/warehouse/sales.db/t/ds=1/data.har", "HAR://hdfs-src/warehouse/t.har"])
def test_an_archive_is_told_from_what_the_policy_could_allow(uri: str) -> None:
    """It was held with the advice to add its directory to the policy, which has no such store."""
    assert "UNARCHIVE the partition at the source, then repair it" in BOUNDARY.why_outside(uri)
    assert EVERYWHERE.why_outside(uri) == ""


@pytest.mark.parametrize("boundary", [BOUNDARY, EVERYWHERE], ids=["data", "no data"])
@pytest.mark.parametrize(
    "uri", [f"{DB}/.repl/journal/x.done", f"{DB}/.repl", "HDFS://Src:8020/lake/.repl/retired/x", f"{DB}/.repl/1-0"]
)
def test_what_is_replications_own_is_no_data(boundary: Boundary, uri: str) -> None:
    assert "replication's own" in boundary.why_outside(uri)


@pytest.mark.parametrize(
    ("place", "data"),
    [("12-0", True), ("12-0-1/ds=1/f", True), ("external/lake", True), ("functions/db/f/3", True)]
    + [(f"retired/{RETIRED}/t", True), (f"retired/{RETIRED}/12-0/ds=1/f", True)]
    + [(place, False) for place in ("journal/x", "listing", "rates.json", "12-0/.repl/journal", "x12-0")]
    + [(f"retired/{place}", False) for place in ("1/t", RETIRED, f"{RETIRED}/", f"x{RETIRED}/t", f"{RETIRED}/.repl/journal")],
)
def test_a_replica_that_is_a_source_itself_has_data_there(place: str, *, data: bool) -> None:
    uri = f"{DB}/.repl/{place}"
    assert source(**{"hive_replication.source": "x"}).data.holds(uri) == data
    assert not source().data.holds(uri)


@pytest.mark.parametrize(
    ("thing", "named"),
    [
        (table("hdfs://src:8020/secret/hr"), "the location of t: hdfs://src:8020/secret/hr lies outside"),
        (table(path="hdfs://src:8020/secret/hr"), "the parameter path of t"),
        (table(parameters={"avro.schema.url": "file:///etc/passwd"}), "the parameter avro.schema.url of t: file:///etc/passwd"),
        (table(parameters={"AVRO.schema.URL": "/secret/x"}), "hdfs://src:8020/secret/x lies outside"),
        (table(f"{DB}/.repl/journal/1.done"), "replication's own"),
    ],
)
def test_objects_are_held_with_a_sentence_that_says_what_to_change(thing: Table, named: str) -> None:
    reason = source().why_outside(thing)
    assert named in reason
    assert "source.paths" in reason or "replication's own" in reason


def test_objects_of_the_policy_pass() -> None:
    boundary = source("hdfs://src:8020/lake", "http://repository/udfs")
    assert boundary.why_outside(table()) == ""
    assert boundary.why_outside(table("hdfs://src:8020/lake/x", {"avro.schema.url": "none"})) == ""
    assert boundary.why_outside(table("hdfs://src:8020/external/sales.db/t")) == "", "the warehouse of external tables"
    view = Table(tableName="v", dbName="sales", tableType="VIRTUAL_VIEW", sd=StorageDescriptor(), parameters={})
    assert boundary.why_outside(view) == ""
    assert boundary.why_outside(Function(functionName="f", resourceUris=[ResourceUri(uri="http://repository/udfs/f.jar")])) == ""


@pytest.mark.parametrize("uri", ["http://elsewhere/f.jar", "file:///tmp/f.jar", "hdfs://src:8020/secret/f.jar", "ivy://a:b:1"])
def test_resources_of_functions_are_objects_too(uri: str) -> None:
    assert "the resource of the function f" in source().why_outside(
        Function(functionName="f", resourceUris=[ResourceUri(uri=uri)])
    )


@pytest.mark.parametrize(
    ("path", "whole"),
    [
        ("/x", "hdfs://src:8020/x"),
        ("hdfs:///x/y", "hdfs://src:8020/x/y"),
        ("hdfs:/x", "hdfs://src:8020/x"),
        ("HDFS:///x", "hdfs://src:8020/x"),
        *((same, same) for same in ("hdfs://other/x", "hdfs:////x", "s3a:///x", "file:///x", "hdfs://", "x", "")),
    ],
)
def test_paths_that_name_no_store_lie_on_that_of_the_database(path: str, whole: str) -> None:
    assert qualified(path, DB) == whole
    assert qualified(path, "") == path
    assert qualified("file:///x", "file:///w") == "file:///x"


@pytest.mark.parametrize("allowed", ["hdfs:///udfs", "hdfs://src:8020/udfs"])
def test_resources_and_schemas_may_name_no_store(allowed: str) -> None:
    """``USING JAR 'hdfs:///udfs/f.jar'``, as Hive's manual has it, was held whatever the policy named."""
    made = Function(functionName="f", resourceUris=[ResourceUri(uri="hdfs:///udfs/f.jar"), ResourceUri(uri="/udfs/g.jar")])
    named = table(parameters={"avro.schema.url": "hdfs:///udfs/a.avsc"})
    assert [source(allowed).why_outside(one) for one in (made, named)] == ["", ""]
    assert "hdfs://src:8020/udfs/a.avsc lies outside" in source().why_outside(named)
    assert [one.uri for one in with_stores(made, DB).resourceUris or ()] == ["hdfs://src:8020/udfs/f.jar", "/udfs/g.jar"]


@pytest.mark.parametrize(("location", "path"), [(f"{DB}/t-__PLACEHOLDER__", "hdfs:///warehouse/sales.db/t"), (f"{DB}/t", "")])
def test_the_data_of_a_table_of_spark_may_name_no_store(location: str, path: str) -> None:
    """``LOCATION 'hdfs:///w/t'`` of a datasource table: the load took it, and its files were not listed."""
    assert listed(at_its_data(table(location, {"spark.sql.sources.provider": "orc"}, path=path))) == ("", 1)


@pytest.mark.parametrize("location", ["hdfs:///warehouse/sales.db/t", "/warehouse/sales.db/t", "hdfs:/lake/t"])
def test_a_location_that_names_no_store_is_held_since_it_is_not_listed(location: str) -> None:
    """As ``SET LOCATION`` may leave it: its replica was empty."""
    reason, files = listed(table(location))
    assert (f"set it to {qualified(location, DB)} at the source" in reason, files) == (True, 0)


@pytest.mark.parametrize("nested", [False, True])
def test_what_may_not_be_read_is_named_in_its_place(*, nested: bool) -> None:
    """It was dumped as if it was empty, and held only by what the policy said when it was loaded."""
    storage: Any = SimpleNamespace()
    secret = "hdfs://src:8020/secret/hr"
    assert Lister(storage, boundary=BOUNDARY, holds=True).files(f"{secret}/", nested=nested) == (FileRef.barred(secret),)
    assert Lister(storage, boundary=BOUNDARY).files(secret) == ()
    assert Lister(storage, boundary=BOUNDARY, holds=True, nothing=True).files(secret) == ()
    named = FileRef.decode(FileRef.barred(secret).encode())
    assert named.is_barred
    assert not named.is_missing_directory, "which a policy may take for an empty one"
    assert not FileRef.missing_directory(secret).is_barred


def listed(one: Table) -> tuple[str, int]:
    """Why a table is held, and how many files a dump has of it."""
    storage: Any = SimpleNamespace(
        files=lambda at: [FileStatus(f"{at}/f", 1, False, 0)], checksum=lambda _: FileChecksum("MD5", "0a")
    )
    allowed = source("hdfs:///lake")
    files = Lister(storage, boundary=allowed.data, holds=True).files(one.sd.location)
    return allowed.why_outside(one), sum(not file.is_barred for file in files)


def test_the_default_database_does_not_hold_the_other_ones() -> None:
    boundary = source(name="default", location=WAREHOUSE)
    assert boundary.why_outside(table(f"{WAREHOUSE}/t")) == ""
    assert boundary.why_outside(table(f"{WAREHOUSE}/hr.db/salaries")) != ""


@pytest.mark.parametrize("location", [WAREHOUSE, "hdfs://src:8020/external", "hdfs://src:8020/external/"])
def test_the_default_database_has_both_warehouses_whichever_it_names(location: str) -> None:
    """Hive 4 puts its managed tables in the one and its external ones in the other; one kind was held for good."""
    boundary = source(name="default", location=location)
    for warehouse in (WAREHOUSE, "hdfs://src:8020/external"):
        assert boundary.why_outside(table(f"{warehouse}/t")) == ""
        assert "source.paths" in boundary.why_outside(table(f"{warehouse}/hr.db/t"))
    assert set(boundary.directories) == {location.rstrip("/"), WAREHOUSE, "hdfs://src:8020/external"}


def test_encryption_zones_are_looked_for_in_both_directories_of_a_database() -> None:
    assert source().directories == (DB, "hdfs://src:8020/external/sales.db")


@pytest.mark.parametrize(
    ("location", "secret"),
    [
        ("hdfs://src:8020/", f"{WAREHOUSE}/hr.db/salaries"),
        ("hdfs://src:8020", "hdfs://src:8020/lake"),
        (WAREHOUSE, f"{WAREHOUSE}/hr.db/salaries"),
        ("hdfs://SRC:8020/external/", "hdfs://src:8020/external/salaries"),
        (f"{WAREHOUSE}/hr.db", f"{WAREHOUSE}/hr.db/salaries"),
        (f"{WAREHOUSE}/hr.db/salaries", f"{WAREHOUSE}/hr.db/salaries/ds=1"),
        ("hdfs://src:8020/cm", "hdfs://src:8020/cm/salaries_00ff"),
        ("s3a://bucket/", "s3a://bucket/salaries"),
    ],
)
@pytest.mark.parametrize("managed", [False, True])
def test_who_may_set_a_databases_location_does_not_choose_what_is_read(location: str, secret: str, *, managed: bool) -> None:
    named = {"managedLocationUri": location, "locationUri": DB} if managed else {"locationUri": location}
    database = Database(name="sales", parameters={}, **named)

    def setting(key: str, default: str) -> str:
        return SETTINGS.get(key, default)

    assert "source.paths" in source_boundary(policy(), "sales", database, setting).why_outside(table(secret))
    (reason,) = not_its_own(policy(), database, setting)
    assert location.rstrip("/") in reason
    allowed = policy(location)
    assert source_boundary(allowed, "sales", database, setting).why_outside(table(secret)) == ""
    assert not_its_own(allowed, database, setting) == []


@pytest.mark.parametrize(
    ("name", "location"),
    [
        ("sales", DB),
        ("sales", "hdfs://src:8020/custom/x"),
        ("sales", "hdfs://src:8020/warehouses"),
        ("sales", f"{WAREHOUSE}/sales"),
        ("sales", f"{DB}/now"),
        ("sales", "hdfs://src:8020/external/sales.db"),
        ("default", WAREHOUSE),
        ("default", "hdfs://src:8020/external"),
    ],
)
def test_a_directory_that_is_nobody_elses_is_the_databases_own(name: str, location: str) -> None:
    assert source(name=name, location=location).why_outside(table(f"{location}/t")) == ""


@pytest.mark.parametrize(("location", "warehouse"), [("s3a://bucket", "s3a://bucket/"), ("s3a://Bucket/", "s3a://bucket")])
def test_a_bucket_that_is_the_warehouse_is_the_default_databases_own(location: str, warehouse: str) -> None:
    """All of its objects were held, as in a whole store."""

    def setting(key: str, default: str) -> str:
        return warehouse if key == "hive.metastore.warehouse.dir" else default

    database = Database(name="default", locationUri=location, parameters={})
    assert not_its_own(policy(), database, setting) == []
    boundary = source_boundary(policy(), "default", database, setting)
    assert boundary.why_outside(table("s3a://bucket/t")) == ""
    assert "source.paths" in boundary.why_outside(table("s3a://bucket/hr.db/salaries"))
    assert not_its_own(policy(), Database(name="sales", locationUri=location, parameters={}), setting) != []


def test_no_setting_is_asked_for_of_a_directory_that_hive_chose() -> None:
    def setting(key: str, _: str) -> str:
        raise AssertionError(key)

    boundary = source_boundary(policy(), "sales", Database(name="sales", locationUri=DB, parameters={}), setting)
    assert boundary.why_outside(table()) == ""


@pytest.mark.parametrize(("value", "path"), [(None, ".cmroot"), ("keep/deleted", "keep/deleted")])
def test_a_cmroot_of_an_encryption_zone_is_where_the_metastore_puts_it(value: str | None, path: str) -> None:
    """All managed tables in zones were held under another path than the default."""
    settings = SETTINGS | ({"hive.repl.cm.encryptionzone.rootdir": value} if value else {})
    database = Database(name="sales", locationUri=DB, parameters={})
    boundary = source_boundary(policy(), "sales", database, lambda key, default: settings.get(key, default))

    def why(root: str) -> str:
        return boundary.why_files_outside((FileRef(f"{DB}/t/f", "00", root),))

    assert why(f"{DB}/t/{path}") == why("hdfs://src:8020/cm") == ""
    assert "source.paths" in why(f"{DB}/t/other")
    assert "source.paths" in why(f"{DB}/t/x{path}")


def test_files_are_looked_at_one_by_one() -> None:
    boundary = source()
    good = FileRef(f"{DB}/t/f", "00", "hdfs://src:8020/cm")
    assert boundary.why_files_outside((good,)) == ""
    assert "hdfs://src:8020/secret/f" in boundary.why_files_outside((good, FileRef("hdfs://src:8020/secret/f", "00")))
    assert "the cmroot" in boundary.why_files_outside((good, FileRef(f"{DB}/t/g", "00", "hdfs://src:8020/secret")))
    alone = source("hdfs://src:8020/lib/a.jar")
    assert alone.why_files_outside((FileRef("hdfs://src:8020/lib/a.jar"),)) == ""
    assert alone.why_files_outside((FileRef("hdfs://src:8020/lib/a.jar"), FileRef("hdfs://src:8020/lib/b.jar"))) != ""


def test_metadata_alone_may_be_of_any_place_but_replications_own() -> None:
    bare = policy().model_copy(update={"metadata_only": True})
    boundary = source_boundary(bare, "sales", None, None)
    assert boundary.why_outside(table("hdfs://src:8020/anywhere")) == ""
    assert boundary.why_outside(table(f"{DB}/.repl/journal/x")) != ""
