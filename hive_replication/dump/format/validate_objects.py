"""The metastore's objects of a dump: they have what all code relies on, which Thrift's text does not promise."""

from __future__ import annotations

from hive_replication.metastore.types import Database, Function, Partition, Table


def whole_database(database: Database) -> Database:
    """A database of a header; parameters that are left out are none.

    Raises:
        ValueError: it has no name.
    """
    if not database.name:
        raise ValueError("a database has no name")
    database.parameters = database.parameters or {}
    return database


def whole_table(table: Table) -> Table:
    """A table.

    Raises:
        ValueError: it has no name or no storage descriptor.
    """
    if not table.tableName or table.sd is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise ValueError("a table has no name or no storage descriptor")
    return table


def whole_partition(partition: Partition) -> Partition:
    """A partition.

    Raises:
        ValueError: it has no storage descriptor.
    """
    if partition.sd is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise ValueError("a partition has no storage descriptor")
    return partition


def whole_function(function: Function) -> Function:
    """A function.

    Raises:
        ValueError: it has no name, or a resource without a path.
    """
    if not function.functionName:
        raise ValueError("a function has no name")
    if not all(isinstance(resource.uri, str) for resource in function.resourceUris or ()):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError("a resource of a function has no path")
    return function
