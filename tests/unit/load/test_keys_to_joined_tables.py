"""Foreign keys of a window to a table that comes whole with it, after its events."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from hive_metastore import ttypes as t

from hive_replication.events import event_records as r
from hive_replication.load import newly_included_tables
from hive_replication.load.newly_included_tables import with_joined_tables
from hive_replication.load.operations.constraints import on_target
from hive_replication.load.plan.lanes import WindowEvent
from hive_replication.load.replica.held_reasons import TAKEN_IN_REASON
from hive_replication.load.replica.state import LAST_ID
from hive_replication.load.report import Held, Skipped
from hive_replication.metastore.constraints import Constraint
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.types import Table
from tests.replica import MAPPING

KEY = Constraint("fks", (t.SQLForeignKey("db", "b", "x", "db", "a", "x", 1, 0, 0, "k1", None),))
ADDED = r.AddConstraints(5, 8, "ADD_FOREIGNKEY", "db", "a", (KEY,))
OTHER = r.DropConstraint(6, 8, "DROP_CONSTRAINT", "db", "a", "k2")
DROPPED = r.DropConstraint(6, 8, "DROP_CONSTRAINT", "db", "a", "k1")
_, (REASON,) = on_target((KEY,), MAPPING, "a", lambda _: False)
SKIPPED = [Skipped(evid, "ADD_FOREIGNKEY a", REASON) for evid in (5, 4)]
GONE = r.DropTable(6, 8, "DROP_TABLE", "db", "a", None)


class Metastore:
    """The child table of the target, and the foreign keys that it gets."""

    def __init__(self, evid: int, *tables: str, refuses: bool = False) -> None:
        self.there = {name: Table(name, MAPPING.target_database, parameters={LAST_ID: str(evid)}) for name in tables}
        self.refuses, self.keys = refuses, list[tuple[str, object]]()

    def table(self, _: str, name: str) -> Table | None:
        return self.there.get(name)

    def constraints(self, *_: object) -> list[Constraint]:
        return []

    def add_constraint(self, _: str, key: Constraint) -> None:
        if self.refuses:
            raise MetastoreError("no such key")
        self.keys.append((key.name, key.parent))


@pytest.mark.parametrize(
    ("later", "stands", "held", "comes"),
    [
        ((), 5, (), True),
        ((OTHER,), 6, (), True),
        ((DROPPED,), 6, (), False),
        ((GONE,), 6, (), False),
        ((), 11, (), False),  # it has what the source has then
        ((), 4, ("a",), False),  # its catch-up does so
    ],
)
def test_they_come_after_it(
    later: tuple[r.Event, ...], stands: int, held: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, *, comes: bool
) -> None:
    metastore, (first, second) = Metastore(stands, "a", "b"), SKIPPED
    assert joined(metastore, monkeypatch, later, held) == ([second] if comes else [first, second])
    assert metastore.keys == ([("k1", (MAPPING.target_database, "b"))] if comes else [])


def test_one_that_the_metastore_refuses_holds_nothing_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report said that the table is not replicated that had come."""
    metastore = Metastore(5, "a", "b", refuses=True)
    kept, told = joined(metastore, monkeypatch)
    assert (kept, told.evid, told.what) == (SKIPPED[1], 5, f"{MAPPING.target_database}.a")
    assert told.reason.endswith(f"could not be added after {MAPPING.target_database}.b came; repair {told.what}: no such key")


def test_none_is_added_to_one_that_did_not_come_since_it_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    metastore = Metastore(5, "a")
    assert (joined(metastore, monkeypatch), metastore.keys) == (SKIPPED, [])


def joined(
    metastore: Metastore, monkeypatch: pytest.MonkeyPatch, later: tuple[r.Event, ...] = (), held: tuple[str, ...] = ()
) -> list[Skipped]:
    """What a window with a foreign key skips, with which the table comes that the key points at."""
    evid = 10
    monkeypatch.setattr(newly_included_tables, "load_beside", Mock(return_value=True))
    monkeypatch.setattr(newly_included_tables, "is_ours", Mock(return_value=True))
    waiting = [Held(("b",), evid, evid, f"{TAKEN_IN_REASON}waits"), *(Held((name,), 4, 5, "failed") for name in held)]
    session: Any = SimpleNamespace(
        reader=SimpleNamespace(header=SimpleNamespace(to_evid=evid, joined={"b": "its dump"}, before="", taken="")),
        state=SimpleNamespace(left={}),
        target=SimpleNamespace(metastore=metastore),
        database=MAPPING.target_database,
        identity=MAPPING.source,
        mapping=MAPPING,
        includes=Mock(return_value=True),
        dry=False,
        held=waiting,
        skipped=list(SKIPPED),
    )
    events = [cast("WindowEvent", SimpleNamespace(event=one, row=SimpleNamespace(table=one.table))) for one in (ADDED, *later)]
    with_joined_tables(session, cast("Any", None), events)
    return session.skipped
