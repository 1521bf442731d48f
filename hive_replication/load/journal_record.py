"""One lane's file in the journal: what the lane is about to change, as data and as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hive_replication.errors import ReplicationError
from hive_replication.metastore import tjson
from hive_replication.metastore.types import Partition, Table, directory_of


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of a lane.

    Args:
        kind: of the operation.
        evid: its event id.
        table: target table name at that moment.
        new_name: the table's name after a rename.
        partitions: names of partitions concerned.
        directory: where a created table lies.
        origin: of a dropped table, the name it had before the load, "" where the load made it.
        chain: of a dropped table, names it had before in this lane, each with the event id that took the name away.
    """

    kind: str
    evid: int
    table: str
    new_name: str = ""
    partitions: tuple[str, ...] = ()
    directory: str = ""
    origin: str = ""
    chain: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class LaneRecord:
    """What a lane is about to change.

    Args:
        names: target table names of the lane.
        steps: its operations in order.
        tables: images of the tables before, by the name they had then.
        partitions: images of the partitions touched, by table and name; None of one that did not exist.
        files: names of the files in directories that get more.
        left: directories that nothing points at any more afterwards.
        placed: directories that the lane puts into use.
    """

    names: tuple[str, ...]
    steps: tuple[Step, ...]
    tables: Mapping[str, Table] = field(default_factory=dict[str, Table])
    partitions: Mapping[str, Mapping[str, Partition | None]] = field(default_factory=dict[str, Mapping[str, Partition | None]])
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    left: tuple[str, ...] = ()
    placed: tuple[str, ...] = ()

    @property
    def kept(self) -> set[str]:
        """Those of the directories left that hold what was visible before the lane."""
        things = [*self.tables.values(), *(part for parts in self.partitions.values() for part in parts.values() if part)]
        return set(map(directory_of, things)) & set(self.left)


def record_text(record: LaneRecord) -> bytes:
    """A lane's record as JSON, thrift objects as TJSON text inside."""
    value = {
        "names": record.names,
        "steps": [{key: value for key, value in _fields(step).items() if value} for step in record.steps],
        "tables": {name: tjson.dumps(table) for name, table in record.tables.items()},
        "partitions": {
            table: {name: tjson.dumps(part) if part else None for name, part in parts.items()}
            for table, parts in record.partitions.items()
        },
        "files": record.files,
        "left": record.left,
        "placed": record.placed,
    }
    return json.dumps(value, ensure_ascii=False).encode()


def record_of(data: bytes) -> LaneRecord:
    """Reads :func:`record_text`.

    Raises:
        ReplicationError: it is damaged.
    """
    try:
        value: dict[str, Any] = json.loads(data)
        return LaneRecord(
            tuple(value["names"]),
            tuple(_step(step) for step in value["steps"]),
            {name: tjson.loads(Table, text) for name, text in value["tables"].items()},
            {
                table: {name: tjson.loads(Partition, text) if text else None for name, text in parts.items()}
                for table, parts in value["partitions"].items()
            },
            {place: tuple(names) for place, names in value["files"].items()},
            tuple(value["left"]),
            tuple(value["placed"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReplicationError(f"a file of the journal is unreadable: {error!r}") from error


def _fields(step: Step) -> dict[str, Any]:
    return {name: getattr(step, name) for name in Step.__slots__}


def _step(value: dict[str, Any]) -> Step:
    value["partitions"] = tuple(value.get("partitions", ()))
    value["chain"] = tuple((name, evid) for name, evid in value.get("chain", ()))
    return Step(**value)
