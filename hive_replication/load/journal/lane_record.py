"""One lane's file in the journal: what the lane is about to change, as data and as text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from hive_replication.bounded_json import MIB, parsed
from hive_replication.errors import ReplicationError
from hive_replication.load.replica.state import SOURCE
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.types import Partition, Table, directory_of
from hive_replication.storage import TooLarge

Image = TypeVar("Image", Table, Partition)
#: Bytes of one file of the journal, and those above which the record of a lane is split.
MOST, PART = 64 * MIB, 8 * MIB
_Evid = Annotated[int, Field(ge=0, le=2**63 - 1)]


class _Text(BaseModel):
    """Fields of a file of the journal, which users of the target can write: each is checked before anything uses it."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class _StepText(_Text):
    kind: str
    evid: _Evid
    table: str
    new_name: str = ""
    partitions: list[str] = []
    directory: str = ""
    origin: str = ""
    chain: list[Annotated[tuple[str, _Evid], Field(strict=False)]] = []


class _LaneText(_Text):
    names: list[str]
    steps: list[_StepText]
    tables: dict[str, str]
    partitions: dict[str, dict[str, str | None]]
    files: dict[str, list[str]]
    left: list[str]
    placed: list[str]


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of a lane.

    Args:
        kind: of the operation.
        evid: its event id.
        table: target table name at that moment.
        new_name: the table's name after a rename.
        partitions: names of partitions concerned.
        directory: location of a created table.
        origin: of a dropped table, its name before the load, "" if the load created it.
        chain: of a dropped table, its earlier names in this lane, each with the event id of the rename.
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
        tables: images of the tables before the lane, by their names then.
        partitions: images of the touched partitions before the lane, by table and name; None if one did not exist, or was the
            users', and is kept aside.
        files: names of the files in directories to which files are added.
        left: directories that no location points at afterwards.
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
        """The directories in ``left`` whose data was visible before the lane."""
        images = [*self.tables.values(), *(part for parts in self.partitions.values() for part in parts.values() if part)]
        return set(map(directory_of, images)) & set(self.left)


def record_texts(record: LaneRecord) -> Iterator[bytes]:
    """A lane's record as texts of one file each, in the order in which they are written; most have one.

    A table that is dropped leaves the images of all its partitions. They, and places, go to records of their own before that
    with the steps and tables: an undo, which takes the last one first, has the table again when it gets to its partitions.

    Raises:
        TooLarge: what cannot be split is more than a file of the journal may have.
    """
    text = record_text(record)
    if len(text) > PART and (pieces := _pieces(record, 1 + len(text) // PART)):
        for piece in pieces:
            yield from record_texts(piece)
    elif len(text) > MOST:
        raise TooLarge(
            f"the journal would have {len(text):,} bytes in one file about {', '.join(record.names[:5])}, and {MOST:,} are read: "
            f"{_advice(record)}"
        )
    else:
        yield text


def _advice(record: LaneRecord) -> str:
    """Where the names of one directory's files are too many, each window that adds to it has them all."""
    place = max(record.files, key=lambda one: len(record.files[one]), default="")
    if not place:
        return "load fewer events at a time (max_events of the policy)"
    return (
        f"{place} has {len(record.files[place]):,} files; write what lies in it anew at the source with fewer (INSERT OVERWRITE)"
    )


def _pieces(record: LaneRecord, number: int) -> list[LaneRecord]:
    """Up to so many records that say together what one says; none where it cannot be split.

    Each has the files of its own partitions' directories, and the images of users' tables that it is of: these tell an undo
    whether the users have made another one since.
    """
    images = [(table, name, part) for table, parts in record.partitions.items() for name, part in parts.items()]
    files, leaving = dict(record.files), set(record.left)
    ours = {directory_of(part) for _, _, part in images if part}
    of_tables = [place for place in files if place not in ours]
    found: list[LaneRecord] = []
    for begin in range(number):
        mine, own = dict[str, dict[str, Partition | None]](), slice(begin, None, number)
        for table, name, part in images[own]:
            mine.setdefault(table, {})[name] = part
        places = {directory_of(part) for parts in mine.values() for part in parts.values() if part}
        left = tuple(sorted(places & leaving))  # with the image that tells that there was data
        grown = {place: files.pop(place) for place in (*sorted(places), *of_tables[own]) if place in files}
        users = {name: image for name, image in record.tables.items() if SOURCE not in (image.parameters or {})}
        about = {name: image for name, image in users.items() if name in mine or directory_of(image) in grown}
        found.append(LaneRecord(record.names, (), about, mine, grown, left, record.placed[own]))
    tables = set(map(directory_of, record.tables.values()))
    rest = tuple(place for place in record.left if place not in ours or place in tables)
    found = [one for one in found if one != LaneRecord(record.names, ())]
    if record.steps or rest:  # else it is a piece itself
        found.append(replace(record, partitions={}, files={}, left=rest, placed=()))
    return found if len(found) > 1 and record not in found else []


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
        value = _LaneText.model_validate(parsed(data, most=MOST, values=4_000_000))
        return LaneRecord(
            tuple(value.names),
            tuple(_step(step) for step in value.steps),
            {name: _image(Table, text) for name, text in value.tables.items()},
            {
                table: {name: _image(Partition, text) if text else None for name, text in parts.items()}
                for table, parts in value.partitions.items()
            },
            {place: tuple(names) for place, names in value.files.items()},
            tuple(value.left),
            tuple(value.placed),
        )
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        said = " ".join(str(error).split())[:300]
        raise ReplicationError(f"a file of the journal is unreadable: {said}; what it says cannot be undone any more") from error


def _image(kind: type[Image], text: str) -> Image:
    image = tjson.loads(kind, text)
    if image.sd is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise ValueError("an image has no storage descriptor")
    return image


def _fields(step: Step) -> dict[str, Any]:
    return {name: getattr(step, name) for name in Step.__slots__}


def _step(value: _StepText) -> Step:
    return Step(
        value.kind,
        value.evid,
        value.table,
        value.new_name,
        tuple(value.partitions),
        value.directory,
        value.origin,
        tuple(value.chain),
    )
