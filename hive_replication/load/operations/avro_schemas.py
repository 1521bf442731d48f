"""Files with the schemas of Avro tables (``avro.schema.url``), which Hive reads whenever such a table is used.

They lie beside the data that they describe, often for many tables, and no event tells of their content: a load brings what the
source has, with each description that names one, once for a lane.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from threading import Lock
from zlib import crc32

from hive_replication.copy.preserve import Preserve
from hive_replication.load.operations.kinds import CustomOperation
from hive_replication.load.replica.name_mapping import NameMapping
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.target_boundary import boundary_of
from hive_replication.logs import about
from hive_replication.metastore.types import Partition, Table
from hive_replication.storage import AlreadyExists, Storage, paths
from hive_replication.storage.access import Access
from hive_replication.storage.effective_access import EffectiveAccess

_LOG = logging.getLogger(__name__)

#: Bytes that the file with a schema may have.
MOST = 16 * 1024 * 1024
_LOCKS = tuple(Lock() for _ in range(64))  # lanes that go on at the same time often name the same file


@dataclass(frozen=True, slots=True)
class CopySchemas(CustomOperation):
    """Brings files with schemas. It comes before the change whose image names them.

    Args:
        files: place on the target and URI at the source of each.
    """

    kind = "CopySchemas"
    files: tuple[tuple[str, str], ...]

    def carry_out(self, target: Target, database: str) -> None:
        """Brings those that the target does not have as the source does; one that the source lacks is left."""
        boundary = boundary_of(target, database)
        for place, uri in self.files:
            boundary.require_within(place.rpartition("/")[0], f"the schema {uri}")
            try:
                content = target.source_storage.read(uri, most=MOST)
            except FileNotFoundError:
                _LOG.warning(
                    "the source has no file %s, the schema of a table", uri, extra=about(database, self.table, self.evid)
                )
                continue
            with _LOCKS[hash(place) % len(_LOCKS)]:
                if not holds(target.storage, place, content):
                    _write(target, database, uri, place, content)


def copied_schemas(mapping: NameMapping, evid: int, table: str, things: Iterable[Table | Partition]) -> Iterator[CopySchemas]:
    """What brings the schemas of objects of the source; nothing where they have none in a file (pure).

    Args:
        mapping: names and paths.
        evid: event id of their description.
        table: name of their table on the target.
        things: the table, or some of its partitions.
    """
    files = {place: uri for thing in things for place, uri in mapping.schema_files(thing).items()}
    if files:
        yield CopySchemas(evid, table, tuple(files.items()))


def holds(storage: Storage, place: str, content: bytes) -> bool:
    """Whether a file has the content of a schema; one of another size is not read.

    Raises:
        TooLarge: it has grown since its size was asked for.
    """
    status = storage.status(place)
    return status is not None and status.size == len(content) and storage.read(place, most=MOST) == content


def _write(target: Target, database: str, uri: str, place: str, content: bytes) -> None:
    """Writes a file that nobody may read who may not read that of the source; whoever finds it finds it whole."""
    storage, preserve = target.storage, Preserve.of(target.policy.preserve)
    # One that a kill has left is written over: a database has one load at a time.
    unfinished = f"{paths.parent(place)}/.{database}.{crc32(place.encode()):08x}.new"
    wanted = _access(target.source_storage, uri) if preserve else None
    storage.write(unfinished, content, mode=None if wanted is None else 0o600)
    if wanted is not None:
        present = storage.about_access(unfinished, lambda store, path: store.read(path))
        if present is not None:
            preserve.give(storage, unfinished, wanted, present, is_dir=False)
    storage.delete(place)
    try:
        storage.rename(unfinished, place)
    except AlreadyExists:  # by a load of another database
        storage.delete(unfinished)
        if not holds(storage, place, content):
            raise


def _access(storage: Storage, uri: str) -> Access | None:
    """What a file and the directories above it allow together; None where its store knows nothing of it."""
    own, above = (
        storage.about_access(uri, lambda store, path: store.read(path)),
        EffectiveAccess(storage).of(paths.parent(uri)),
    )
    return own.below(above) if own and above else own
