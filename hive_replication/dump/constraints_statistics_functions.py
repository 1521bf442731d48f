"""What belongs to tables and databases besides data: constraints, column statistics, functions; read, and folded (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TypeVar
from urllib.parse import urlsplit

from hive_replication.dump.format.record_types import FunctionRecord, TableRecord
from hive_replication.dump.source import Source
from hive_replication.dump.source_boundary import ANYWHERE, SourceBoundary
from hive_replication.errors import Refused
from hive_replication.events import event_types as r
from hive_replication.events.files import FileRef
from hive_replication.metastore.statistics import ACCURATE, claimed, with_claims
from hive_replication.metastore.types import ColumnStatistics, ColumnStatisticsObj, Function, Partition, Table, copy_of

Thing = TypeVar("Thing", Table, Partition)

#: Resources that are where they say on every machine: kept as they are. All others have to be copied.
_ANYWHERE = frozenset({"ivy", "http", "https", "file", ""})


def with_statistics(thing: Thing, columns: Iterable[ColumnStatisticsObj]) -> Thing:
    """A table or partition with its column statistics, as Hive 4 itself keeps them there (``colStats``)."""
    found = list(columns)
    made = copy_of(thing)
    made.colStats = ColumnStatistics(statsObj=found) if found else None
    return made


def statistics_of(thing: Table | Partition) -> list[ColumnStatisticsObj]:
    """The column statistics that a dumped table or partition carries."""
    return list(thing.colStats.statsObj) if thing.colStats else []


def changed_constraints(record: TableRecord, event: r.AddConstraints | r.DropConstraint) -> TableRecord:
    """A table after an event of its constraints; folding the event twice does no harm."""
    added = event.constraints if isinstance(event, r.AddConstraints) else ()
    gone = {one.name for one in added} if added else {getattr(event, "constraint", "")}
    return replace(record, constraints=(*(one for one in record.constraints if one.name not in gone), *added))


def changed_statistics(thing: Thing, event: r.UpdateStatistics | r.DeleteStatistics) -> Thing:
    """A table or partition after an event of its column statistics; folding the event twice does no harm."""
    columns = {one.colName: one for one in statistics_of(thing)}
    parameters = dict(thing.parameters or {})
    if isinstance(event, r.UpdateStatistics):
        columns |= {one.colName: one for one in event.columns}
        parameters.pop(ACCURATE, None)
        parameters |= {ACCURATE: event.accurate} if event.accurate else {}
    else:
        gone = {event.column} if event.column else set(columns)
        columns = {name: one for name, one in columns.items() if name not in gone}
        parameters = with_claims(parameters, claimed(parameters) - gone)
    made = with_statistics(thing, columns.values())
    made.parameters = parameters
    return made


def function_record(source: Source, function: Function, cm_root: str, boundary: SourceBoundary = ANYWHERE) -> FunctionRecord:
    """A function with those of its resources that have to be copied, as they are now.

    Hive records no checksum of them at the event (its own REPL DUMP looks at the dump, too), but copies them to cmroot at
    DROP FUNCTION.
    """
    outside = boundary.why_outside(function)  # then the load holds it
    return FunctionRecord(function, () if outside else tuple(_files(source, function, cm_root)))


def why_left_out(function: Function, files: Iterable[FileRef]) -> str:
    """Why a function is not replicated, or "" where it is.

    Args:
        function: of the source.
        files: those of its resources that are copied.
    """
    uris = [resource.uri for resource in function.resourceUris or ()]
    copied = {file.uri for file in files}
    lost = [uri for uri in uris if uri not in copied and urlsplit(uri).scheme not in _ANYWHERE]
    if not uris:
        return "functions without USING are not replicated (as in Hive): their class is wherever the source's servers have it"
    if lost:
        return f"its resource {lost[0]} lies outside the source's storage roots"
    if not copied:
        return "none of its resources is copied, so that its replica could not be told from a function of somebody else"
    return ""


def _files(source: Source, function: Function, cm_root: str) -> Iterator[FileRef]:
    names: set[str] = set()
    for number, resource in enumerate(function.resourceUris or ()):
        name = PurePosixPath(resource.uri).name
        subdir = str(number) if name in names else ""
        names.add(name)
        try:
            source.storage.check(resource.uri)
        except Refused:
            continue
        try:
            checksum = source.storage.checksum(resource.uri)
        except FileNotFoundError:
            checksum = None
        yield FileRef(resource.uri, checksum.value if checksum else "", cm_root if checksum else "", subdir)
