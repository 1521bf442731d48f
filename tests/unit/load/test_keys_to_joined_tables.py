"""Foreign keys of a window to a table that comes whole with it, after its events."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

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
from hive_replication.metastore.types import Table
from tests.replica import MAPPING

KEY = Constraint("fks", (t.SQLForeignKey("db", "b", "x", "db", "a", "x", 1, 0, 0, "k1", None),))
ADDED = r.AddConstraints(5, 8, "ADD_FOREIGNKEY", "db", "a", (KEY,))
OTHER = r.DropConstraint(6, 8, "DROP_CONSTRAINT", "db", "a", "k2")
DROPPED = r.DropConstraint(6, 8, "DROP_CONSTRAINT", "db", "a", "k1")
GONE = r.DropTable(6, 8, "DROP_TABLE", "db", "a", None)


class Metastore:
    """The child table of the target, and the foreign keys that it gets."""

    def __init__(self, evid: int) -> None:
        self.child = Table("a", MAPPING.target_database, parameters={LAST_ID: str(evid)})
        self.keys: list[tuple[str, object]] = []

    def table(self, _: str, name: str) -> Table | None:
        return self.child if name == "a" else None

    def constraints(self, *_: object) -> list[Constraint]:
        return []

    def add_constraint(self, _: str, key: Constraint) -> None:
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
    metastore, evid = Metastore(stands), 10
    monkeypatch.setattr(newly_included_tables, "load_beside", lambda *_: True)
    monkeypatch.setattr(newly_included_tables, "is_ours", lambda *_: True)
    _, (reason,) = on_target((KEY,), MAPPING, "a", lambda _: False)
    skipped = [Skipped(5, "ADD_FOREIGNKEY a", reason), Skipped(4, "ADD_FOREIGNKEY a", reason)]
    waiting = [Held(("b",), evid, evid, f"{TAKEN_IN_REASON}waits"), *(Held((name,), 4, 5, "failed") for name in held)]
    session: Any = SimpleNamespace(
        reader=SimpleNamespace(header=SimpleNamespace(to_evid=evid, joined={"b": "its dump"}, before="", taken="")),
        state=SimpleNamespace(left={}),
        target=SimpleNamespace(metastore=metastore),
        database=MAPPING.target_database,
        identity=MAPPING.source,
        mapping=MAPPING,
        includes=lambda _: True,
        dry=False,
        held=waiting,
        skipped=list(skipped),
    )
    events = [cast("WindowEvent", SimpleNamespace(event=one, row=SimpleNamespace(table=one.table))) for one in (ADDED, *later)]
    with_joined_tables(session, cast("Any", None), events)
    assert metastore.keys == ([("k1", (MAPPING.target_database, "b"))] if comes else [])
    assert session.skipped == (skipped[1:] if comes else skipped)
