"""Aspects of a table or partition that must be equal on both sides, and paths of the source that must not (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from hive_replication.load.replica.failover_marks import READ_ONLY
from hive_replication.load.replica.fingerprint import IGNORED_PARAMETERS
from hive_replication.load.replica.hive4_translation import is_translated
from hive_replication.load.replica.owners import owner_on_target
from hive_replication.load.replica.state import CHECKPOINT, is_state
from hive_replication.load.replica.view_rewriting import keeps_text, rewritten
from hive_replication.load.replica.view_text import CannotRewrite, ReadsReplica, with_database, without_backquotes
from hive_replication.metastore.avro import SCHEMA_URL
from hive_replication.metastore.marked_external import TRANSLATION
from hive_replication.metastore.statistics import is_statistic
from hive_replication.metastore.types import Database, FieldSchema, Partition, PrincipalType, StorageDescriptor, Table
from hive_replication.policy.model import RenamedViews
from hive_replication.storage.boundary import qualified

_KINDS = {PrincipalType.ROLE: "role", PrincipalType.GROUP: "group"}
_BLANK = re.compile(r"\s")
#: Parameters, and beginnings of their names, of a comment and of Spark's columns with theirs.
_TEXTS = ("comment", "spark.sql.sources.schema")


def table_shape(table: Table) -> dict[str, str]:
    """Aspects of a table by their names; equal on both sides if the replica is right."""
    parameters = table.parameters or {}
    translated = is_translated(table)
    kept = {key: value for key, value in parameters.items() if not (translated and key in TRANSLATION)}
    return {
        "type": "MANAGED_TABLE" if translated else table.tableType,
        "owner": _owner(table.owner, table.ownerType),
        "partition columns": _columns(table.partitionKeys),
        "view text": without_backquotes(table.viewExpandedText or table.viewOriginalText),
        "view text as written": without_backquotes(table.viewOriginalText),
        **_storage_shape(table.sd),
        **_parameters(kept),
    }


def database_shape(database: Database, owners: Mapping[str, str]) -> dict[str, str]:
    """Aspects of a database that its replica has to have, too; ``readonly`` is each side's own, as is a directory.

    Args:
        database: of the source.
        owners: of the policy.
    """
    kept = {key: value for key, value in (database.parameters or {}).items() if key != READ_ONLY}
    owner = _owner(owner_on_target(database.ownerName, database.ownerType, owners), database.ownerType)
    return {"comment": database.description or "", **({"owner": owner} if owner else {}), **_parameters(kept)}


def partition_shape(partition: Partition) -> dict[str, str]:
    """Aspects of a partition by their names; see :func:`table_shape`."""
    return {**_storage_shape(partition.sd), **_parameters(partition.parameters)}


def expected_shape(
    table: Table, databases: Mapping[str, str], owners: Mapping[str, str], renamed_views: RenamedViews = "rewrite"
) -> dict[str, str]:
    """Aspects that the replica of a table has to have where databases and owners have other names: views read those databases.

    A view whose text stays by the policy has to have that text.

    Args:
        table: of the source.
        databases: databases that have another name on the target, by their names at the source.
        owners: of the policy.
        renamed_views: of the policy.
    """
    if keeps_text(table, databases, renamed_views):
        databases = {}
    owner = _owner(owner_on_target(table.owner, table.ownerType, owners), table.ownerType)
    try:
        return {**table_shape(rewritten(table, databases)), "owner": owner}
    except ReadsReplica as error:  # no text is right
        return {**table_shape(table), "owner": owner, "view text": f"one that no replica can have: {error}"}
    except CannotRewrite:  # then by what looks like a name of a database
        shape = {**table_shape(table), "owner": owner}
        for names in databases.items():
            shape["view text"] = with_database(shape["view text"], *names)
        return shape


def shape_differences(source: Mapping[str, str], target: Mapping[str, str], source_roots: Sequence[str]) -> Iterator[str]:
    """Aspects that differ. Parameters that hold a path of the source are others on the target: only their presence counts."""
    for aspect in sorted(source.keys() | target.keys()):
        ours, theirs = source.get(aspect), target.get(aspect)
        if ours and theirs and _is_mapped(aspect, ours, source_roots):
            continue
        if ours != theirs:
            yield f"{aspect} is {_shown(theirs)} on the target, {_shown(ours)} on the source"


def source_paths(
    thing: Table | Partition, source_roots: Sequence[str], target_roots: Sequence[str], original: Table | Partition | None
) -> Iterator[str]:
    """Paths in a target object that point to the source: a reader or writer of the replica would use the source's data.

    Args:
        thing: of the target.
        source_roots: storage roots of the source.
        target_roots: storage roots of the target; where one lies below a root of the source, its paths are the target's.
        original: the same of the source: texts that mention a path come as they are.
    """
    copied = _places(original) if original else {}
    roots = [root for root in source_roots if root not in target_roots]
    for place, value in _places(thing).items():
        if copied.get(place) == value and _is_text(place, value, roots):
            continue
        foreign = value
        for root in target_roots:
            foreign = _pattern(root).sub("", foreign)
        if any(_names(foreign, root) for root in roots):
            yield f"{place} points to the source: {value}"


def _places(thing: Table | Partition) -> dict[str, str]:
    """What may hold a path."""
    values = {"location": thing.sd.location or ""}
    parameters = (thing.parameters or {}).items()
    values |= {f"parameter {key}": value for key, value in parameters if key != CHECKPOINT}  # a dump, wherever it lies
    skewed = (thing.sd.skewedInfo.skewedColValueLocationMaps if thing.sd.skewedInfo else None) or {}
    values |= {f"directory of skewed values {', '.join(key)}": value for key, value in skewed.items()}
    return values | {f"serde parameter {key}": value for key, value in _serde_parameters(thing.sd).items()}


def _is_mapped(aspect: str, value: str, source_roots: Sequence[str]) -> bool:
    """Whether loads write another value for one of the source, of which they map what begins with a root."""
    follows = not value.startswith("/") or aspect.lower().endswith(f" {SCHEMA_URL}")
    named = any(_names(qualified(value, root) if follows else value, root) for root in source_roots)
    return named and aspect.startswith(("parameter ", "serde parameter ")) and not _is_text(aspect, value, source_roots)


def _is_text(aspect: str, value: str, source_roots: Sequence[str]) -> bool:
    """Whether a value is written for people, or describes columns with what is: a path that it mentions is not followed."""
    if any(_pattern(root).match(value) for root in source_roots):
        return False
    return aspect.rpartition("parameter ")[2].lower().startswith(_TEXTS) or bool(_BLANK.search(value))


def spark_path(thing: Table | Partition) -> Iterator[str]:
    """Whether Spark reads another directory than Hive: its tables use the serde parameter ``path``."""
    path = _serde_parameters(thing.sd).get("path")
    if path and path.rstrip("/") != (thing.sd.location or "").rstrip("/"):
        yield f"serde parameter path is {path}, location is {thing.sd.location}"


def _owner(name: str | None, kind: int | None) -> str:
    """An owner; metastores before Hive 3 know users only, and name no kind."""
    return f"{_KINDS[kind]} {name}" if kind in _KINDS else name or ""


def _storage_shape(sd: StorageDescriptor) -> dict[str, str]:
    serde = sd.serdeInfo
    return {
        "columns": _columns(sd.cols),
        "input format": sd.inputFormat or "",
        "output format": sd.outputFormat or "",
        "serde": (serde.serializationLib if serde else None) or "",
        "buckets": f"{sd.numBuckets} {sd.bucketCols or []}" if sd.bucketCols else "",
        "sort columns": ", ".join(f"{column.col} {column.order}" for column in sd.sortCols or []),
        "skewed by": _skew(sd),
        **{f"serde parameter {key}": value for key, value in _serde_parameters(sd).items()},
    }


def _skew(sd: StorageDescriptor) -> str:
    """Skewed columns and their values, and those values that have directories of their own, wherever these are."""
    found = sd.skewedInfo
    if found is None or not found.skewedColNames:
        return ""
    places = sorted(map(list, found.skewedColValueLocationMaps or ()))
    stored = f" stored as directories {places or ''}" if sd.storedAsSubDirectories or places else ""
    return f"{found.skewedColNames} on {sorted(found.skewedColValues or [])}{stored}".rstrip()


def _serde_parameters(sd: StorageDescriptor) -> Mapping[str, str]:
    return (sd.serdeInfo.parameters if sd.serdeInfo else None) or {}


def _columns(columns: Sequence[FieldSchema] | None) -> str:
    return ", ".join(
        f"{column.name} {column.type}" + (f" '{column.comment}'" if column.comment else "") for column in columns or []
    )


def _parameters(values: Mapping[str, str] | None) -> dict[str, str]:
    """Those that are compared: of the statistics of files and rows, Spark's too, replicas without data have none."""
    compared = (key for key in values or {} if not (is_state(key) or is_statistic(key) or key in IGNORED_PARAMETERS))
    return {f"parameter {key}": (values or {})[key] for key in compared}


def _names(value: str, root: str) -> bool:
    return bool(_pattern(root).search(value))


def _pattern(root: str) -> re.Pattern[str]:
    # The root without its slash, and nothing that would make it the beginning of another name (port 80 of 8020).
    return re.compile(re.escape(root.rstrip("/")) + r"(?![\w.:%-])", re.IGNORECASE)


def _shown(value: str | None) -> str:
    return "absent" if value is None else repr(value)
