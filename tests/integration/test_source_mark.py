"""The mark of a source database, beside somebody who alters the database: a metastore writes whole descriptions only."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hive_replication.connect import Connection, connect
from hive_replication.dump.source import SOURCE_FOR
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Database, copy_of
from resources.embedded.cluster import Cluster, Side
from resources.embedded.policy import policy
from tests.warehouse import Warehouse

pytestmark = pytest.mark.servers

_ROUNDS = 6


@pytest.fixture(params=["3.1.3", "4.2.0"])
def sides(request: pytest.FixtureRequest, cluster: Cluster, target4: Side, unique: str) -> Connection:
    source = request.getfixturevalue("source4").name if request.param == "4.2.0" else "source"
    return connect(policy(cluster, {unique: unique}, source, target4.name))


@pytest.mark.parametrize("together", [False, True], ids=["in between", "at the same moment"])
@pytest.mark.parametrize("windows", [False, True], ids=["bootstrap", "window"])
def test_what_somebody_else_sets_is_kept(
    sides: Connection, unique: str, monkeypatch: pytest.MonkeyPatch, *, together: bool, windows: bool
) -> None:
    """Written at the same moment, both are there, and the last event may have the mark alone: the replica lacked the rest."""
    source, target, real = sides.source.metastore, sides.target.metastore, Metastore.alter_database
    for number in range(_ROUNDS if together else 1):
        name = f"{unique}_{number}"
        warehouse = Warehouse(sides, None, name).with_policy(databases={name: name})  # type: ignore[arg-type]
        source.create_database(Database(name=name, parameters={}))
        if windows:
            warehouse.replicate()
            source.call("alter_database", lambda client, of=name: client.alter_database(of, _of(source, of)))

        with ThreadPoolExecutor(1) as threads:

            def alter_database(metastore: Metastore, of: str, *described: Any, pool: ThreadPoolExecutor = threads) -> None:
                monkeypatch.setattr(Metastore, "alter_database", real)
                noted = _of(source, of, note="3")
                theirs = pool.submit(source.call, "alter_database", lambda client: client.alter_database(of, noted))
                if not together:
                    theirs.result()
                real(metastore, of, *described)
                theirs.result()

            monkeypatch.setattr(Metastore, "alter_database", alter_database)
            warehouse.replicate()
        warehouse.replicate()
        assert (_of(source, name).parameters or {}).get("note") == "3"
        assert (source.database(name).parameters or {}).get(SOURCE_FOR)
        assert (target.database(name).parameters or {}).get("note") == "3"


def _of(source: Metastore, name: str, **parameters: str) -> Database:
    """A database's description without the mark, as somebody read it before."""
    found = copy_of(source.database(name))
    found.parameters = {key: value for key, value in (found.parameters or {}).items() if key != SOURCE_FOR} | parameters
    return found
