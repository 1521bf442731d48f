"""The store of dumps that a policy has: packed ones, and small ones in the ``tree`` layout.

What reads and writes Parquet is imported when it is used: PyArrow takes 0.3 s, and many commands touch no dump.
"""

from __future__ import annotations

from typing import Any

from hive_replication.dump.attempts import Attempt
from hive_replication.dump.records import Scope
from hive_replication.dump.store import DumpReader, DumpWriter
from hive_replication.dump.tree import TreeStore
from hive_replication.storage import Storage


class PackedStore(TreeStore):
    """Dumps under one root: packed, or in the ``tree`` layout where there is little to pack. Reads both.

    Args:
        storage: where they lie.
        root: directory of all dumps.
        above: dumps of at most so many records are written in the ``tree`` layout.
    """

    def __init__(self, storage: Storage, root: str, above: int = 0) -> None:
        super().__init__(storage, root)
        self._above = above

    def _writer(self, directory: str, scope: Scope, attempt: Attempt | None) -> DumpWriter:
        from hive_replication.dump.packed import PackedWriter

        return PackedWriter(self.storage, directory, scope, attempt, self._above)

    def _reader(self, directory: str, ack: dict[str, Any]) -> DumpReader:
        if "parts" not in ack:
            return super()._reader(directory, ack)
        from hive_replication.dump.packed_reader import PackedReader

        return PackedReader(self.storage, directory, ack["parts"])
