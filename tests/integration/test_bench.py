"""The measurements run, at sizes too small to say anything about speed, and check what they have replicated."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from bench import idle, report
from bench.copies import Copies
from bench.growth import Growth
from bench.peers import Hive, Ours
from bench.servers import Setting, check_counts, new_database
from bench.tiny_window import TinyWindow
from bench.turns import measure
from bench.workloads import Added, Bootstrap, Bytes, Mixed, Workload
from hive_replication.connect import connect
from resources.embedded.cluster import Cluster, Side
from resources.embedded.hive import HiveDriver
from resources.embedded.policy import policy

pytestmark = [pytest.mark.servers, pytest.mark.hive]


@pytest.fixture(scope="module")
def setting(cluster: Cluster, source: Side, hive3: HiveDriver, hive3_target: HiveDriver) -> Setting:
    rules = policy(cluster, {"unused": "unused"})
    connection = connect(rules)
    return Setting(connection, source.warehouse, (Ours(rules), Hive(hive3, hive3_target)), partial(check_counts, connection))


@pytest.mark.long
@pytest.mark.parametrize(
    "workload",
    [Bootstrap(tables=2, partitions=3, size=100), Added(events=5, size=100), Mixed(events=14, tables=2, size=100)],
)
def test_beside_hive(setting: Setting, workload: Workload, tmp_path: Path) -> None:
    found = measure(setting, "W", workload, 10)
    assert list(found.rows) == ["hive-repl", "Hive 3.1.3"]
    both = [figures["both, s"] for figures in found.rows.values()]
    assert found.value == both[1] / both[0] > 0
    paths = report.write([found], tmp_path)
    assert [path.suffix for path in paths] == [".json", ".png", ".svg"]
    assert json.loads(paths[0].read_text())["results"][0]["value"] == found.value


@pytest.mark.long
def test_a_replica_that_lacks_something_is_no_measurement(setting: Setting) -> None:
    class Nothing(Ours):
        def replicate(self, source: str, replica: str):
            timing = super().replicate(source, replica)
            metastore = connect(self.policy).target.metastore
            metastore.drop_partitions(replica, "t000", ["p=00000"])
            return timing

    ours, hive = setting.peers
    assert isinstance(ours, Ours)
    broken = Setting(setting.connection, setting.warehouse, (Nothing(ours.policy), hive), setting.check)
    with pytest.raises(RuntimeError, match="is not a replica of"):
        measure(broken, "W1", Bootstrap(tables=1, partitions=2, size=100), 10)


@pytest.mark.long
def test_copies_beside_hadoop(cluster: Cluster, setting: Setting) -> None:
    ours = setting.peers[0]
    assert isinstance(ours, Ours)
    found = Copies(cluster, setting.connection, setting.database(), ours, 1).measure(Bytes(total=2 << 20, size=1 << 20))
    assert len(found.rows) == 4
    assert found.value > 0


@pytest.mark.long
def test_growth_and_idle_ticks(setting: Setting) -> None:
    ours = setting.peers[0]
    assert isinstance(ours, Ours)
    grown = Growth(ours.policy, 40).measure(setting.database(), setting.database())
    assert list(grown.rows) == ["4 partitions", "40 partitions"]
    found = idle.measure(ours.policy, setting.database(), 3)
    assert found.rows["a tick"]["metastore calls"] == 1


@pytest.mark.long
def test_tiny_window(setting: Setting) -> None:
    ours = setting.peers[0]
    assert isinstance(ours, Ours)
    found = TinyWindow(ours.policy, new_database(setting.connection, setting.warehouse), inserts=1).measure()
    assert found.value > 0
