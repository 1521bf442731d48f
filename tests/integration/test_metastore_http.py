"""A metastore 4.2.0 over plain HTTP that lets only its proxy users read the notification log."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hive_replication.connect import Connection, connect
from hive_replication.doctor import examine
from hive_replication.dump.command import repl_dump
from hive_replication.load.command import repl_load
from hive_replication.metastore.client import Metastore
from hive_replication.policy import Policy
from hive_replication.statements import ReplDump, ReplLoad
from hive_replication.verify import compare_database
from resources.embedded.cluster import Cluster
from resources.embedded.policy import policy
from tests.account import ACCOUNT, acting
from tests.origin import Origin

pytestmark = pytest.mark.servers

_SIDE, _AUTH = "source-http4", "metastore.event.db.notification.api.auth"


@pytest.fixture
def over_http(cluster: Cluster, unique: str) -> Iterator[Policy]:
    """From a database of the metastore to another one of it."""
    properties = {"metastore.server.thrift.transport.mode": "http", f"hive.{_AUTH}": "true", f"metastore.{_AUTH}": "true"}
    servers = Cluster(cluster.directory, {_SIDE: properties})
    servers.up([_SIDE])
    made = policy(cluster, {unique: f"{unique}_replica"}, _SIDE, _SIDE)
    sides = {name: getattr(made, name) for name in ("source", "target")}
    address = {"metastore": made.source.metastore.replace("thrift://", "http://")}
    yield made.model_copy(update={name: side.model_copy(update=address) for name, side in sides.items()})
    servers.down([f"{_SIDE}.metastore"])


def test_a_bootstrap_and_a_window_by_a_proxy_user_and_nobody_else(over_http: Policy, unique: str) -> None:
    connection = connect(over_http)
    origin = Origin(connection, unique)
    origin.create_database()
    origin.create("t", "1")
    origin.insert("t", "1\n", "1")
    last = replicate(connection, ReplDump(unique))
    origin.insert("t", "2\n", "1")
    replicate(connection, ReplDump(unique, None, last))

    with acting(), Metastore.of(over_http.source) as stranger:
        assert unique in stranger.databases()
    with acting():
        (log,) = (one for one in examine(connect(over_http)) if one.check == "read the log")
    assert log.verdict == "error"
    assert f"the account {ACCOUNT} may not read the notification log, set hive.{_AUTH}=false" in log.found
    assert f"hadoop.proxyuser.{ACCOUNT}.hosts to this host" in log.found


def replicate(connection: Connection, statement: ReplDump) -> int:
    source, target, store = connection.source, connection.target, connection.store
    dumped = repl_dump(source, statement, store)
    report = repl_load(target, ReplLoad(dumped.directory, source.policy.target_of(statement.database)), store, connection.copier)
    assert report.held == ()
    assert {one.table: one.differences for one in compare_database(source, target, statement.database)} == {"t": ()}
    return dumped.last_evid
