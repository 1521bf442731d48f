"""Which interrupted dumps are resumed: those of an equal request, with a checkpoint, whose writer is gone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hive_replication.dump.format.checkpoints import Checkpoint, Written
from hive_replication.dump.format.claims import is_left_over, policy_of
from hive_replication.dump.format.closed_directories import chosen
from hive_replication.dump.format.resume import WriterClaim, interrupted
from hive_replication.errors import ReplicationError
from hive_replication.policy import Root
from hive_replication.process import machine
from hive_replication.storage import AlreadyExists, Storage
from tests.faults import closed_directory

ACK = "_finished_dump"
REQUEST = '["uuid", {}, null, {"name": "sales"}]\n[]'
AT_5 = Checkpoint(5, "hash of 5", {"orders": (3, 4)})


class Dumps:
    """Directory of the dumps of a database."""

    def __init__(self, path: Path) -> None:
        self.uri = path.as_uri()
        self.storage = Storage((Root(uri=self.uri),))

    def claim(self, name: str = "1", request: str = REQUEST) -> WriterClaim:
        """A claim that has written a table and two events."""
        claim = WriterClaim(self.storage, f"{self.uri}/{name}", request)
        claim.written.tables |= {"orders": 2, "unread": 1}
        claim.written.partitions |= {("orders", "d=1"): 4, ("unread", "d=1"): 1}
        claim.written.events |= {4: 0, 5: 3}
        return claim

    def released(self, name: str = "1") -> None:
        claim = self.claim(name)
        claim.save(AT_5)
        assert claim.release()

    def left(self, before: float) -> list[str]:
        directories = [entry.uri for entry in self.storage.ls(self.uri)]
        return chosen(directories, lambda one: is_left_over(self.storage, one, ACK, before))

    def found(self, request: str = REQUEST) -> WriterClaim | None:
        return interrupted(self.storage, self.uri, request, ACK)


@pytest.fixture
def dumps(tmp_path: Path) -> Dumps:
    return Dumps(tmp_path)


def test_a_released_dump_is_resumed_from_its_checkpoint(dumps: Dumps) -> None:
    dumps.released()
    found = dumps.found()
    assert found is not None
    assert found.done == AT_5
    # The table that was not read as a whole is no part of the checkpoint.
    assert found.written == Written({"orders": 2}, {("orders", "d=1"): 4}, {4: 0, 5: 3})


def test_checkpoints_add_up(dumps: Dumps) -> None:
    claim = dumps.claim()
    claim.save(AT_5)
    claim.written.events[6] = 1
    claim.save(Checkpoint(6, "hash of 6", {"orders": (3, 4), "unread": (5, 6)}))
    claim.release()
    found = dumps.found()
    assert found is not None
    assert found.done == Checkpoint(6, "hash of 6", {"orders": (3, 4), "unread": (5, 6)})
    assert found.written == claim.written


def test_a_dump_without_a_checkpoint_is_not_resumed(dumps: Dumps) -> None:
    assert not dumps.claim().release()
    assert dumps.found() is None


@pytest.mark.parametrize(("written", "resumed"), [("request", True), ("request\n[]", False), ('request\n["hdfs://a/b"]', True)])
def test_a_dump_is_resumed_where_it_may_read_the_same(dumps: Dumps, written: str, *, resumed: bool) -> None:
    """Or if it is of an earlier version, which read all places."""
    claim = dumps.claim(request=written)
    claim.save(AT_5)
    assert claim.release()
    assert (dumps.found('request\n["hdfs://a/b"]') is not None) == resumed


def test_a_dump_of_another_request_is_not_resumed(dumps: Dumps) -> None:
    dumps.released()
    assert dumps.found("another request") is None


def test_a_complete_dump_is_not_resumed(dumps: Dumps) -> None:
    dumps.released()
    dumps.storage.write(f"{dumps.uri}/1/{ACK}", b"{}")
    assert dumps.found() is None


def test_a_dump_whose_objects_change_again_is_not_resumed(dumps: Dumps) -> None:
    claim = dumps.claim()
    claim.save(AT_5)
    claim.seal()
    claim.release()
    assert dumps.found() is None


@pytest.mark.parametrize(
    ("owner", "resumed"), [((machine(), os.getpid()), False), (("another machine", 1), False), (("", 0), True)]
)
def test_a_dump_is_not_taken_from_a_living_writer(dumps: Dumps, owner: tuple[str, int], resumed: bool) -> None:
    """A writer on another machine counts as gone only after a time without changes."""
    dumps.released()
    text = json.dumps({"request": REQUEST, "machine": owner[0], "pid": owner[1]})
    dumps.storage.write(f"{dumps.uri}/1/_attempt_1", text.encode())
    assert (dumps.found() is not None) is resumed


def test_the_newest_dump_is_resumed(dumps: Dumps) -> None:
    dumps.released("1")
    dumps.released("2")
    found = dumps.found()
    assert found is not None
    assert found.directory == f"{dumps.uri}/2"


def test_a_directory_that_is_somebody_elses_stops_no_dump(dumps: Dumps, caplog: pytest.LogCaptureFixture) -> None:
    """An administrator's dump by hand: all dumps of its database ended there, and retention of them."""
    for name in ("1", "2", "3"):
        dumps.released(name)
    with closed_directory(f"{dumps.uri}/3"):
        found = dumps.found()
        assert dumps.left(2.0**33) == [f"{dumps.uri}/1"]  # the other one is gone on with
    assert found is not None
    assert found.directory == f"{dumps.uri}/2"
    assert caplog.messages[0].startswith(f"the dump {dumps.uri}/3 is passed over: ")


