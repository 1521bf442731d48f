"""What an undo leaves of a transactional table that a load has made, at a metastore of Hive 4."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.load.journal.lane_record import LaneRecord, Step
from hive_replication.load.undo.undo import undo
from tests.faults import Killed
from tests.unit.load.undo.test_undo import (
    _Metastore,  # pyright: ignore[reportPrivateUsage]
    _Replica,  # pyright: ignore[reportPrivateUsage]
    replica,
    windows,
)

__all__ = ["replica", "windows"]


@dataclass
class _Hive4(_Metastore):
    """Forgets the write ids of a name only with a table that is dropped with its data, which stays where that is external."""

    features: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(major=4))
    highest: dict[str, int] = field(default_factory=dict[str, int])
    deleted: list[str] = field(default_factory=list[str])

    def drop_table(self, _: str, name: str, *, delete_data: bool) -> None:
        self._change(f"drop {name}")
        table = self.kept.pop(name)
        if delete_data:
            self.highest.pop(name, None)
            self.deleted += [] if table.parameters.get("EXTERNAL") == "TRUE" else [name]


@pytest.fixture
def made(windows: _Replica) -> _Replica:
    """A window makes the transactional table ``new``, to which a transaction writes that is aborted."""
    metastore = _Hive4(windows.metastore.home, windows.metastore.kept)
    windows.metastore = metastore
    cast("Any", windows.target).metastore = metastore
    image = windows.table("new", 1660)
    image.tableType, image.parameters = "MANAGED_TABLE", {**image.parameters, "transactional": "true"}
    steps = (Step("CreateTable", 1660, "new"), Step("AllocateWriteIds", 1670, "new"), Step("AbortTransaction", 1680, "new"))
    windows.load(1600, 1700, (LaneRecord(("new",), steps), {"new": image}))
    metastore.highest["new"] = 3
    return windows


@pytest.mark.parametrize("table", ["new", None])
@pytest.mark.parametrize("survived", range(4))
def test_an_undo_forgets_the_write_ids_of_a_table_that_a_load_made(made: _Replica, table: str | None, survived: int) -> None:
    """A20: the next table of the name would have had them; also where the undo is killed and run again."""
    metastore: Any = made.metastore
    metastore.dies = survived
    with suppress(Killed):
        undo(made.target, "db", table, 1600)
    changes = ["alter_database", "alter new", "drop new"]
    assert metastore.calls == changes[:survived]
    metastore.dies = -1
    undo(made.target, "db", table, 1600)
    assert made.stands == {"t": 1550, "u": 1460}
    assert (metastore.highest, metastore.deleted) == ({}, [])
