"""Policies without data, and dumps of all databases: scenarios S011, S022, S023, S029, S082."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from hive_replication import dump
from hive_replication.connect import Connection
from hive_replication.drift import DriftScan
from hive_replication.dump.format.record_types import DumpResult
from hive_replication.dump.source import SOURCE_FOR
from hive_replication.errors import BadRequest
from hive_replication.lag import lag
from hive_replication.metastore.types import copy_of
from hive_replication.statements import EVERY
from hive_replication.verify.database import compare_database
from resources.embedded.hive import HiveDriver
from tests.scenarios.support import Site, new_site

pytestmark = [pytest.mark.servers, pytest.mark.hive]


@dataclass(frozen=True)
class Sites:
    """Two databases under one policy without data, and their two rounds of dumps."""

    one: Site
    other: Site
    rounds: tuple[list[DumpResult], list[DumpResult]]


@pytest.fixture(scope="module")
def sites(connection: Connection, hive3: HiveDriver) -> Sites:
    plain = [new_site(connection, hive3) for _ in range(2)]
    databases = {site.database: site.database for site in plain}
    one, other = (site.with_policy(metadata_only=True, databases=databases) for site in plain)
    one.sql(
        "CREATE TABLE plain (a INT)",
        "CREATE TABLE parts (a INT) PARTITIONED BY (p INT)",
        "CREATE TABLE truncated (a INT)",
        "CREATE TABLE dropped (a INT)",
        "CREATE VIEW seen AS SELECT a FROM plain",
    )
    other.sql("CREATE TABLE plain (a INT)")
    one.insert("plain", "1\n")
    one.insert("parts", "1\n", "p=1")
    handled = copy_of(one.table("plain"))
    handled.tableName, handled.sd.location = "handled", None
    handled.parameters = {"storage_handler": "org.apache.hadoop.hive.hbase.HBaseStorageHandler"}
    connection.source.metastore.create_table(handled)
    first = dump_all(one)
    one.insert("plain", "2\n")
    one.insert("parts", "2\n", "p=2")
    one.sql(
        "ALTER TABLE plain ADD COLUMNS (b STRING)",
        "ALTER TABLE parts SET TBLPROPERTIES ('colour'='blue')",
        "ALTER TABLE parts DROP PARTITION (p=1)",
        "TRUNCATE TABLE truncated",
        "DROP TABLE dropped",
        "CREATE TABLE fresh (a INT) PARTITIONED BY (p INT)",
    )
    one.insert("fresh", "1\n", "p=1")
    one.sql("ALTER TABLE fresh RENAME TO renamed")
    return Sites(one, other, (first, dump_all(one, min(site.applied() or 0 for site in (one, other)))))


def dump_all(site: Site, start: int | None = None) -> list[DumpResult]:
    """``REPL DUMP *``, each database loaded."""
    ends = site.connection
    dumps = [dump(ends, name, from_evid=start) for name in sorted(ends.source.policy.databases)]
    for one in dumps:
        assert site.load(one.directory).held == ()
    return dumps


def test_s011_metadata_only_all_dbs(sites: Sites) -> None:
    """All databases of the policy are dumped, twice; each dump has its ack."""
    storage = sites.one.connection.target.storage
    for dumps in sites.rounds:
        assert [dump.header.scope.database for dump in dumps] == sorted([sites.one.database, sites.other.database])
        assert all(storage.exists(f"{dump.directory}/_finished_dump") for dump in dumps)
        assert sum(dump.files + dump.partitions for dump in dumps) == 0
    store = sites.one.connection.store
    types = {record.notification.type for dump in sites.rounds[1] for record in store.open(dump.directory).events()}
    assert types == {"CREATE_TABLE", "ALTER_TABLE", "DROP_TABLE"}


def test_s022_non_repl_db_metadata_only(sites: Sites) -> None:
    """The source databases are not marked, and yet an incremental dump followed."""
    for site in (sites.one, sites.other):
        database = site.connection.source.metastore.database(site.database)
        assert database is not None
        assert SOURCE_FOR not in (database.parameters or {})
        assert site.applied() is not None
    ends = {dump.header.scope.database: dump.last_evid for dump in sites.rounds[1]}
    assert (sites.one.applied(), sites.other.applied()) == (ends[sites.one.database], ends[sites.other.database])


def test_s023_warehouse_dump_needs_target(sites: Sites) -> None:
    """``*`` can be dumped, but is loaded database by database: the directory above names none, and is refused."""
    ends = sites.one.connection
    events = sites.one.target_events()
    for directory in (ends.source.policy.dump_root, sites.rounds[0][0].directory.rpartition("/")[0]):
        with pytest.raises(BadRequest, match="incomplete"):
            sites.one.load(directory)
    assert EVERY not in ends.target.metastore.databases()
    assert sites.one.target_events() == events


def test_s029_non_native_metadata_only(sites: Sites) -> None:
    """A table of a storage handler is replicated where no data is."""
    ours, theirs = (sites.one.table("handled", source=side) for side in (True, False))
    assert ours.parameters["storage_handler"] == theirs.parameters["storage_handler"]
    assert [(column.name, column.type) for column in ours.sd.cols] == [(c.name, c.type) for c in theirs.sd.cols]


def test_s082_incremental_metadata_only(sites: Sites) -> None:
    """Creations, alters, renames and drops arrive, never rows or partitions."""
    site = sites.one
    assert site.tables() == ["handled", "parts", "plain", "renamed", "seen", "truncated"] == site.tables(source=True)
    assert [column.name for column in site.table("plain", source=False).sd.cols] == ["a", "b"]
    assert site.table("parts", source=False).parameters["colour"] == "blue"
    assert site.rows("plain", source=True) == ["1", "2"]
    assert [site.rows(name) for name in ("plain", "truncated")] == [[], []]
    assert [site.partitions(name) for name in ("parts", "renamed")] == [[], []]
    ends = site.connection
    compared = list(compare_database(ends.source, ends.target, site.database))
    assert len(compared) == 6
    assert [comparison for comparison in compared if comparison.differences] == []


def test_statistics_of_rows_are_not_replicated(sites: Sites) -> None:
    """A21: Hive answers COUNT(*) from what a table claims, and the replica has no rows; neither in a window nor by a repair."""
    site = sites.other
    site.sql("CREATE TABLE counted (a INT)")
    site.step()
    table = site.table("counted")
    table.parameters |= {"numRows": "3", "totalSize": "6", "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}
    site.connection.source.metastore.alter_table(site.database, "counted", table)
    site.step()
    for _ in range(2):
        found = site.table("counted", source=False).parameters
        assert {found.get(key, "0") for key in ("numRows", "totalSize")} == {"0"}
        site.load(site.dump().directory, repair=True)


def test_inserts_do_not_wait_and_are_no_drift(sites: Sites) -> None:
    """What is not replicated is neither counted as waiting nor found missing."""
    ends = sites.one.connection
    sites.one.insert("plain", "3\n")
    assert lag(ends.source, ends.target, sites.one.database).waiting == 0
    assert DriftScan(ends.source, ends.target, sites.one.database, 0.1).table("plain") is None


def test_data_comes_and_stays_when_the_policy_changes(sites: Sites) -> None:
    """With data again, a bootstrap brings it; without, what is there stays."""
    full = sites.other.with_policy(metadata_only=False)
    full.insert("plain", "1\n")
    full.load(full.dump().directory, repair=True)
    assert full.rows("plain") == ["1"]
    sites.other.sql("TRUNCATE TABLE plain", "ALTER TABLE plain ADD COLUMNS (b STRING)")
    sites.other.step()
    sites.other.load(sites.other.dump().directory, repair=True)
    assert [column.name for column in full.table("plain", source=False).sd.cols] == ["a", "b"]
    assert full.rows("plain") == ["1"]
