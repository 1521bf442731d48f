"""What the error of a failed load says of what it changed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NoReturn, cast
from unittest.mock import Mock

import pytest

from hive_replication.errors import Refused, ReplicationError, Unreachable
from hive_replication.load import command
from hive_replication.load.apply.running_sums import Tally
from hive_replication.load.command import repl_load
from hive_replication.statements import ReplLoad

HEADER = SimpleNamespace(
    kind="incremental", scope=SimpleNamespace(database="db", table=None), from_evid=1, to_evid=2, recovery=""
)


def fails(*_: object, **__: object) -> NoReturn:
    raise Unreachable("the store is down")


def load() -> bool:
    with pytest.raises(ReplicationError) as caught:
        repl_load(
            cast("Any", SimpleNamespace(policy=None, metastore=None)), ReplLoad("dir", "db"), cast("Any", None), cast("Any", None)
        )
    return caught.value.unchanged


def test_a_load_that_fails_before_it_changes_an_object_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lock is refused, say, or a store is down: then nothing of it is to be recorded."""
    monkeypatch.setattr(command, "opened", fails)
    assert load()
    kept: list[object] = []
    records = SimpleNamespace(prepare=lambda: None, keep=kept.append)
    monkeypatch.setattr(command, "opened", lambda *_: SimpleNamespace(header=HEADER, directory="dir"))
    monkeypatch.setattr(command, "prefix_of", lambda reader, _: reader)
    monkeypatch.setattr(command.RecordStore, "of", lambda *_: records)
    monkeypatch.setattr(command, "MetastoreLock", fails)
    assert load()

    def changes(work: Any, *_: object, **__: object) -> NoReturn:
        work.session = SimpleNamespace(tally=Tally(changing=True), journal_token="")  # a bootstrap has none
        raise Refused("it holds a table that is not our replica")

    monkeypatch.setattr(command, "MetastoreLock", Mock())
    monkeypatch.setattr(command._Load, "after_interrupted", lambda *_, **__: None)
    monkeypatch.setattr(command._Load, "_run", changes)
    assert not load()
