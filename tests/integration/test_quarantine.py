"""Tables that fail are held alone, in windows and in bootstraps: why, since when and how often; the others go on."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from hive_metastore.ThriftHiveMetastore import Client

from hive_replication.load.replica.held_reasons import LEFT_OUT_REASON
from hive_replication.load.replica.repl_status import HeldTable, held_tables
from hive_replication.load.replica.state import replica_state
from hive_replication.load.report import LoadReport
from hive_replication.metastore.types import copy_of
from hive_replication.recover import UNFINISHED, Gap, dump_recovery, recover
from hive_replication.repair import repair
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


def wipe(warehouse: Warehouse, table: str) -> dict[str, bytes]:
    """Deletes a table's directory at the source, as ``hdfs dfs -rm -r`` does: no event, nothing in cmroot."""
    storage = warehouse.connection.source.storage
    found = warehouse.connection.source.metastore.table(warehouse.database, table)
    assert found is not None
    content = {status.uri: storage.read(status.uri) for status in storage.files(str(found.sd.location))}
    storage.delete(str(found.sd.location), recursive=True)
    return content


def change_type(warehouse: Warehouse, table: str, to: str) -> None:
    """An ALTER TABLE that a metastore refuses as it is configured, unless a session says otherwise."""
    altered = copy_of(warehouse.connection.source.metastore.table(warehouse.database, table))
    assert altered is not None
    altered.sd.cols[0].type = to

    def alter(client: Client) -> None:
        client.setMetaConf(setting, "false")
        client.alter_table(warehouse.database, table, altered)
        client.setMetaConf(setting, "true")

    setting = "hive.metastore.disallow.incompatible.col.type.changes"
    warehouse.connection.source.metastore.call("alter_table", alter)


def held_now(warehouse: Warehouse) -> dict[str, HeldTable]:
    state = replica_state(warehouse.connection.target.metastore.database(warehouse.database))
    return {one.table: one for one in held_tables(state)}


def catch_up(warehouse: Warehouse) -> LoadReport:
    """From where the lowest held table stands."""
    return warehouse.load(warehouse.dump(warehouse.status()).directory)


