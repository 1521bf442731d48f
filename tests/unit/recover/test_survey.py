"""The survey of a recovery: which tables stay, and what becomes of the others."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.acid.write_ids import WriteIds
from hive_replication.load.replica.state import SOURCE
from hive_replication.metastore.types import Table
from hive_replication.recover import survey as surveyed
from hive_replication.verify import TableComparison

EVID = 200


def replica(name: str, source: str = "s/db") -> Table:
    return Table(tableName=name, parameters={SOURCE: source})


def states(monkeypatch: pytest.MonkeyPatch, compared: list[TableComparison], replicas: list[Table]) -> dict[str, str]:
    monkeypatch.setattr(import_module("hive_replication.recover.survey"), "compare_database", lambda *_, **__: iter(compared))
    names = [one.table for one in compared if one.table != "surplus"]
    source: Any = SimpleNamespace(identity="s", metastore=SimpleNamespace(table_names=lambda _: names))
    metastore = SimpleNamespace(table_names=lambda _: [one.tableName for one in replicas], tables=lambda *_: iter(replicas))
    target: Any = SimpleNamespace(policy=SimpleNamespace(target_of=lambda name: name), metastore=metastore)
    return {one.table: one.state for one in surveyed(source, target, "db", EVID)}


def test_only_equal_replicas_of_this_source_and_history_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = [
        TableComparison("equal", last_id=EVID),
        TableComparison("changed", differences=("a file differs",)),
        TableComparison("ahead", last_id=EVID + 1),
        TableComparison("absent", differences=("on the source only",)),
        TableComparison("foreign"),
        TableComparison("surplus", differences=("on the target only",)),
        TableComparison("f()", differences=("the function is on the source only",)),
    ]
    replicas = [replica(name) for name in ("equal", "changed", "ahead", "surplus")] + [replica("foreign", "other/db")]
    assert states(monkeypatch, compared, replicas) == {
        "equal": "equal",
        "changed": "differs",
        "ahead": "differs",
        "absent": "missing",
        "foreign": "missing",
        "surplus": "surplus",
    }


NONE = WriteIds(3)
OPEN = WriteIds(3, frozenset({3}))


@pytest.mark.parametrize(
    ("here", "there", "state"),
    [
        (OPEN, NONE, "differs"),
        (NONE, OPEN, "differs"),
        (OPEN, WriteIds(0), "differs"),
        (WriteIds(1), WriteIds(2), "differs"),
        (WriteIds(0), WriteIds(1), "differs"),
        (NONE, NONE, "equal"),
        pytest.param(NONE, WriteIds(0), "equal", id="those of a dropped table, or of what the files would show"),
    ],
)
def test_a_table_that_a_transaction_is_writing_to_does_not_count_as_equal(
    monkeypatch: pytest.MonkeyPatch, here: WriteIds, there: WriteIds, state: str
) -> None:
    """The end of the transaction is an event of no table: with the table it would be left out of the dump.

    Of a table that its own transaction made the replica gets no write id before the commit: none is open there.
    """
    monkeypatch.setattr(
        import_module("hive_replication.recover.survey"),
        "compare_database",
        lambda *_, **__: iter([TableComparison("written"), TableComparison("quiet"), TableComparison("plain")]),
    )
    replicas = [replica(name) for name in ("written", "quiet", "plain", "foreign")]
    for table in (*replicas[:2], replicas[3]):
        table.parameters["transactional"] = "true"
    replicas[3].parameters[SOURCE] = "other/db"

    def metastore(name: str, database: str) -> Any:
        def write_ids(asked: str, tables: list[str]) -> dict[str, WriteIds]:
            assert (asked, tables) == (database, ["quiet", "written"])
            return {"quiet": NONE, "written": here if name == "source" else there}

        names = [one.tableName for one in replicas]
        return SimpleNamespace(table_names=lambda _: names, tables=lambda *_: iter(replicas), write_ids=write_ids)

    source: Any = SimpleNamespace(identity="s", acid=True, metastore=metastore("source", "db"))
    target: Any = SimpleNamespace(policy=SimpleNamespace(target_of=lambda _: "copy"), metastore=metastore("target", "copy"))
    found = {one.table: one.state for one in surveyed(source, target, "db", EVID)}
    assert found == {"written": state, "quiet": "equal", "plain": "equal"}
