"""Truncations of transactional tables between their event and the commit of their transaction.

Nothing but its event tells of a TRUNCATE, and a window may end between the two. So a note waits in ``.repl`` with the staged base
(:mod:`~hive_replication.load.operations.staged_bases`), without which it means nothing: that goes with its table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Self

from pydantic import ConfigDict, TypeAdapter, ValidationError

from hive_replication.errors import ReplicationError
from hive_replication.load.layout.directories import Layout
from hive_replication.load.operations.staged_bases import Base, bases_of
from hive_replication.load.replica.advance_idle import open_replayed
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.target_boundary import boundary_of
from hive_replication.metastore.names import escape, unescape
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.parallel import Item
from hive_replication.storage import paths

_MOST = 64 * 1024 * 1024  # bytes of a note: the names of the partitions that one event truncates
_NAME = re.compile(r"\d+-(?P<write_id>\d+)-(?P<table>.+)")  # an event's id first
_NAMES = TypeAdapter(list[str], config=ConfigDict(strict=True))


@dataclass(frozen=True, slots=True)
class _Note:
    """One event's truncation of a table or of partitions of it; ``uri`` holds their names."""

    uri: str
    table: str
    write_id: int

    @classmethod
    def at(cls, uri: str) -> Self | None:
        """That of a file; None of one that is none, as a write that is killed leaves it."""
        found = _NAME.fullmatch(paths.name(uri))
        return cls(uri, unescape(found["table"]), int(found["write_id"])) if found else None


def leave_truncated(target: Target, database: str, evid: int, table: str, names: Collection[str], write_id: int) -> None:
    """Stages empty bases in a table ("") or in partitions of it, and notes them; nothing in an object that went away.

    Raises:
        Refused: an object lies outside the directories that the policy allows.
    """
    bases, storage = bases_of(target, database, table, names, write_id), target.storage
    if bases:  # the note comes first: without it nobody would look for them
        notes = Layout(boundary_of(target, database).location).truncations
        note = f"{notes}/{evid}-{write_id}-{escape(table.lower())}"
        storage.write(note, _NAMES.dump_json(sorted(names)))
        list(storage.threads.map(lambda base: base.leave_empty(storage, shown=False), bases))


@dataclass(frozen=True)
class Truncations:
    """What a source's transaction has truncated in a database of the target.

    Args:
        target: the target side.
        database: its database.
        bases: the empty bases, staged or in their places.
        notes: of these.
        others: notes of other transactions, as far as is known.
    """

    target: Target
    database: str
    bases: tuple[Base, ...] = ()
    notes: tuple[_Note, ...] = ()
    others: tuple[_Note, ...] = ()

    @classmethod
    def of(cls, target: Target, database: str, policy: str, transaction: int) -> Self:
        """Those of a transaction, which has not ended, or is opened anew by asking.

        Raises:
            ReplicationError: a note is damaged.
            Refused: an object lies outside the directories that the policy allows.
        """
        noted = _noted(target, database)
        if not noted:
            return cls(target, database)
        metastore = target.metastore
        opened = metastore.replay_open(policy, [transaction])[transaction].id
        tables = [one.tableName for one in metastore.tables(database, {note.table for note in noted}) if is_transactional(one)]
        written = set(metastore.write_ids_of(opened, database, tables))
        own = [note for note in noted if (note.table, note.write_id) in written]
        others = [note for note in noted if note not in own]
        seen = metastore.write_ids(database, tables)
        if own or all(note.table in seen and note.write_id in seen[note.table].open for note in others):
            bases = (base for note in own for base in bases_of(target, database, note.table, _names(target, note), note.write_id))
        else:  # a note of a transaction that has ended, or of a table that has another name now
            bases = _bases(target, database, opened)
        there = target.storage.threads.map(lambda base: base if base.exists(target.storage) else None, bases)
        return cls(target, database, tuple(filter(None, there)), tuple(own), tuple(others))

    def show(self) -> None:
        """Puts the bases into their places."""
        self._each(lambda base: base.show(self.target.storage), self.bases)

    def delete(self) -> None:
        """Deletes the bases."""
        self._each(lambda base: base.delete(self.target.storage), self.bases)

    def forget(self) -> None:
        """Deletes the notes after the end of the transaction; those of others where none is open that they could wait for."""
        left = self.others if self.others and not open_replayed(self.target) else ()
        self._each(lambda note: self.target.storage.delete(note.uri), (*self.notes, *left))

    def _each(self, do: Callable[[Item], object], items: Collection[Item]) -> None:
        list(self.target.storage.threads.map(do, items))


def _noted(target: Target, database: str) -> list[_Note]:
    found = target.metastore.database(database)  # which may be dropped before the transaction ends
    notes = Layout(found.locationUri).truncations if found and found.locationUri else ""
    return list(filter(None, (_Note.at(one.uri) for one in target.storage.ls(notes)))) if notes else []


def _names(target: Target, note: _Note) -> list[str]:
    try:
        return _NAMES.validate_json(target.storage.read(note.uri, most=_MOST))
    except ValidationError as error:
        raise ReplicationError(
            f"{note.uri} is damaged, which says what a TRUNCATE of the source has emptied: delete it, and repair {note.table}"
        ) from error


def _bases(target: Target, database: str, transaction: int) -> Iterator[Base]:
    """Where bases of a transaction of the target may be, by its write ids of all tables."""
    metastore = target.metastore
    tables = {one.tableName: one for one in metastore.tables(database, metastore.table_names(database)) if is_transactional(one)}
    for name, write_id in metastore.write_ids_of(transaction, database, tables):
        names = ["", *metastore.partition_names(database, name)] if tables[name].partitionKeys else [""]
        yield from bases_of(target, database, name, names, write_id)
