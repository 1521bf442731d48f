"""Kinds of tables that are treated alike, as Hive itself tells them apart (pure)."""

from __future__ import annotations

from hive_replication.metastore.types import Table, copy_of

#: Parameter of Spark's own tables: the format that they are of.
PROVIDER = "spark.sql.sources.provider"
_LAKES = {"iceberg": "Iceberg", "iceberg-view": "Iceberg", "delta": "Delta Lake", "hudi": "Hudi"}
#: Input formats of which a table's files say where its data is.
_READS = {"org.apache.hudi.": "Hudi", "org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat": "SymlinkTextInputFormat"}


def is_transactional(table: Table) -> bool:
    """Whether a table's data is written in transactions: full ACID or insert-only."""
    return (table.parameters or {}).get("transactional", "").lower() == "true"


def is_insert_only(table: Table) -> bool:
    """Whether a transactional table's files have no row ids: it takes no UPDATE or DELETE."""
    return (table.parameters or {}).get("transactional_properties", "").lower() == "insert_only"


def is_external(table: Table) -> bool:
    """Hive's own rule: the table type, or the parameter EXTERNAL=TRUE."""
    return table.tableType == "EXTERNAL_TABLE" or (table.parameters or {}).get("EXTERNAL", "").upper() == "TRUE"


def as_stored(table: Table) -> Table:
    """A table with the type that a metastore keeps of it: it goes by the parameter EXTERNAL, once the event has its image.

    Hive's clients set both; others may set the parameter alone.
    """
    external = (table.parameters or {}).get("EXTERNAL", "").upper() == "TRUE"
    before, kind = ("MANAGED_TABLE", "EXTERNAL_TABLE") if external else ("EXTERNAL_TABLE", "MANAGED_TABLE")
    if table.tableType != before:
        return table
    stored = copy_of(table)
    stored.tableType = kind
    return stored


def is_view(table: Table) -> bool:
    """Whether it is a view, which has no data; a materialized view has."""
    return table.tableType == "VIRTUAL_VIEW"


def is_partitioned(table: Table) -> bool:
    """Whether a table has partitions that hold data: those of a view only tell which ones of its tables it reads."""
    return bool(table.partitionKeys) and not is_view(table)


def other_shape(existing: Table, wanted: Table) -> bool:
    """Whether a table cannot be altered into another: other keys, a view against a table, or no longer transactional."""
    if is_transactional(existing) and not is_transactional(wanted):
        return True
    keys = [[(key.name, key.type) for key in table.partitionKeys or []] for table in (existing, wanted)]
    return keys[0] != keys[1] or is_view(existing) != is_view(wanted)


def has_files(table: Table) -> bool:
    """Whether a table's own directory holds its files: no view, and not partitioned."""
    return not is_view(table) and not table.partitionKeys and bool(table.sd.location)


def lake_format(table: Table) -> str:
    """The format of a table, or of a view, of which files of its own tell what it consists of; "" of any other.

    Iceberg's name all others by whole paths, as do manifests (of Delta Lake, for readers that know only Hive's formats): a copy
    would read the source. Those of Delta Lake and Hudi lie where Hive sees none (``_delta_log``, ``.hoodie``).
    Engines other than Hive mark such tables so, and have no storage handler for them.
    """
    parameters = table.parameters or {}
    reads = (table.sd and table.sd.inputFormat) or ""  # messages may describe a view without its storage
    marks = (parameters.get("table_type", "").lower(), parameters.get(PROVIDER, "").lower())
    named = (_LAKES[mark] for mark in marks if mark in _LAKES)
    return next(named, "") or next((name for start, name in _READS.items() if reads.startswith(start)), "")
