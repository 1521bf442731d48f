"""The end of what stands for a source's transactions, which nobody else ends."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from hive_replication.acid.write_ids import WriteIds
from hive_replication.load.operations.left_open import end_replayed
from hive_replication.load.replica.target import Target
from hive_replication.metastore.types import Database, StorageDescriptor, Table
from hive_replication.policy import Root
from hive_replication.storage import Storage


@pytest.mark.parametrize("feeds", [True, False])
def test_replicas_of_the_database_are_told_of_it(tmp_path: Path, *, feeds: bool) -> None:
    """Hive's log names the source's transaction in an abort, and the next replica kept its own one open."""
    home, place = f"file://{tmp_path}/db", tmp_path / "db/t"
    for name in ("delta_0000001_0000001", "delta_0000002_0000002_0000", "base_0000002", "base_0000001", "delta_0000003_0000003"):
        (place / name).mkdir(parents=True)
        (place / name / "bucket_00000").touch()
    table = Table(tableName="t", dbName="db", parameters={"transactional": "true"}, partitionKeys=[])
    table.sd = StorageDescriptor(location=f"{home}/t")
    metastore = Mock(features=SimpleNamespace(major=4))
    metastore.database.return_value = Database("db", locationUri=home, parameters={"repl.source.for": "next"} if feeds else {})
    metastore.table_names.return_value = ["t"]
    metastore.tables.side_effect = lambda _database, _names: iter([table])
    metastore.write_ids.side_effect = [{"t": WriteIds(3, frozenset({2, 3}))}, {"t": WriteIds(3)}]
    metastore.open_transactions.return_value = [70, 71]
    metastore.replayed_among.return_value = [70]  # the other one is of a user
    metastore.write_ids_of.side_effect = lambda one, _database, _names: iter([("t", 2 if one == 70 else 3)])
    metastore.sources_of.return_value = iter([5, 6])
    policy: Any = SimpleNamespace(external_root=None, functions_root=None, target=SimpleNamespace(paths=()))
    storage = Storage((Root(uri=f"file://{tmp_path}"),))
    noted = list[object]()
    end_replayed(Target(metastore, storage, policy, storage), "db", "p", lambda names: noted.append(sorted(names)))
    assert (noted, metastore.replayed_among.call_args.args) == ([["t"]], ((70, 71),))
    committed = [one.args for one in metastore.replay_commit.call_args_list]
    aborted = [one.args for one in metastore.abort_replayed.call_args_list]
    left = sorted(one.name for one in place.iterdir())
    if feeds:
        assert (committed, aborted) == ([("p", 5, "db", ()), ("p", 6, "db", ())], [])
        assert left == ["base_0000001", "delta_0000001_0000001", "delta_0000003_0000003"]
    else:
        assert (committed, aborted, len(left)) == ([], [("p", [70])], 5)
