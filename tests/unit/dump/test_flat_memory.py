"""Packed dumps in a process that counts Python's memory: it must not grow with the number of partitions."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hive_replication.dump.format import digests, packed_writer
from hive_replication.dump.format.checkpoints import Checkpoint
from hive_replication.dump.format.interface import DumpWriter
from hive_replication.dump.format.packed_store import PackedStore
from hive_replication.dump.format.record_types import DumpHeader, PartitionRecord, Scope, TableRecord
from hive_replication.events.files import FileRef
from hive_replication.metastore.types import Database, Partition, StorageDescriptor, Table
from hive_replication.policy import Root
from hive_replication.storage import Storage

_SMALL, _LARGE = 1_500, 6_000


def test_memory_does_not_grow_with_the_partitions(tmp_path: Path) -> None:
    # Python 3.11 may crash where tracing stops while Arrow's threads allocate: a process of its own traces to its end.
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(tmp_path)], capture_output=True, text=True, check=True, timeout=300
    )
    small, large = json.loads(done.stdout)
    slopes = {name: (large[name] - small[name]) / (_LARGE - _SMALL) for name in small}
    print("bytes a partition:", ", ".join(f"{name} {slope:.0f}" for name, slope in slopes.items()))
    assert slopes.keys() == {"written", "resumed", "replaced", "finished", "opened", "read"}
    assert max(slopes.values()) < 40  # one partition takes some thousand


def peaks(store: PackedStore, number: int) -> dict[str, int]:
    """The most bytes of Python's memory while a table of so many partitions is dumped, resumed, put again, finished and read."""
    scope, files = Scope(f"db{number}"), (FileRef("hdfs://s/w/f", "00ff"), FileRef("hdfs://s/w/g", "00fe"))
    found = dict[str, int]()

    def measured(name: str, work: Callable[[], Any]) -> Any:
        gc.collect()
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        result = work()
        found[name] = tracemalloc.get_traced_memory()[1] - before
        return result

    def put(writer: DumpWriter) -> None:
        for one in range(10**6, 10**6 + number):
            described = Partition(values=[str(one)], sd=StorageDescriptor(location="l"))
            writer.put_partition(PartitionRecord("t", f"p={one}", described, files))

    def written() -> None:
        writer = store.create(scope, "request")
        writer.put_table(TableRecord(Table(tableName="t", dbName="db", sd=StorageDescriptor(parameters={}), parameters={}), ()))
        put(writer)
        writer.keep(Checkpoint(9, "hash", begun={"t": (1, f"p={10**6 + number - 1}")}))
        writer.suspend()

    measured("written", written)
    writer = measured("resumed", lambda: store.create(scope, "request"))
    measured("replaced", lambda: put(writer))  # as with the files of transactional tables
    header = DumpHeader("bootstrap", scope, "uuid", Database(name="db"), 1, 9, 0, "", 0.0)
    result = measured("finished", lambda: writer.finish(header))
    reader = measured("opened", lambda: store.open(result.directory))
    if measured("read", lambda: sum(1 for _ in reader.partitions("t"))) != number:
        raise AssertionError
    return found


def _main(root: Path) -> None:
    packed_writer._FULL = 1_500
    digests._KEPT = 0  # else small files are kept, up to 16 MiB
    store = PackedStore(Storage((Root(uri=root.as_uri()),)), root.as_uri())
    tracemalloc.start()
    peaks(store, 100)  # what is made once
    small, large = peaks(store, _SMALL), [peaks(store, _LARGE) for _ in range(2)]
    # Threads read parts at the same time: how many have theirs in memory at one moment is chance.
    print(json.dumps([small, {name: min(one[name] for one in large) for name in small}]))


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
