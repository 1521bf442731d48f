"""Metastores 4.2.0 that compact, and Hive drivers on them."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from hive_metastore import ttypes as t

from hive_replication.connect import Connection, connect
from hive_replication.metastore.client import Metastore
from hive_replication.policy.acid import Acid
from resources.embedded.cluster import Cluster
from resources.embedded.hive import HiveDriver
from resources.embedded.policy import policy

_SIDES = ("source-acid4", "target-acid4")
#: Hive 4.2.0's Initiator and Cleaner run in the metastore; its Worker runs in a driver. Insert-only tables are compacted by a
#: query, which needs Tez: by MapReduce it leaves nothing of their rows.
_COMPACTION = {
    "hive.compactor.initiator.on": "true",
    "metastore.compactor.initiator.on": "true",
    "metastore.compactor.cleaner.on": "true",
    "metastore.compactor.cleaner.run.interval": "1s",
    "hive.compactor.check.interval": "3s",
    "hive.compactor.delta.num.threshold": "6",
    "hive.compactor.compact.insert.only": "false",
    "metastore.compactor.history.retention.succeeded": "100",
    "hive.compactor.table.optimizers": "org.apache.hadoop.hive.ql.txn.compactor.AcidTableOptimizer",  # not Iceberg's
    "metastore.txn.timeout": "3600s",
}
_WORKER = {
    "hive.compactor.compact.insert.only": "false",
    "hive.compactor.worker.sleep.time": "200ms",
    "hive.compactor.worker.max.sleep.time": "500ms",
    "hive.compactor.delta.num.threshold": "6",
}
_PENDING = {"initiated", "working", "ready for cleaning"}


@dataclass(frozen=True)
class Servers:
    """What the work runs on.

    Args:
        connection: to both sides; a bootstrap waits for transactions for no time, and aborts them.
        source: Hive on the source.
        target: Hive on the target, for comparisons.
        reader: another one there, for readers during loads.
    """

    connection: Connection
    source: HiveDriver
    target: HiveDriver
    reader: HiveDriver


@contextmanager
def servers(cluster: Cluster) -> Generator[Servers]:
    """Starts metastores on the cluster's HDFS and drivers; stops them when the context closes."""
    compacting = Cluster(cluster.directory, properties=dict.fromkeys(_SIDES, _COMPACTION))
    with ExitStack() as stack:
        stack.callback(compacting.down, _SIDES)
        compacting.up(_SIDES)
        reads, writes = (compacting.side(name) for name in _SIDES)
        root = f"{writes.hdfs}repl/acid"
        drivers = (
            HiveDriver(reads, root, _WORKER, compacts=True, quick=True),
            HiveDriver(writes, root, _WORKER, compacts=True, quick=True),
            HiveDriver(writes, root, quick=True),
        )
        with ThreadPoolExecutor() as pool:
            list(pool.map(stack.enter_context, drivers))
        rules = policy(compacting, {"unused": "unused"}, *_SIDES).model_copy(update={"acid": Acid(open_txn_timeout=0)})
        yield Servers(connect(rules), *drivers)


def request_compaction(metastore: Metastore, database: str, table: str, partition: str | None, *, major: bool) -> None:
    """Requests a compaction, as ALTER TABLE COMPACT does, unless one is waiting already."""
    kind = t.CompactionType.MAJOR if major else t.CompactionType.MINOR
    request = t.CompactionRequest(dbname=database, tablename=table, partitionname=partition, type=kind)
    metastore.call("compact", lambda client: client.compact2(request))


def compactions(metastore: Metastore, databases: Iterable[str]) -> list[t.ShowCompactResponseElement]:
    """All of some databases, whatever their state."""
    found = metastore.call("show_compact", lambda client: client.show_compact(t.ShowCompactRequest())).compacts or []
    return [one for one in found if one.dbname in set(databases)]


def wait_for_compactions(metastore: Metastore, databases: Iterable[str], seconds: float = 30) -> None:
    """Waits until all are done; not for cleaning for ever: transactions that stay open keep the Cleaner from it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and any(one.state in _PENDING for one in compactions(metastore, databases)):
        time.sleep(0.2)