def status(warehouse: Warehouse, tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """``hive-repl REPL STATUS`` of the replica."""
    path = tmp_path / "policy.yaml"
    policy = warehouse.connection.source.policy.model_dump(mode="json", exclude_defaults=True)
    path.write_text(yaml.safe_dump(policy), encoding="utf-8")
    main = "from hive_replication.cli import main; main()"
    command = [sys.executable, "-c", main, "--config", path, *options, "REPL", "STATUS", warehouse.database]
    return subprocess.run(command, capture_output=True, text=True, check=True)


def test_storage_gone_and_a_change_that_the_target_refuses(warehouse: Warehouse, tmp_path: Path) -> None:
    """In one window: a table without storage, one that the target's metastore refuses to change, one of an unknown SerDe."""
    warehouse.sql("CREATE TABLE gone (a INT)", "CREATE TABLE typed (a STRING)", "CREATE TABLE other (a INT)")
    warehouse.replicate()
    start = warehouse.applied()
    warehouse.load_data("gone", "1\n")
    warehouse.load_data("other", "1\n")
    change_type(warehouse, "typed", "int")
    warehouse.load_data("typed", "7\n")
    source = warehouse.connection.source.metastore
    exotic = copy_of(source.table(warehouse.database, "other"))
    assert exotic is not None
    exotic.tableName, exotic.sd.location = "exotic", None
    exotic.sd.serdeInfo.serializationLib = "com.example.SerDeThatNobodyHas"
    source.create_table(exotic)
    dump = warehouse.dump(start)
    content = wipe(warehouse, "gone")
    held = {one.tables: one for one in warehouse.load(dump.directory).held}
    assert held.keys() == {("gone",), ("typed",)}
    assert f"{next(iter(content))} is absent and " in held["gone",].reason  # and so is the file in cmroot
    assert "incompatible" in held["typed",].reason
    warehouse.assert_equal(only="other")
    warehouse.assert_equal(only="exotic")  # a metastore loads no SerDe to create its table

    assert {one.tables for one in catch_up(warehouse).held} == held.keys()
    assert_status(warehouse, tmp_path, attempts=2)
    for uri, data in content.items():
        warehouse.connection.source.storage.write(uri, data)
    assert {one.tables for one in catch_up(warehouse).held} == {("typed",)}
    assert held_now(warehouse).keys() == {"typed"}
    warehouse.connection.target.metastore.drop_table(warehouse.database, "typed", delete_data=False)
    connection = warehouse.connection
    assert repair(connection, warehouse.database, "typed").load.held == ()
    assert replica_state(connection.target.metastore.database(warehouse.database)).quarantines == {}
    warehouse.assert_equal()


def assert_status(warehouse: Warehouse, tmp_path: Path, *, attempts: int) -> None:
    """REPL STATUS names the held tables: why, where they stand, since when, how often they were tried, and when next."""
    found, now = held_now(warehouse), time.time()
    assert found.keys() == {"gone", "typed"}
    for one in found.values():
        history = one.history
        assert one.after < history.evid
        assert (history.attempts, now - 300 < history.since <= history.tried <= now) == (attempts, True)
        assert one.next_attempt == history.tried + 60 * 2 ** (attempts - 1)
    assert warehouse.status() == min(one.after for one in found.values())
    shown = status(warehouse, tmp_path)
    assert shown.stdout == f"{warehouse.status()}\n"
    assert f"held: gone at event {found['gone'].after}: " in shown.stderr
    assert f"; failed {attempts} times since 20" in shown.stderr
    listed = json.loads(status(warehouse, tmp_path, "--json").stdout)["held"]
    assert {one["table"]: (one["evid"], one["attempts"]) for one in listed} == {
        name: (one.history.evid, attempts) for name, one in found.items()
    }
    assert all(one["since"].endswith("+00:00") and one["next_attempt"] > one["since"] for one in listed)


def test_a_replica_of_a_table_that_is_left_out_by_now_stays_until_it_is_dropped(warehouse: Warehouse) -> None:
    """Windows, a repair of the database and a recovery hold it, and keep what it holds."""
    connection, name = warehouse.connection, warehouse.database
    warehouse.sql("CREATE TABLE odd (a INT)", "CREATE TABLE other (a INT)")
    warehouse.load_data("odd", "1\n")
    warehouse.replicate()
    content = warehouse.content(source=False)["odd"]
    altered = copy_of(connection.source.metastore.table(name, "odd"))
    assert altered is not None
    altered.parameters |= {"storage_handler": "org.example.Handler"}
    connection.source.metastore.alter_table(name, "odd", altered)

    def stays(report: LoadReport, *, told: bool = True) -> None:
        held = held_now(warehouse)
        assert [one.tables for one in report.held] == ([("odd",)] if told else [])
        assert list(held) == ["odd"]
        assert held["odd"].reason.startswith(LEFT_OUT_REASON)
        assert warehouse.content(source=False)["odd"] == content

    stays(warehouse.replicate())
    warehouse.load_data("other", "1\n")
    stays(repair(connection, name).load)
    warehouse.load_data("other", "2\n")
    stays(warehouse.replicate(), told=False)
    gap = Gap(UNFINISHED, warehouse.applied() or 0, "tried")
    stays(warehouse.load(dump_recovery(connection, name, gap)[1].directory))
    warehouse.load_data("other", "3\n")
    stays(warehouse.replicate(), told=False)
    assert warehouse.status() == warehouse.applied()
    connection.source.metastore.drop_table(name, "odd", delete_data=True)  # Hive itself knows no such handler
    assert warehouse.replicate().held == ()
    assert held_now(warehouse) == {}
    warehouse.assert_equal()


def test_a_bootstrap_holds_tables_without_storage(warehouse: Warehouse) -> None:
    """The others are bootstrapped and replicated on; a held one comes with the same bootstrap again, or with a recovery."""
    warehouse.sql("CREATE TABLE gone (a INT)", "CREATE TABLE lost (a INT)", "CREATE TABLE other (a INT)")
    for table in ("gone", "lost", "other"):
        warehouse.load_data(table, "1\n")
    dump = warehouse.dump()
    content = wipe(warehouse, "gone")
    wipe(warehouse, "lost")
    held = {one.tables: one for one in warehouse.load(dump.directory).held}
    assert held.keys() == {("gone",), ("lost",)}
    assert f"{next(iter(content))} is absent and " in held["gone",].reason
    assert (warehouse.status(), warehouse.status("gone")) == (dump.last_evid, None)
    warehouse.assert_equal(only="other")
    for uri, data in content.items():
        warehouse.connection.source.storage.write(uri, data)
    again = warehouse.load(dump.directory)
    assert [one.tables for one in again.held] == [("lost",)]
    assert again.files_by_origin == {"source": 1}
    one = held_now(warehouse)["lost"]
    assert (one.after, one.history.attempts) == (0, 2)
    for table in ("gone", "lost", "other"):
        warehouse.load_data(table, "2\n")
    assert [(one.tables, one.tried) for one in warehouse.replicate().held] == [(("lost",), False)]
    warehouse.assert_equal(only="other")
    warehouse.assert_equal(only="gone")
    connection = warehouse.connection
    recovery = recover(connection, warehouse.database)
    assert recovery is not None
    assert (recovery.gap.kind, [one.table for one in recovery.different]) == (UNFINISHED, ["lost"])
    assert held_now(warehouse) == {}
    warehouse.assert_equal()
