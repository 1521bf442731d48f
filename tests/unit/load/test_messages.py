"""What the engine logs: locks and dumps taken over, files from cmroot, held tables, skipped events."""

from __future__ import annotations

import json
import logging
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hive_metastore.ttypes import LockState, ShowLocksResponseElement

from hive_replication.copy.copy_file import copy_file
from hive_replication.copy.tasks import CopyResult, CopyTask
from hive_replication.dump.format.checkpoints import Checkpoint
from hive_replication.dump.format.resume import WriterClaim, interrupted
from hive_replication.errors import Unreachable
from hive_replication.events.files import FileRef
from hive_replication.load.log_lookahead import LogLookahead
from hive_replication.load.report import Collapsed, Held, LoadReport, Skipped
from hive_replication.load.report_log import log_report
from hive_replication.metastore.lock import MetastoreLock
from hive_replication.policy import Root
from hive_replication.storage import FileChecksum, Storage

Message = tuple[int, str, dict[str, Any]]


@pytest.fixture
def all_levels(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "hive_replication")
    return caplog


def messages(caplog: pytest.LogCaptureFixture, least: int = logging.INFO) -> list[Message]:
    found = [one for one in caplog.records if one.levelno >= least]
    fields = ("database", "table", "evid")
    return [(one.levelno, one.getMessage(), {name: one.__dict__.get(name) for name in fields}) for one in found]


class OneLock:
    """A metastore that has one lock of a process which gave no sign of life for 90 s, until it is removed."""

    def __init__(self) -> None:
        self.there = True

    def call(self, what: str, _: object) -> object:
        if what.startswith("unlock"):
            self.there = False
        if what.startswith("lock"):
            return SimpleNamespace(lockid=2, state=LockState.WAITING if self.there else LockState.ACQUIRED)
        shared = {"state": LockState.ACQUIRED, "user": "etl", "hostname": "elsewhere", "agentInfo": "elsewhere:7:abc"}
        beats = {1: 10_000, 2: 100_000}
        locks = [ShowLocksResponseElement(lockid=one, lastheartbeat=beat, **shared) for one, beat in beats.items()]
        return SimpleNamespace(locks=locks)


def test_a_lock_that_is_taken_over(all_levels: pytest.LogCaptureFixture) -> None:
    with MetastoreLock(OneLock(), "replica"):  # type: ignore[arg-type]
        pass
    told = "the lock on replica is taken over from elsewhere:7:abc of user etl, which is gone (last heartbeat 90 s ago)"
    assert messages(all_levels) == [(logging.WARNING, told, {"database": "replica", "table": None, "evid": None})]


def test_a_dump_that_is_taken_over(tmp_path: Path, all_levels: pytest.LogCaptureFixture) -> None:
    storage, parent = Storage((Root(uri=tmp_path.as_uri()),)), f"{tmp_path.as_uri()}/sales"
    first = WriterClaim(storage, f"{parent}/1", "equal")
    first.save(Checkpoint(170, "hash"))
    owner = tmp_path / "sales/1/_attempt_1"
    owner.write_text(json.dumps({"request": "equal", "machine": "", "pid": 0}))
    assert interrupted(storage, parent, "equal", "_ack") is not None
    told = f"the interrupted dump {parent}/1 is resumed"
    assert messages(all_levels) == [(logging.WARNING, told, {"database": None, "table": None, "evid": 170})]


class Summed(Storage):
    """Local files with checksums, as HDFS has them."""

    def has_checksums(self, uri: str) -> bool:
        return True

    def checksum(self, uri: str) -> FileChecksum | None:
        return FileChecksum("CRC32", f"{zlib.crc32(self.read(uri)):x}")


@pytest.mark.parametrize(("there", "level"), [(b"another version", logging.WARNING), (None, logging.DEBUG)])
def test_a_file_that_comes_from_cmroot(
    tmp_path: Path, all_levels: pytest.LogCaptureFixture, there: bytes | None, level: int
) -> None:
    """One that was deleted is expected there; one in whose place another lies is worth a look."""
    recorded = f"{zlib.crc32(b'recorded'):x}"
    source, kept = tmp_path / "part-0", tmp_path / f"cmroot/part-0_{recorded}"
    kept.parent.mkdir()
    kept.write_bytes(b"recorded")
    if there is not None:
        source.write_bytes(there)
    storage = Summed((Root(uri=tmp_path.as_uri()),))
    file = FileRef(source.as_uri(), recorded, f"{tmp_path.as_uri()}/cmroot")
    answer = copy_file(CopyTask(file, f"{tmp_path.as_uri()}/target/part-0", 42, "sales.orders/ds=1"), storage, storage)
    assert isinstance(answer, CopyResult)
    assert answer.origin == "cmroot"
    (found,) = [one for one in messages(all_levels, logging.DEBUG) if "cmroot is taken" in one[1]]
    assert (found[0], found[2]) == (level, {"database": "sales", "table": "orders", "evid": 42})


def test_held_tables_and_skipped_events_of_a_load(all_levels: pytest.LogCaptureFixture) -> None:
    report = LoadReport(
        "hdfs://d/1",
        "copy",
        5,
        9,
        {},
        (),
        (
            Skipped(6, "ADD_PARTITION items/ds=1", "applied already (state id 6)"),
            Skipped(7, "copy.old", "dropped at 8"),
            Skipped(8, "ALTER_DATABASE sales", "applied already"),
        ),
        (Held(("items", "more"), 5, 7, "both gone"), Held(("late",), 3, 4, "its file is gone", tried=False)),
        collapsed=Collapsed(events=4, operations=1, files=3, bytes=2048),
    )
    log_report(report)
    found = [(level, told, values["database"], values["table"], values["evid"]) for level, told, values in messages(all_levels)]
    info, warning = logging.INFO, logging.WARNING
    assert found == [
        (warning, "the table is held at event 5: both gone", "copy", "items", 7),
        (warning, "the table is held at event 5: both gone", "copy", "more", 7),
        (info, "the table was held before, at event 3, and is not tried: its file is gone", "copy", "late", 4),
        (info, "skipped ADD_PARTITION items/ds=1: applied already (state id 6)", "copy", "items", 6),
        (info, "skipped copy.old: dropped at 8", "copy", "old", 7),
        (info, "skipped ALTER_DATABASE sales: applied already", "copy", None, 8),
        (info, f"collapsed: {report.collapsed}", "copy", None, 9),
    ]


def test_a_log_that_cannot_be_asked_what_became_of_lost_files(all_levels: pytest.LogCaptureFixture) -> None:
    class Silent:
        def current_event_id(self) -> int:
            raise Unreachable("no answer")

    assert LogLookahead(Silent(), "sales", 4).superseded("orders", "", 7) is None  # type: ignore[arg-type]
    told = "whether later events supersede lost files is not known: no answer"
    assert messages(all_levels) == [(logging.WARNING, told, {"database": "sales", "table": None, "evid": None})]
