"""One look of the witness: names of all tables and partitions, and of a part of them descriptions, files and checksums.

It costs each metastore few calls: names of tables, tables by the hundred, for each partitioned table the names of its partitions,
and descriptions by the hundred. What is sampled is chosen anew each time: half of it are the newest partitions by name, tables of
the log's newest events come first, and what waited in the last round is always looked at.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import TypeVar

from hive_replication.dump.functions import unread_record
from hive_replication.dump.source import Source
from hive_replication.dump.source_boundary import ANYWHERE
from hive_replication.errors import MetastoreError, MissingEvents, ReplicationError
from hive_replication.events.event_records import function_name, is_function
from hive_replication.events.files import FileRef
from hive_replication.load.replica.state import replica_state
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.view_rewriting import renamed_databases
from hive_replication.metastore.table_kinds import has_files, is_partitioned, is_transactional
from hive_replication.metastore.tables import at_once, batches
from hive_replication.metastore.types import Database, Partition, Table
from hive_replication.verify.acid import Seen
from hive_replication.verify.columns_and_parameters import (
    database_shape,
    expected_shape,
    partition_shape,
    shape_differences,
    table_shape,
)
from hive_replication.verify.compare import NOT_COMPARED
from hive_replication.verify.functions import function_pairs
from hive_replication.verify.left_out import leaves_out
from hive_replication.verify.witness.comparison import (
    Counts,
    Difference,
    Held,
    Objects,
    Pending,
    Remembered,
    Round,
    difference_of,
    joined_digest,
    judged,
    names_digest,
    object_differences,
    objects_of,
)
from hive_replication.verify.witness.files import EVERY, PER_DIRECTORY, Directories, FileFacts, file_facts
from hive_replication.verify.witness.pending import pending_tables
from hive_replication.verify.witness.sides import Shares, Side, chosen, dealt
from hive_replication.verify.witness.transactional import Shown, transactional_facts

_BATCH = 500
_NEWEST_EVENTS = 300
_MISSING = 200  # partitions of a table that one side lacks, told one by one

Thing = TypeVar("Thing", Table, Partition)
_Listing = tuple[FileRef, ...] | ReplicationError  # or why there is none
#: A table at the source and at the target.
Tables = tuple[Table, Table]
#: What was read of the files of an object at the source and at the target, and how much that was.
Files = tuple[Mapping[str, str], Mapping[str, str], Counts]


@dataclass(frozen=True)
class _Found:
    differences: list[Difference]
    counts: Counts = field(default_factory=Counts)
    digests: tuple[str, str] = ("0", "0")

    def __add__(self, other: _Found) -> _Found:
        digests = [joined_digest(pair) for pair in zip(self.digests, other.digests, strict=True)]
        return _Found(self.differences + other.differences, self.counts + other.counts, (digests[0], digests[1]))


@dataclass(frozen=True)
class _Part:
    """What is looked at of one table: everything within its share, or only some objects, completely."""

    shares: Shares
    only: Mapping[str, Collection[str]] | None
    always: Mapping[str, Collection[str]]

    @property
    def every_file(self) -> bool:
        return bool(self.only or self.always)

    def first(self, name: str) -> frozenset[str]:
        """Files of a partition, "" for the table itself, that were found to differ."""
        return frozenset(chain((self.only or {}).get(name, ()), self.always.get(name, ())))


class Look:
    """Looks at both sides of a database.

    Args:
        source: the source side.
        target: the target side.
        database: source name.
        chance: chooses the sample.
    """

    def __init__(self, source: Source, target: Target, database: str, chance: random.Random) -> None:
        self._file_facts = partial(file_facts, source.storage, target.storage)
        self._policy, self._threads, self._chance, self._side = source.policy, source.threads, chance, source
        kinds = source.policy.metadata_only, source.acid
        self._source = Side(source.metastore, source.storage, database, *kinds)
        self._target = Side(target.within_filters(database).metastore, target.storage, source.policy.target_of(database), *kinds)
        self._databases = renamed_databases(source.policy.databases, database, self._target.database)
        self._roots = [root.uri for root in source.storage.roots]

    def at(self, only: Objects | None, earlier: Sequence[Remembered]) -> Round:
        """One look, at everything or at some objects. What the replica claims is read first, the end of the source's log last."""
        replica = self._target.metastore.database(self._target.database)
        applied = replica_state(replica).applied
        if replica is None or applied is None:
            return Round(None)
        found = sum(self._tables(only, objects_of(one.difference for one in earlier)), _Found([]))
        if only is None or "" in only:
            found += _Found(list(self._database(replica)))
        if not self._policy.metadata_only and (only is None or any(map(is_function, only))):
            found += _Found(list(self._functions()))
        current = self._source.metastore.current_event_id()
        pending = Pending()
        if found.differences:
            most = self._policy.max_message_bytes
            pending = pending_tables(self._source.metastore, self._source.database, applied, current, most)
        differences = judged(found.differences, pending, earlier, applied, current)
        return Round(applied, current, found.counts, found.digests, tuple(differences))

    def _tables(self, only: Objects | None, always: Objects) -> Iterator[_Found]:
        if only is None:
            there, here = (side.names(self._policy.includes) for side in (self._target, self._source))
            names, first = sorted(here | there), self._newest()
        else:
            names, first = sorted(name for name in only if name and not is_function(name)), set[str]()
        limits = self._policy.witness
        shares = Shares(limits.partitions, limits.directories, limits.checksums, len(names), self._chance, first)
        names.sort(key=lambda name: name not in first)  # these get their share where there is not enough for all
        for batch in batches(names, _BATCH):
            target, source = self._target.tables(batch), self._source.tables(batch)

            def compared(name: str, source: Mapping[str, Table] = source, target: Mapping[str, Table] = target) -> _Found:
                part = _Part(shares, None if only is None else only[name], always.get(name, {}))
                return self._table(name, source.get(name), target.get(name), part)

            yield from self._threads.map(compared, batch)

    def _database(self, target: Database) -> Iterator[Difference]:
        """What differs between the databases themselves; properties that the replica alone has are its own."""
        if source := self._source.metastore.database(self._source.database):
            wanted = database_shape(source, self._policy.owners)
            found = {aspect: value for aspect, value in database_shape(target, {}).items() if aspect in wanted}
            for text in shape_differences(wanted, found, self._roots):
                yield difference_of("", "", text, (source.createTime, target.createTime))

    def _functions(self) -> Iterator[Difference]:
        """What differs between functions, which is read anew in each look."""
        beside = self._source.metastore.database(self._source.database)
        boundary = replace(ANYWHERE, beside=(beside and beside.locationUri) or "")
        records = [unread_record(self._side, one, boundary) for one in self._source.functions().values()]
        for pair in function_pairs(records, self._target.functions(), self._policy.owners):
            created = tuple(one and (one.createTime or 0) for one in (pair.source, pair.target))
            for text in pair.differences():
                yield difference_of(function_name(pair.name), "", text, (created[0], created[1]))

    def _table(self, name: str, source: Table | None, target: Table | None, part: _Part) -> _Found:
        """What was found of a table; that it cannot be compared, where a metastore does not show all of it."""
        try:
            return self._compared(name, source, target, part)
        except MetastoreError as error:
            created = tuple(one and (one.createTime or 0) for one in (source, target))
            return _Found([difference_of(name, "", f"it cannot be compared: {error}", (created[0], created[1]))])

    def _compared(self, name: str, source: Table | None, target: Table | None, part: _Part) -> _Found:
        if source is None and target is not None and leaves_out(self._policy, target):
            target = None
        counts = Counts((int(source is not None), int(target is not None)))
        digests = names_digest([name] if source else ()), names_digest([name] if target else ())
        ours = None if source is None else _held(source, self._expected(source), source)
        theirs = None if target is None else _held(target, table_shape(target), target)
        describe, directories, checksums = part.shares.take(name)
        if source is None or target is None or ours is None or theirs is None:
            missing = object_differences(name, "", ours, theirs, self._roots) if ours or theirs else ()
            return _Found(list(missing), counts, digests)
        found = _Found([], counts, digests)
        data = not self._policy.metadata_only
        if data and has_files(source) and has_files(target) and (directories or part.every_file):
            most = EVERY if part.every_file else min(checksums, PER_DIRECTORY)
            (files,) = self._files([(source, target)], (source, target), part, {"": most})
            ours, theirs = replace(ours, files=files[0]), replace(theirs, files=files[1])
            found += _Found([], files[2])
        found += _Found(list(object_differences(name, "", ours, theirs, self._roots)))
        if data and is_partitioned(source) and is_partitioned(target):
            found += self._partitions((source, target), part, (describe, directories, checksums))
        return found

    def _expected(self, source: Table) -> dict[str, str]:
        return expected_shape(source, self._databases, self._policy.owners, self._policy.renamed_views)

    def _partitions(self, tables: Tables, part: _Part, share: tuple[int, int, int]) -> _Found:
        describe, directories, checksums = share
        table = tables[0].tableName
        if part.only is not None:
            some = {one for one in part.only if one}
            for side in (self._target, self._source) if "" in part.only else ():
                side.partition_names(table)  # which a metastore may not show, still
            return self._described(tables, some, dict.fromkeys(some, EVERY), part)
        there, here = self._target.partition_names(table), self._source.partition_names(table)
        common = chosen(sorted(here & there), describe, self._chance)
        one_sided = {*islice(sorted(here - there), _MISSING), *islice(sorted(there - here), _MISSING)}
        waited = {one for one in part.always if one}
        some = chosen(common, directories, self._chance)
        listed = dealt(some, checksums, PER_DIRECTORY, self._chance) | dict.fromkeys(waited, EVERY)
        part.shares.used(len(common), 0, 0)
        names = [names_digest(f"{table}/{one}" for one in side) for side in (here, there)]
        counts = Counts(partitions=(len(here), len(there)))
        return _Found([], counts, (names[0], names[1])) + self._described(tables, {*common, *one_sided, *waited}, listed, part)

    def _described(self, tables: Tables, names: Collection[str], listed: Mapping[str, int], part: _Part) -> _Found:
        """Compares partitions as they are described, and the files of those that are to be listed, with so many checksums."""
        found, table = _Found([]), tables[0]
        for batch in batches(sorted(names), at_once(table.sd.cols, _BATCH)):
            theirs, ours = self._target.partitions(tables[1], batch), self._source.partitions(table, batch)
            found += _Found([], Counts(described=len(ours)))
            both = [name for name in batch if name in listed and name in ours and name in theirs]
            most = {name: listed[name] for name in both}
            read = dict(zip(both, self._files([(ours[name], theirs[name]) for name in both], tables, part, most), strict=True))
            for name in batch:
                sides = ours.get(name), theirs.get(name)
                left, right = (None if one is None else _held(one, partition_shape(one), table) for one in sides)
                if left and right and name in read:
                    left, right = replace(left, files=read[name][0]), replace(right, files=read[name][1])
                    found += _Found([], read[name][2])
                if left or right:
                    found += _Found(list(object_differences(table.tableName, name, left, right, self._roots)))
        return found

    def _files(self, things: Sequence[tuple[Thing, Thing]], tables: Tables, part: _Part, most: Mapping[str, int]) -> list[Files]:
        """What is read of the files of a table (named ""), or of several partitions, with at most so many checksums of each."""
        if is_transactional(tables[0]):
            return list(self._transactional_files(things, tables, part, most)) if things else []
        directories = [
            Directories(one.sd.location or "", other.sd.location or "", number, part.first(name))
            for (one, other), (name, number) in zip(things, most.items(), strict=True)
        ]
        found: list[Files] = []
        for facts in self._source.storage.many.map(self._file_facts, directories):
            part.shares.used(0, 1, facts.checksums)
            counts = Counts(directories=1, files=(len(facts.source), len(facts.target)), checksums=facts.checksums)
            found.append((facts.source, facts.target, counts))
        return found

    def _transactional_files(
        self, things: Sequence[tuple[Thing, Thing]], tables: Tables, part: _Part, most: Mapping[str, int]
    ) -> Iterator[Files]:
        there, here = self._target.seen(tables[1]), self._source.seen(tables[0])
        theirs = _listed(there, [target for _, target in things])
        ours = _listed(here, [source for source, _ in things])

        def read(one: tuple[tuple[Thing, Thing], _Listing, _Listing, str]) -> Files:
            (source, target), left, right, name = one
            if isinstance(left, ReplicationError) or isinstance(right, ReplicationError):
                return {"": str(right if isinstance(right, ReplicationError) else left)}, {}, Counts(directories=1)
            facts = _transactional(Shown(here, source, left), Shown(there, target, right), most[name], part.first(name))
            counts = Counts(directories=1, files=(len(left), len(right)), checksums=facts.checksums, unread=int(facts.unread))
            return facts.source, facts.target, counts

        # By threads alone: what a reader sees is no item for an executor.
        for found in self._source.storage.threads.map(read, zip(things, ours, theirs, most, strict=True)):
            part.shares.used(0, 1, found[2].checksums)
            yield found

    def _newest(self) -> set[str]:
        """Tables that the newest rows of the source's log name: no more than a hint where to look first."""
        current = self._source.metastore.current_event_id()
        try:
            rows = self._source.metastore.events(max(0, current - _NEWEST_EVENTS), current, patience=0)
            return {(row.tableName or "").lower() for row in rows if (row.dbName or "").lower() == self._source.database}
        except MissingEvents:
            return set()


def _transactional(source: Shown, target: Shown, most: int, first: Collection[str]) -> FileFacts:
    try:
        return transactional_facts(source, target, most, first)
    except NOT_COMPARED as error:
        return FileFacts({"": str(error)}, {}, 0)


def _listed(seen: Seen, things: Sequence[Table | Partition]) -> list[_Listing]:
    """The files of each, or why they cannot be read."""
    try:
        return [*seen.many(things)]
    except NOT_COMPARED:
        return [_listed_alone(seen, thing) for thing in things]


def _listed_alone(seen: Seen, thing: Table | Partition) -> _Listing:
    try:
        return seen.files(thing)
    except NOT_COMPARED as error:
        return error


def _held(thing: Table | Partition, shape: Mapping[str, str], table: Table) -> Held:
    return Held(thing.createTime or 0, shape, is_transactional(table))
