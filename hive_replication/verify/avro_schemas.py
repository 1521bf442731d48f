"""Files with the schemas of Avro tables: without those that the replica names nobody can read it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from hive_replication.errors import Refused
from hive_replication.load.operations.avro_schemas import MOST, holds
from hive_replication.metastore.avro import schema_urls
from hive_replication.metastore.types import Partition, Table
from hive_replication.storage import Storage
from hive_replication.storage.boundary import qualified


@dataclass(frozen=True)
class SchemaFiles:
    """Compares them, those that many tables and partitions name once.

    Args:
        source, target: storage of both sides.
    """

    source: Storage
    target: Storage
    _known: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def differences(self, source: Table | Partition, target: Table | Partition) -> Iterator[str]:
        """What is wrong with the files that a replica names; those of other stores, and what the source lacks too, are left.

        Raises:
            TooLarge: a file of the source is larger than loads bring.
        """
        theirs = schema_urls(target)
        for what, uri in schema_urls(source).items():
            pair = qualified(uri, source.sd.location or ""), theirs.get(what, "")
            if pair not in self._known:
                found = ""
                with suppress(Refused):  # no URI, or none of a store of the policy
                    found = self._difference(*pair)
                self._known[pair] = found
            if self._known[pair]:
                yield f"{what} names {pair[1]}, which {self._known[pair]}"

    def _difference(self, source: str, target: str) -> str:
        if not self.source.exists(source):
            return ""
        if not self.target.exists(target):
            return "is missing on the target"
        content = self.source.read(source, most=MOST)
        return "" if holds(self.target, target, content) else f"has other content than {source} at the source"
