"""The store of dumps that a policy has: packed ones, and small ones in the ``tree`` layout.

What reads and writes Parquet is imported when it is used: PyArrow takes 0.3 s, and many commands touch no dump.
"""

from __future__ import annotations

from hive_replication.dump.format.ack import Ack
from hive_replication.dump.format.interface import DumpWriter, VerifiedReader
from hive_replication.dump.format.record_types import Scope
from hive_replication.dump.format.resume import WriterClaim
from hive_replication.dump.format.tree import TreeStore
from hive_replication.signing import SigningKey
from hive_replication.storage import Storage


class PackedStore(TreeStore):
    """Dumps under one root: packed, or in the ``tree`` layout where there is little to pack. Reads both.

    Args:
        storage: where they lie.
        root: directory of all dumps.
        above: dumps of at most so many records are written in the ``tree`` layout.
        key: signs dumps, and those that it has not signed are refused; None for neither.
    """

    def __init__(self, storage: Storage, root: str, above: int = 0, key: SigningKey | None = None) -> None:
        super().__init__(storage, root, key)
        self._above = above

    def _writer(self, directory: str, scope: Scope, claim: WriterClaim | None) -> DumpWriter:
        from hive_replication.dump.format.packed_writer import PackedWriter

        return PackedWriter(self.storage, directory, scope, claim, self._above, self._key)

    def _reader(self, directory: str, ack: Ack) -> VerifiedReader:
        if ack.parts is None:
            return super()._reader(directory, ack)
        from hive_replication.dump.format.packed_reader import PackedReader

        return PackedReader(self.storage, directory, ack)
