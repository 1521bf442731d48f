"""Dagster's webserver, daemon and run are killed, then started in other processes on one storage: the window ends by itself."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from hive_replication.connect import Connection, connect
from hive_replication.errors import ReplicationError
from hive_replication.load.replica.state import replica_state
from hive_replication.verify import compare_database
from resources.embedded.cluster import Cluster
from resources.embedded.policy import policy
from tests.dagster_dev import Dagster, dagster_dev, wait_for
from tests.origin import Origin
from tests.outages import create_with_files

pytestmark = [pytest.mark.servers, pytest.mark.long]


@pytest.mark.timeout(900)
def test_dagster_is_killed_and_started_elsewhere(cluster: Cluster, unique: str, tmp_path: Path) -> None:
    rules = policy(cluster, {unique: unique})
    connection = connect(rules)
    tables = create_with_files(Origin(connection, unique), 600)
    with dagster_dev(rules, tmp_path) as first:
        wait_for("the bootstrap copies", lambda: 0 < _copied(connection, unique) < 600)
        _kill(first)
    assert not _equal(connection, unique, tables)
    with dagster_dev(rules, tmp_path) as second:
        wait_for("the bootstrap ends", lambda: _equal(connection, unique, tables), 400)
        windows = [run for run in second.runs() if run["tags"].get("hive_replication/attempt")]
        wait_for("its run ends", lambda: second.run(windows[0]["runId"])["status"] == "SUCCESS")
    assert [run["tags"]["hive_replication/attempt"] for run in windows] == ["2", "1"]


def _copied(connection: Connection, database: str) -> int:
    found = connection.target.metastore.database(database)
    return len(connection.target.storage.files(str(found.locationUri))) if found else 0


def _equal(connection: Connection, database: str, tables: list[str]) -> bool:
    try:
        if replica_state(connection.target.metastore.database(database)).applied is None:
            return False
        found = {one.table: one.differences for one in compare_database(connection.source, connection.target, database)}
    except (ReplicationError, FileNotFoundError):
        return False
    return found == dict.fromkeys(tables, ())


def _kill(dagster: Dagster) -> None:
    """Ends all of it at once, as the loss of its machine does: no process of it comes to say what became of its run."""
    home = str(dagster.home)
    family = [one for one in psutil.process_iter() if _environment(one).get("DAGSTER_HOME") == home]
    for process in family:
        process.kill()
    wait_for("all of it ends", lambda: all(_ended(one) for one in family), 20)


def _ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:
        return {}