def test_a_claim_that_cannot_be_read_stops_no_dump(
    dumps: Dumps, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block of it was lost, say: no dump of its database was made any more."""
    for name in ("1", "2"):
        dumps.released(name)
    read = dumps.storage.read

    def lost(uri: str, **most: int) -> bytes:
        if uri.startswith(f"{dumps.uri}/2/"):
            raise ReplicationError("no DataNode has it")
        return read(uri, **most)

    monkeypatch.setattr(dumps.storage, "read", lost)
    found = dumps.found()
    assert found is not None
    assert found.directory == f"{dumps.uri}/1"
    assert caplog.messages[0] == f"the dump {dumps.uri}/2 is passed over: no DataNode has it"


def test_a_claim_ends_with_the_next_one(dumps: Dumps) -> None:
    dumps.released()
    found = dumps.found()
    assert found is not None
    with pytest.raises(AlreadyExists):
        WriterClaim(dumps.storage, found.directory, "request", 2)
    WriterClaim(dumps.storage, found.directory, "request", 3)
    with pytest.raises(ReplicationError, match="another process"):
        found.save(Checkpoint(7, ""))


def test_what_was_written_after_the_last_checkpoint_is_removed(dumps: Dumps) -> None:
    dumps.released()
    for path in ("5/_metadata", "6/_metadata"):
        dumps.storage.write(f"{dumps.uri}/1/{path}", b"{}")
    assert dumps.found() is not None
    assert [dumps.storage.exists(f"{dumps.uri}/1/{evid}") for evid in (5, 6)] == [True, False]


def test_dumps_left_over_are_incomplete_and_old(dumps: Dumps) -> None:
    dumps.released("1")
    dumps.released("2")
    dumps.storage.write(f"{dumps.uri}/2/{ACK}", b"{}")
    future = 2.0**33
    assert dumps.left(future) == [f"{dumps.uri}/1"]
    assert dumps.left(1.0) == []


def test_a_dump_that_its_writer_still_writes_is_not_left_over(dumps: Dumps) -> None:
    claim = dumps.claim()
    claim.save(AT_5)
    assert dumps.left(2.0**33) == []
    claim.release()
    assert dumps.left(2.0**33) == [claim.directory]


def test_what_tells_no_policy_is_not_left_over_unless_retention_began_to_remove_it(dumps: Dumps) -> None:
    dumps.released("1")
    dumps.claim("2", "request").release()
    for name in ("3", "4"):
        dumps.storage.write(f"{dumps.uri}/{name}/{'_removed' if name == '4' else 'data'}", b"")
    dumps.storage.write(f"{dumps.uri}/1/_attempt_2", b"")  # its writer died while it wrote this
    assert dumps.left(2.0**33) == [f"{dumps.uri}/1", f"{dumps.uri}/4"]
    assert [policy_of(dumps.storage, f"{dumps.uri}/{name}") for name in (1, 2, 3, 4)] == ["sales", "", "", ""]
