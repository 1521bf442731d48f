"""What the servers allow: the same objects asked for, listed and copied by the same clients, and nothing else done."""

from __future__ import annotations

from contextlib import closing

from hive_metastore.ttypes import AddPartitionsRequest

from bench.company import formula
from bench.company.formula import WAREHOUSE, Slice
from hive_replication.connect import Connection
from hive_replication.load.plan.call_groups import MOST_ADDED
from hive_replication.metastore.tables import batches
from hive_replication.metastore.types import Partition
from hive_replication.parallel import Threads


def read_metastore(sides: Connection, of: Slice) -> None:
    """Asks the source's metastore for all tables and partitions, as many tables at once as a dump reads."""
    metastore = sides.source.metastore

    def read(table: str) -> int:
        metastore.table(of.name, table)
        return sum(1 for _ in metastore.partitions(of.name, table))

    if sum(sides.source.threads.unordered(read, metastore.table_names(of.name))) != of.objects:
        raise RuntimeError(f"the source does not show all partitions of {of.name}")


def list_files(sides: Connection, of: Slice) -> None:
    """Lists the directory of each partition and asks for the checksum of each file."""
    storage = sides.source.storage

    def list_one(directory: str) -> int:
        return len([storage.checksum(file.uri) for file in storage.files(directory)])

    if sum(storage.threads.map(list_one, _directories(sides, of))) != of.objects * of.files:
        raise RuntimeError(f"the source does not show all files of {of.name}")


def copy_files(sides: Connection, of: Slice) -> None:
    """Reads each file and writes it elsewhere at the target, with as many threads as a load has; proves nothing."""
    source, target = sides.source.storage, sides.target.storage
    root = sides.target.policy.target.roots[0].uri

    def copy(uri: str) -> int:
        return target.create(f"{root}raw/{uri.partition(f'{WAREHOUSE}/')[2]}", source.stream(uri))

    names = [formula.file_name(number) for number in range(of.files)]
    uris = (f"{directory}/{name}" for directory in _directories(sides, of) for name in names)
    with closing(Threads(sides.target.policy.files_in_flight, "raw")) as threads:
        if sum(1 for size in threads.map(copy, uris) if size) != of.objects * of.files:
            raise RuntimeError(f"files of {of.name} were not copied")


def add_partitions(sides: Connection, of: Slice) -> None:
    """Adds all partitions to tables of another database of the target, in as many calls as a load."""
    metastore, name = sides.target.metastore, f"{of.name}_raw"
    store = sides.target.policy.target.roots[0].uri.rstrip("/")
    metastore.create_database(formula.database(Slice(name, of.tables, of.partitions, of.files), store))

    def fill(number: int) -> None:
        table = formula.table(of, number, store)
        table.dbName = name
        metastore.create_table(table)
        made = (_elsewhere(formula.partition(of, number, one, store), name) for one in range(of.partitions))
        for batch in batches(made, MOST_ADDED):
            request = AddPartitionsRequest(dbName=name, tblName=table.tableName, parts=batch, ifNotExists=False, needResult=False)
            metastore.call("add_partitions", lambda client, request=request: client.add_partitions_req(request))

    list(sides.target.threads.unordered(fill, range(of.tables)))


def _elsewhere(partition: Partition, database: str) -> Partition:
    partition.dbName = database
    partition.sd.location = None
    return partition


def _directories(sides: Connection, of: Slice) -> list[str]:
    store = sides.source.policy.source.roots[0].uri.rstrip("/")
    tables = (f"{store}{WAREHOUSE}/{of.name}.db/{formula.table_name(number)}" for number in range(of.tables))
    values = [formula.partition_value(number) for number in range(of.partitions)]
    return [f"{table}/{formula.KEY}={value}" for table in tables for value in values]
