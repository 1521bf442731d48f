"""Writers of all formats: records are counted, and a dump is complete only with its ack file, which is written last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hive_replication.dump.format.ack import ACK
from hive_replication.dump.format.checkpoints import Checkpoint
from hive_replication.dump.format.record_types import DumpHeader, DumpResult, Scope
from hive_replication.dump.format.resume import WriterClaim
from hive_replication.dump.format.writer_base import WriterBase
from hive_replication.errors import ReplicationError
from hive_replication.metastore.types import Database
from hive_replication.policy import Root
from hive_replication.storage import Storage

HEADER = DumpHeader("incremental", Scope("db"), "uuid", Database(name="db"), 1, 3, 0, "", 0.0)


class Writer(WriterBase):
    """Counts two events of three files."""

    def __init__(self, storage: Storage, directory: str, claim: WriterClaim | None) -> None:
        self._storage, self.directory = storage, directory
        storage.mkdirs(directory)
        self._count(claim)
        self._events |= {2: 1, 3: 2}

    def _flush(self) -> None:
        pass

    def finish(self, header: DumpHeader) -> DumpResult:
        self._close()
        return self._acknowledge(header, parts={})


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage((Root(uri=tmp_path.as_uri()),))


def test_the_ack_file_has_the_numbers_of_records(storage: Storage, tmp_path: Path) -> None:
    directory = f"{tmp_path.as_uri()}/1"
    result = Writer(storage, directory, None).finish(HEADER)
    assert (result.tables, result.partitions, result.events, result.files, result.last_evid) == (0, 0, 2, 3, 3)
    ack = json.loads(storage.read(f"{directory}/{ACK}"))
    assert ack.pop("digest")
    assert ack == {"tables": 0, "partitions": 0, "events": 2, "functions": 0, "parts": {}, "files": {}}


def test_a_suspended_dump_stays_only_with_a_checkpoint(storage: Storage, tmp_path: Path) -> None:
    kept, removed = (f"{tmp_path.as_uri()}/{name}" for name in ("kept", "removed"))
    writer = Writer(storage, kept, WriterClaim(storage, kept, "request"))
    writer.keep(Checkpoint(3, "hash"))
    writer.suspend()
    Writer(storage, removed, WriterClaim(storage, removed, "request")).suspend()
    assert (storage.exists(kept), storage.exists(removed)) == (True, False)


def test_a_dump_that_cannot_be_resumed_is_removed_when_suspended(storage: Storage, tmp_path: Path) -> None:
    directory = f"{tmp_path.as_uri()}/1"
    Writer(storage, directory, None).suspend()
    assert not storage.exists(directory)


def test_only_the_last_claim_finishes_a_dump(storage: Storage, tmp_path: Path) -> None:
    directory = f"{tmp_path.as_uri()}/1"
    writer = Writer(storage, directory, WriterClaim(storage, directory, "request"))
    WriterClaim(storage, directory, "request", 2)
    with pytest.raises(ReplicationError, match="another process"):
        writer.finish(HEADER)
    assert not storage.exists(f"{directory}/{ACK}")
