"""The target's objects as they are read before lanes: how often, and by several threads."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target_view import KnownObjects
from hive_replication.metastore.types import FieldSchema, Partition, StorageDescriptor, Table

KEYS = [FieldSchema("ds", "string", None)]
MANY = 200_000


class Metastore:
    """Tables with partitions; one partition is read only once all have been."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.one_is_asked, self.all_are_read = Event(), Event()

    def tables(self, _: str, names: Iterable[str]) -> list[Table]:
        self.calls.append(list(names))
        return [Table(tableName=name, sd=StorageDescriptor(), partitionKeys=KEYS) for name in self.calls[-1]]

    def partitions(self, _database: str, _table: str, names: Iterable[str] | None = None) -> list[Partition]:
        if names is None:
            assert self.one_is_asked.wait(20)
            self.all_are_read.set()
            return [Partition(values=[str(number)]) for number in range(MANY)]
        self.one_is_asked.set()
        assert self.all_are_read.wait(20)
        return [Partition(values=[f"new{number}"]) for number in range(MANY)]


def known(metastore: Metastore) -> KnownObjects:
    return KnownObjects(metastore, "db", ReplicaState())  # type: ignore[arg-type]


def test_tables_that_are_asked_for_one_by_one_are_read_together() -> None:
    metastore = Metastore()
    objects = known(metastore)
    names = [f"t{number:03}" for number in range(150)]
    objects.announce(names)
    for name in names:
        assert set(objects.view({name: ()}).tables) == {name}
    assert metastore.calls == [names[:100], names[100:]]
    objects.forget()
    objects.view({names[120]: ()})
    objects.view({"other": ()})
    assert metastore.calls[2:] == [names[100:], ["other"]]


def test_a_thread_reads_partitions_while_another_goes_through_all() -> None:
    objects = known(Metastore())
    objects.view({"t": ()})
    with ThreadPoolExecutor(2) as pool:
        views = [pool.submit(objects.view, {"t": names}) for names in (None, [f"ds=new{number}" for number in range(MANY)])]
        assert [len(view.result().partitions) >= MANY for view in views] == [True, True]
