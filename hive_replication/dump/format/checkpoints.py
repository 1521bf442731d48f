"""Checkpoints of a dump: how far it is, as notes and as what they say together (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from hive_replication.dump.format.digests import FileDigest
from hive_replication.signing import SigningKey

_PURPOSE = "checkpoint"

Number = Annotated[int, Field(ge=0, le=2**63 - 1)]


class Note(BaseModel):
    """A checkpoint, or that objects which checkpoints name as whole change again."""

    model_config = ConfigDict(frozen=True, strict=True)

    evid: Number = 0
    hash: str = ""
    reads: dict[str, Annotated[tuple[Number, Number], Field(strict=False)]] = {}
    tables: dict[str, Number] = {}
    partitions: list[Annotated[tuple[str, str, Number], Field(strict=False)]] = []
    events: dict[Annotated[str, Field(pattern=r"^[0-9]{1,19}$")], Number] = {}
    files: dict[str, Annotated[tuple[Number, str], Field(strict=False)]] = {}
    begun: dict[str, Annotated[tuple[Number, str], Field(strict=False)]] = {}
    runs: dict[str, list[Annotated[tuple[str, str, str, Number, Number, list[str]], Field(strict=False)]]] = {}
    sealed: bool = False


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a dump is.

    Args:
        evid: last event that was dumped; of a dump of objects the one at which it began.
        message_hash: of that event, to recognise another history of the source.
        reads: of a dump of objects, the tables that are whole, with the event ids before and after each was read.
        begun: tables of which some partitions are there, with the event id before each was read and the name of the last of them.
    """

    evid: int
    message_hash: str
    reads: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    begun: Mapping[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])


@dataclass(slots=True)
class Run:
    """Partitions of one table in one Parquet file: what is known of them, however many there are.

    Args:
        part: the Parquet file.
        first: the least of their names.
        last: the greatest.
        rows: how many were written.
        files: of those that are not in ``gone``.
        gone: names of those that were replaced or dropped since.
    """

    part: str
    first: str
    last: str
    rows: int
    files: int
    gone: set[str] = field(default_factory=set[str])

    @property
    def left(self) -> int:
        """How many are there still."""
        return self.rows - len(self.gone)

    @property
    def noted(self) -> tuple[str, str, str, int, int, list[str]]:
        """As a checkpoint has it."""
        return self.part, self.first, self.last, self.rows, self.files, sorted(self.gone)


@dataclass
class Written:
    """Records of a dump, each with its number of files, and digests of the files that they were written into.

    Of the ``partitions`` of a packed dump, which may be many, only their ``runs`` are known, by table.
    """

    tables: dict[str, int] = field(default_factory=dict[str, int])
    partitions: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    events: dict[int, int] = field(default_factory=dict[int, int])
    files: dict[str, FileDigest] = field(default_factory=dict[str, FileDigest])
    runs: dict[str, list[Run]] = field(default_factory=dict[str, list[Run]])


@dataclass(frozen=True, slots=True)
class NotePlace:
    """Where a note belongs: a signed one is of no use anywhere else.

    Args:
        directory: of the dump.
        number: of the note.
        request: the dump's whole request as text.
    """

    directory: str
    number: int
    request: str

    def text(self, values: Mapping[str, Any], key: SigningKey | None) -> bytes:
        """A note as it is written."""
        signature = {} if key is None else {"signature": key.sign(_PURPOSE, self._signed(values))}
        return json.dumps({**values, **signature}).encode()

    def is_signed(self, values: Mapping[str, Any], key: SigningKey) -> bool:
        """Whether a note that was read is what somebody with the key wrote here."""
        return key.verifies(_PURPOSE, self._signed(values), str(values.get("signature", "")))

    def _signed(self, values: Mapping[str, Any]) -> bytes:
        plain = {name: value for name, value in values.items() if name != "signature"}
        dump = self.directory.rstrip("/").rsplit("/", 2)[1:]  # as the ack file: wherever the dump root lies
        return json.dumps([dump, self.number, self.request, plain], sort_keys=True).encode()


def progress(notes: Iterable[Note]) -> tuple[Checkpoint, Written]:
    """What checkpoints that follow each other say together."""
    written, reads, last = Written(), dict[str, tuple[int, int]](), Note()
    for last in notes:
        reads |= last.reads
        written.tables |= last.tables
        written.partitions |= {(table, name): files for table, name, files in last.partitions}
        written.events |= {int(evid): files for evid, files in last.events.items()}
        written.runs |= {table: [Run(*run[:5], set(run[5])) for run in runs] for table, runs in last.runs.items()}
        written.files |= {path: FileDigest(size, sha256) for path, (size, sha256) in last.files.items()}
        # Of a table that was dropped before it was whole, nothing is there, even if another attempt reads one of that name.
        for name in written.tables.keys() - reads.keys() - last.begun.keys():
            del written.tables[name]
            written.runs.pop(name, None)
    return Checkpoint(last.evid, last.hash, reads, last.begun), written
