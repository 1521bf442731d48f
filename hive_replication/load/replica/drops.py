"""Dropping tables, and names that the target's metastore still has write ids of.

Hive 4 keeps the write ids of a transactional table that is dropped without its data. The next table of that name would have
them: writes that the source makes again seem committed, and a rename to the name fails. Readers that began before the drop still
need the files, so the metastore must not delete them. It never deletes those of an external table, but forgets its write ids.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from hive_replication.load.layout.directories import HIDDEN, Layout, staging_name
from hive_replication.load.replica.managed_location import open_location
from hive_replication.load.replica.state import PREFIX, SOURCE
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.marked_external import MANAGED, MARK, restored
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import FieldSchema, SerDeInfo, StorageDescriptor, Table, copy_of, directory_of

_LOG = logging.getLogger(__name__)

_PLACEHOLDER = PREFIX + "placeholder"
_PURGE = "external.table.purge"
_TEXT = "org.apache.hadoop.mapred.TextInputFormat"
_TEXT_OUT = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
_TEXT_SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"


def drop_table(metastore: Metastore, table: Table) -> None:
    """Drops a table or view; its files stay, and its write ids are forgotten.

    Args:
        metastore: the target's.
        table: as it is now.
    """
    forget = is_placeholder(table) or (
        _keeps_write_ids(metastore) and is_transactional(table) and _made_external(metastore, table)
    )
    with restoring(metastore, table if forget and not is_placeholder(table) else None):  # a materialized view reads it, for one
        metastore.drop_table(table.dbName, table.tableName, delete_data=forget)


@contextmanager
def restoring(metastore: Metastore, table: Table | None) -> Generator[None]:
    """Makes a table managed again where the metastore refuses the rename or drop for which it was made external.

    Args:
        metastore: the target's.
        table: as it was before; None for one that was not made external.
    """
    try:
        yield
    except MetastoreError:
        if table is not None:
            with suppress(MetastoreError):
                metastore.alter_table(table.dbName, table.tableName, restored(table))
        raise


def vacate(metastore: Metastore, image: Table, first: Callable[[], None] = lambda: None) -> None:
    """Makes the metastore forget write ids of a name that no table has: somebody dropped one and left its data there.

    They are forgotten with a table, so there is an empty one for a moment.

    Args:
        metastore: the target's.
        image: of the table that is about to get the name.
        first: called before they are forgotten.
    """
    database, name = image.dbName, image.tableName
    if not (is_transactional(image) and _keeps_write_ids(metastore) and metastore.max_write_id(database, name)):
        return
    first()
    home, there = open_location(metastore, database), metastore.table(database, name)
    if there is None and home is not None and (place := home.managedLocationUri or home.locationUri):
        there = _placeholder(image, _place(place))
        metastore.create_table(there)
    if there is not None and is_placeholder(there):
        metastore.drop_table(database, name, delete_data=True)


def is_placeholder(table: Table) -> bool:
    """Whether a load was killed in :func:`vacate`: the table is none of the source."""
    return _PLACEHOLDER in (table.parameters or {}) and f"/{HIDDEN}/" in directory_of(table)


def _keeps_write_ids(metastore: Metastore) -> bool:
    """Whether a drop may leave write ids: Hive 3 forgets them whatever becomes of the data, and replicas there have none."""
    return metastore.features.major >= 4


def _made_external(metastore: Metastore, table: Table) -> bool:
    """Makes a table external by its parameter alone, which Hive goes by when it drops one; False where the metastore does not."""
    if table.tableType != "MANAGED_TABLE" and MARK not in (table.parameters or {}):
        return False
    external = copy_of(table)
    kept = {key: value for key, value in (table.parameters or {}).items() if key != _PURGE}
    external.parameters = {**kept, "EXTERNAL": "TRUE", MARK: MANAGED}
    try:
        metastore.alter_table(table.dbName, table.tableName, external)
    except MetastoreError as error:
        _LOG.info("write ids of %s.%s stay until the name is used again: %s", table.dbName, table.tableName, error)
        return False
    found = metastore.table(table.dbName, table.tableName)
    parameters = (found.parameters if found else None) or {}
    return parameters.get("EXTERNAL", "").upper() == "TRUE" and parameters.get(_PURGE, "").lower() != "true"


def _place(location: str) -> str:
    """A directory that retention removes like any other that a killed load left."""
    return Layout(location).staging(staging_name(0, time.time_ns(), transactional=False))


def _placeholder(image: Table, location: str) -> Table:
    storage = StorageDescriptor(
        cols=[FieldSchema("nothing", "int", "")],
        location=location,
        inputFormat=_TEXT,
        outputFormat=_TEXT_OUT,
        serdeInfo=SerDeInfo(serializationLib=_TEXT_SERDE, parameters={}),
        numBuckets=-1,
        bucketCols=[],
        sortCols=[],
        parameters={},
    )
    kind = {"transactional": "true", "transactional_properties": "insert_only"}
    parameters = {**kind, SOURCE: (image.parameters or {}).get(SOURCE, ""), _PLACEHOLDER: "true"}
    return Table(image.tableName, image.dbName, sd=storage, tableType="MANAGED_TABLE", parameters=parameters, partitionKeys=[])
