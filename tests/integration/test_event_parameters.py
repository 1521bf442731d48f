"""A source whose metastore leaves parameters of tables out of its events."""

from __future__ import annotations

import pytest

from hive_replication.connect import connect
from hive_replication.doctor import examine
from hive_replication.metastore.types import copy_of
from hive_replication.repair import repair
from hive_replication.verify.database import compare_database
from resources.embedded.cluster import Cluster
from resources.embedded.policy import policy
from tests.drifting import Drifting

pytestmark = [pytest.mark.servers, pytest.mark.long]

_SETTING = "hive.metastore.notification.parameters.exclude.patterns"


def test_what_events_lack_comes_with_a_repair(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The replica has them from its bootstrap, loses them with the next ALTER, which is told, and a repair brings them."""
    servers = Cluster(tmp_path_factory.mktemp("parameters"), properties={"source4": {_SETTING: r"impala\..*"}})
    try:
        servers.up(["source4", "target4"])
        made = Drifting.of(connect(policy(servers, {"x": "x"}, "source4", "target4")))
        made.origin.create("t")
        made.origin.insert("t", "1\n")
        _set(made, **{"impala.events": "off", "team": "sales"})
        assert made.replica.replicate().held == ()
        assert _differences(made) == []

        _set(made, team="finance")
        made.origin.insert("t", "2\n")
        assert made.replica.replicate().held == ()
        (told,) = _differences(made)
        assert "impala.events" in told
        assert "team" not in told
        connection = made.connection
        repair(connection, made.origin.database, "t")
        assert _differences(made) == []
        made.replica.assert_equal()
        (found,) = [one for one in examine(connection) if one.check == "parameters"]
        assert (found.verdict, _SETTING in found.advice) == ("warning", True)
    finally:
        servers.down()


def _set(made: Drifting, **parameters: str) -> None:
    metastore = made.connection.source.metastore
    table = copy_of(metastore.table(made.origin.database, "t"))
    assert table is not None
    table.parameters = {**(table.parameters or {}), **parameters}
    metastore.alter_table(made.origin.database, "t", table)


def _differences(made: Drifting) -> list[str]:
    connection = made.connection
    found = compare_database(connection.source, connection.target, made.origin.database)
    return [difference for one in found for difference in one.differences]
