"""A source that others change between any two calls, and a dump in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace

from hypothesis import strategies as st

from hive_replication.dump.format.checkpoints import Checkpoint
from hive_replication.dump.format.record_types import DumpHeader, DumpResult, EventRecord, PartitionRecord, TableRecord
from hive_replication.dump.source import Source
from hive_replication.events.files import FileRef
from hive_replication.metastore.constraints import Constraint
from hive_replication.metastore.dialect import Features
from hive_replication.metastore.faults import NotFound
from hive_replication.metastore.types import ColumnStatisticsObj, Database, Function, NotificationEvent, Partition, Table
from hive_replication.policy import Policy
from hive_replication.storage import FileChecksum, FileStatus
from tests import model
from tests.messages import row

MOVING_KINDS = (*model.KINDS, "rename out", "insert unlisted", "relocate", "relocate many")
#: How many actions others do between two calls, call by call.
paces = st.lists(st.sampled_from([0, 0, 0, 1, 1, 2, 5]), max_size=40)


class Draft:
    """A dump in memory."""

    directory = "memory:/dump"
    done: Checkpoint | None = None

    @property
    def number_of_events(self) -> int:
        return len(self.events)

    def due(self) -> bool:
        return False

    def keep(self, checkpoint: Checkpoint) -> None:
        raise AssertionError(checkpoint)

    def seal(self) -> None:
        pass

    def __init__(self) -> None:
        self.tables: dict[str, TableRecord] = {}
        self.parts: dict[str, dict[str, PartitionRecord]] = {}
        self.events: list[EventRecord] = []

    def put_table(self, record: TableRecord) -> None:
        self.tables[record.name] = record
        self.parts.setdefault(record.name, {})

    def put_partition(self, record: PartitionRecord) -> None:
        self.parts[record.table][record.name] = record

    def put_event(self, record: EventRecord) -> None:
        self.events.append(record)

    def table(self, name: str) -> TableRecord | None:
        return self.tables.get(name)

    def partition(self, table: str, name: str) -> PartitionRecord | None:
        return self.parts.get(table, {}).get(name)

    def partitions(self, table: str) -> Iterator[PartitionRecord]:
        return iter([self.parts[table][name] for name in sorted(self.parts.get(table, {}))])

    def drop_table(self, name: str) -> None:
        self.tables.pop(name, None)
        self.parts.pop(name, None)

    def drop_partition(self, table: str, name: str) -> None:
        self.parts.get(table, {}).pop(name, None)

    def finish(self, header: DumpHeader) -> DumpResult:
        return DumpResult(self.directory, header.to_evid, header, len(self.tables), 0, len(self.events), 0)

    def abandon(self) -> None:
        raise AssertionError

    def suspend(self) -> None:
        raise AssertionError

    def state(self) -> model.State:
        """Metadata and files as the dump has them; every path must be where the object lies."""
        return {
            name: (
                int(record.table.parameters["version"]),
                bool(record.table.partitionKeys),
                self._files(record.files, record.table.sd.location),
                {
                    key: (int(part.partition.parameters["version"]), self._files(part.files, part.partition.sd.location))
                    for key, part in self.parts[name].items()
                    if part.partition.tableName == name
                },
            )
            for name, record in self.tables.items()
        }

    @staticmethod
    def _files(files: Iterable[FileRef], location: str) -> model.Files:
        files = tuple(files)
        assert [file.uri for file in files if file.uri != f"{location}/{file.relative}"] == []
        return {file.relative: file.checksum for file in files}


@dataclass
class Moving:
    """The metastore and the storage of a source; before each call, others change something.

    Args:
        source: what they change.
        pending: changes still to come.
        pace: how many of them happen before each call, in turn.
        unreadable: ids of events whose messages nobody can read.
    """

    source: model.Source
    pending: list[tuple[str, int, int, int]]
    pace: Iterator[int]
    unreadable: frozenset[int] = frozenset()
    uri: str = "thrift://moving:9083"
    views_of_materialized: bool = False
    features: Features = field(default_factory=lambda: Features("3", "uuid"))
    #: One call after another, so that a failing example can be repeated.
    threads: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(map=map))

    @property
    def many(self) -> SimpleNamespace:
        return self.threads

    def _moves(self) -> None:
        for _ in range(next(self.pace, len(self.pending))):
            if self.pending:
                self.source.act(*self.pending.pop(0))

    def uuid(self) -> str:
        return "uuid"

    def config_value(self, _: str, default: str) -> str:
        return default

    def database(self, _: str) -> Database:
        return Database(name="db", locationUri=model.ROOT, parameters={"repl.source.for": "x"})

    def current_event_id(self) -> int:
        self._moves()
        return self.source.evid

    def table_names(self, _: str) -> list[str]:
        self._moves()
        return list(self.source.tables)

    def table(self, _: str, name: str) -> Table | None:
        self._moves()
        return self.source.table(name)

    def tables(self, _: str, names: Iterable[str]) -> Iterator[Table]:
        self._moves()
        return filter(None, map(self.source.table, names))

    def partition_names(self, _: str, table: str) -> list[str]:
        self._moves()
        if table not in self.source.tables:
            raise NotFound(table)
        return sorted(self.source.tables[table].parts)

    def partition_count(self, _: str, table: str) -> int:
        return len(self.partition_names(_, table))

    def partitions(self, _: str, table: str, names: Iterable[str] | None = None) -> Iterator[Partition]:
        self._moves()
        if table not in self.source.tables:
            raise NotFound(table)
        present = dict(zip(sorted(self.source.tables[table].parts), self.source.partitions(table), strict=True))
        yield from (present[name] for name in (present if names is None else names) if name in present)

    def functions(self, _: str) -> list[Function]:
        return []

    def constraints(self, _: str, __: str) -> tuple[Constraint, ...]:
        return ()

    def table_statistics(self, *_: object) -> list[ColumnStatisticsObj]:
        return []

    def partition_statistics(self, *_: object) -> dict[str, list[ColumnStatisticsObj]]:
        return {}

    def events(self, after: int, until: int) -> Iterator[NotificationEvent]:
        for event in map(row, self.source.events[after:until]):
            if event.eventId in self.unreadable:
                event.message = "{"
            yield event

    def event(self, evid: int) -> NotificationEvent | None:
        return row(self.source.events[evid - 1]) if evid else None

    def files(self, location: str) -> list[FileStatus]:
        self._moves()
        return [FileStatus(f"{location}/{name}", 1, False, 0) for name in self.source.storage.get(location, {})]

    def lacks_directory(self, location: str) -> bool:
        self._moves()
        return location not in self.source.storage

    def checksum(self, uri: str) -> FileChecksum:
        self._moves()
        location = max((one for one in self.source.storage if uri.startswith(f"{one}/")), key=len, default="")
        found = self.source.storage.get(location, {}).get(uri[len(location) + 1 :])
        if found is None:
            raise FileNotFoundError(uri)
        return FileChecksum("MD5", found)


POLICY = Policy.model_validate(
    {
        "source": {"metastore": "thrift://s:1", "roots": [{"uri": "hdfs://src/"}], "paths": ["hdfs://src/"]},
        "target": {"metastore": "thrift://t:1", "roots": [{"uri": "hdfs://dst/"}]},
        "dump_root": "hdfs://dst/dumps",
        "databases": {"db": "db"},
        "exclude": [model.OUTSIDE],
        "parallelism": {"tables": 1},
    }
)


def moving_source(
    source: model.Source,
    pending: Iterable[tuple[str, int, int, int]],
    pace: Iterable[int],
    unreadable: frozenset[int] = frozenset(),
) -> Source:
    """A source side with this metastore and storage."""
    moving = Moving(source, list(pending), iter(pace), unreadable)
    return Source(moving, moving, POLICY)  # type: ignore[arg-type]
