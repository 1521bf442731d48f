"""What a dump notes when it begins."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.dump import command
from hive_replication.dump.command import repl_dump
from hive_replication.dump.format.interface import DumpWriter
from hive_replication.dump.format.record_types import Known, Scope
from hive_replication.dump.format.tree import TreeStore
from hive_replication.policy import Policy, Root
from hive_replication.policy.model import Warehouse
from hive_replication.statements import ReplDump
from hive_replication.storage import Storage


class Killed(BaseException):
    """The process dies."""


@pytest.mark.parametrize("known", [None, Known(5, frozenset(), "token")], ids=["any", "of a recovery"])
def test_an_unfinished_dump_tells_its_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: Known | None) -> None:
    """Retention goes by it, where several policies have one dump root."""
    root = Root(uri=tmp_path.as_uri())
    side = Warehouse(metastore="thrift://127.0.0.1:1", roots=(root,))
    policy = Policy(name="second", source=side, target=side, dump_root=tmp_path.as_uri(), databases={"sales": "sales"})
    source: Any = SimpleNamespace(policy=policy, identity="uuid", database=lambda _: None)
    source.of_tables = lambda _: source
    found: list[str] = []

    def dies(_: object, __: object, writer: DumpWriter, *___: object) -> None:
        found.append(writer.directory)
        writer.suspend = lambda: None  # type: ignore[method-assign]
        raise Killed

    monkeypatch.setattr(command, "dump_objects", dies)
    store = TreeStore(Storage((root,)), tmp_path.as_uri())
    with pytest.raises(Killed):
        repl_dump(source, ReplDump("sales"), store, known=known)
    assert [store.policy_of(one) for one in found] == ["second"]
    assert store.create(Scope("sales"), "another").directory not in found
