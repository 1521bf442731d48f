"""Transactional tables in a dump of objects: what a reader sees of them at the event id at which the dump stands.

No transaction that has a write id of them may be open then: its commit would come later, but never the event that gave the write
id. So open ones are waited for, then aborted, or the dump fails. Files are listed last, only those that the reader needs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial

from hive_replication.acid.directories import AcidDirectory, has_base, of_several_transactions, read_by
from hive_replication.acid.write_ids import Hidden, WriteIds
from hive_replication.dump.bootstrap.acid_changes import Changes, Waiting
from hive_replication.dump.bootstrap.table_reader import ObjectReader, Read
from hive_replication.dump.listing import Lister
from hive_replication.dump.source import Source, is_replica
from hive_replication.errors import Refused, ReplicationError
from hive_replication.events.files import FileRef
from hive_replication.logs import about
from hive_replication.metastore.table_kinds import has_files, is_insert_only, is_transactional
from hive_replication.metastore.tables import batches
from hive_replication.metastore.types import Table
from hive_replication.storage import Denied, Storage, paths

_LOG = logging.getLogger(__name__)

_BATCH = 500
_LISTINGS = 20  # of tables that are dropped, moved or compacted meanwhile
_LOOKS = 1000  # at write ids, between which transactions end
_AHEAD = "{} has only a base of later writes than the metastore has given out, which may be restored from an older state"
_MIXED = "rows of committed and of aborted transactions of a streaming batch: compact the table or partition"
_RENAMED = "rows without ids, and ends with an aborted write: write to the table or partition, and compact it"

#: What a table's files were listed by: the write ids, and when the table itself was read.
Standing = tuple[WriteIds, Read]


@dataclass
class Snapshot:
    """The transactional tables of a dump of objects under way.

    Args:
        source: the source side.
        reader: what was read so far.
        consolidate: folds the events after an event id, and answers up to which one.
    """

    source: Source
    reader: ObjectReader
    consolidate: Callable[[int], int]

    def take(self, end: int) -> int:
        """Puts the write ids and files of all transactional tables into the dump.

        Args:
            end: event id at which the dump stands.

        Returns:
            The event id at which it stands then.

        Raises:
            ReplicationError: transactions stay open for longer than the policy allows, or the dump is of one table, of which it
                cannot tell what a reader sees.
        """
        changes, metastore = Changes(self.source, self.reader), self.source.metastore
        waiting, rounds = Waiting(self.source, self._database), _Rounds(self._database)
        standing, outdated = dict[str, Standing](), dict[str, WriteIds]()
        while names := self._names():
            among = frozenset(names)
            seen = metastore.write_ids(self._database, names)
            listing = SnapshotListing(self.source.storage, self.reader.lister, metastore.hidden_transactions, outdated)
            now = metastore.current_event_id()
            opened = sorted(name for name, write_ids in seen.items() if write_ids.open)
            if opened:
                waiting.wait(opened)
            elif changes.are_any(end, now, among):
                rounds.looked()
            else:
                standing |= self._list(self._not_standing(seen, standing), listing)
                touched = changes.of_files(now, metastore.current_event_id(), among)
                if not touched and not listing.outdated:
                    return end
                outdated = listing.outdated
                rounds.listed(touched, outdated)
                waiting.begin_anew()
            before, end = end, self.consolidate(end)
            for name in changes.of(before, end, among):
                standing.pop(name, None)
        return end

    def _not_standing(self, seen: Mapping[str, WriteIds], standing: Mapping[str, Standing]) -> dict[str, WriteIds]:
        """The tables that were written to or read again since they were listed, or are listed for the first time."""
        reads = self.reader.reads
        return {name: write_ids for name, write_ids in seen.items() if standing.get(name) != (write_ids, reads.get(name))}

    @property
    def _database(self) -> str:
        return self.reader.scope.database

    def _names(self) -> list[str]:
        tables = self.source.metastore.tables(self._database, sorted(self.reader.reads))
        return sorted(table.tableName.lower() for table in tables if is_transactional(table))

    def _list(self, seen: dict[str, WriteIds], listing: SnapshotListing) -> dict[str, Standing]:
        """Lists tables; answers those of which it found all that a reader needs, as they stand."""
        writer, found_whole = self.reader.writer, dict[str, Standing]()
        replica = is_replica(self.source.metastore.database(self._database))
        for name, write_ids in seen.items():
            record = writer.table(name)
            if record is None:
                continue
            outdated = len(listing.outdated)
            aborted = frozenset[int]() if replica else write_ids.aborted  # it has none of their rows, whatever directories say
            (files,) = listing.many(write_ids, [record.table.sd.location if has_files(record.table) else None])
            files = self._as_they_are(files, aborted, record.table, record.table.sd.location)
            writer.put_table(replace(record, files=files, write_ids=write_ids))
            for batch in batches(writer.partitions(name), _BATCH):
                found = listing.many(write_ids, [part.partition.sd.location for part in batch])
                for part, part_files in zip(batch, found, strict=True):
                    whole = self._as_they_are(part_files, aborted, record.table, part.partition.sd.location)
                    writer.put_partition(replace(part, files=whole))
            if len(listing.outdated) == outdated:
                found_whole[name] = write_ids, self.reader.reads[name]
        if listing.lasting and self.reader.scope.table is not None:
            raise ReplicationError(f"{_AHEAD.format(listing.lasting[0])}: move it away, and write the table or partition anew")
        return found_whole

    def _as_they_are(
        self, files: tuple[FileRef, ...], aborted: frozenset[int], table: Table, location: str | None
    ) -> tuple[FileRef, ...]:
        """The files, or what stands for a directory that they cannot be copied from as they are: the load holds its table.

        A replica's metastore forgets which writes were aborted: no rows of theirs may come there.

        Raises:
            ReplicationError: there is one, and the dump is of this table.
        """
        mixed, renamed = mixed_directory(files, aborted), "" if is_insert_only(table) else renamed_base(files)
        if not (mixed or renamed) or not location:
            return files
        what = f"{mixed or renamed} has {_MIXED if mixed else _RENAMED}"
        if self.reader.scope.table is not None:
            raise ReplicationError(f"{what} first (ALTER TABLE ... COMPACT 'major')")
        _LOG.warning("in %s, %s: the load holds its table", location, what)
        return ((FileRef.mixed_directory if mixed else FileRef.renamed_directory)(location),)


class SnapshotListing:
    """Lists what a reader needs of directories, which takes a while; compactions that end meanwhile count as seen from then on.

    The cleaner may delete at once what one made needless.

    Args:
        storage: that the directories lie on.
        lister: lists files of this storage.
        ask: for the transactions whose compactions are hidden at that moment.
        before: what was outdated at an earlier listing. What is so again, though no write ids were given out since, stays so.

    Attributes:
        outdated: directories of which the cleaner may have deleted what the reader needs: nothing but a base with later writes is
            left; with what the reader sees of their tables.
        lasting: those that stay so, and count as directories that could not be listed.
    """

    def __init__(
        self, storage: Storage, lister: Lister, ask: Callable[[], Hidden], before: Mapping[str, WriteIds] | None = None
    ) -> None:
        self._storage, self._lister, self._ask, self._before = storage, lister, ask, before or {}
        self._hidden, self.outdated, self.lasting = ask(), dict[str, WriteIds](), list[str]()

    def many(self, write_ids: WriteIds, locations: Sequence[str | None]) -> list[tuple[FileRef, ...]]:
        """The files of tables' or partitions' directories; none of one that is absent.

        Args:
            write_ids: what the reader sees of the table.
            locations: URIs of the directories; None where there is none.
        """
        found: dict[int, SeenFiles] = {}
        left: dict[int, str | None] = dict(enumerate(locations))
        while left:
            listed = partial(seen_files, self._storage, self._lister, write_ids, self._hidden)
            now = dict(zip(left, self._storage.many.map(listed, list(left.values())), strict=True))
            found |= now
            if any(one.unseen for one in now.values()):
                self._hidden = self._ask()
            left = {n: left[n] for n, one in now.items() if any(compaction not in self._hidden for compaction in one.unseen)}
        return [self._files(one, write_ids, locations[n]) for n, one in sorted(found.items())]

    def _files(self, seen: SeenFiles, write_ids: WriteIds, location: str | None) -> tuple[FileRef, ...]:
        if not seen.outdated or not location:
            return seen.files
        if self._before.get(location) != write_ids:
            self.outdated[location] = write_ids
            return seen.files
        self.lasting.append(location)
        _LOG.warning("%s: the load holds its table", _AHEAD.format(location))
        return (FileRef.unreadable_directory(location),)


@dataclass(frozen=True, slots=True)
class SeenFiles:
    """What a reader needs of a directory.

    Args:
        files: those that it needs.
        unseen: transactions of compactions of which there are directories, and which the reader does not see.
        outdated: whether there is nothing for the reader, but a base with later writes.
    """

    files: tuple[FileRef, ...] = ()
    unseen: frozenset[int] = frozenset()
    outdated: bool = False


def seen_files(storage: Storage, lister: Lister, write_ids: WriteIds, hidden: Hidden, location: str | None) -> SeenFiles:
    """What a reader needs of a transactional table's or partition's directory; nothing where it is absent.

    Args:
        storage: that it lies on.
        lister: lists files of this storage.
        write_ids: what the reader sees.
        hidden: transactions whose compactions it does not see.
        location: URI of the directory; None where there is none.
    """
    if not location:
        return SeenFiles()
    if lister.is_barred(location):
        return SeenFiles(lister.files(location))
    try:
        names = [paths.name(status.uri.rstrip("/")) for status in storage.ls(location) if status.is_dir]
    except FileNotFoundError:
        return SeenFiles()
    except (Denied, Refused):
        names = []  # which the lister says, too
    compacted = [one for one in map(AcidDirectory.parsed, names) if one is not None and one.visibility]
    later = any(one.kind == "base" and one.last > write_ids.high and one.visibility not in hidden for one in compacted)
    return SeenFiles(
        tuple(needed(lister.files(location), names, write_ids, hidden)),
        frozenset(one.visibility for one in compacted if one.visibility in hidden),
        outdated=later and not read_by(names, write_ids, hidden),
    )


def needed(files: Iterable[FileRef], names: Iterable[str], write_ids: WriteIds, hidden: Container[int]) -> Iterator[FileRef]:
    """The files that a reader needs, as they are to be called on the target (pure).

    Args:
        files: all below a table's or partition's directory.
        names: the directories in it.
        write_ids: what the reader sees.
        hidden: transactions whose compactions the reader does not see.
    """
    chosen = read_by(names, write_ids, hidden)
    originals = not has_base(chosen)  # of before the table became transactional
    for file in files:
        if file.is_unlisted_directory:  # it stands for all that may be there
            yield file
            continue
        top, _, rest = file.subdir.partition("/")
        if top in chosen:
            yield replace(file, subdir="/".join(filter(None, (chosen[top], rest))))
        elif originals and AcidDirectory.parsed(top) is None:
            yield file


def mixed_directory(files: Iterable[FileRef], aborted: Set[int]) -> str:
    """A directory that a streaming client wrote with rows of committed and of aborted transactions, or "" (pure).

    Args:
        files: those that a reader needs.
        aborted: write ids of aborted transactions.
    """
    names = {file.uri.split("/")[-len(file.relative.split("/"))] for file in files if file.subdir} if aborted else set[str]()
    for one in filter(None, map(AcidDirectory.parsed, filter(of_several_transactions, sorted(names)))):
        if any(one.first <= write_id <= one.last for write_id in aborted):
            return one.name
    return ""


def renamed_base(files: Iterable[FileRef]) -> str:
    """A base that has the name of an earlier write on the target, with files of rows without ids, or "" (pure).

    Of a full ACID table these come from the time when it was insert-only. Hive makes their ids from the name of the base.

    Args:
        files: those that a reader needs.
    """
    raw = [one for one in files if one.subdir and not one.name.startswith("bucket_")]
    made = (AcidDirectory.parsed(one.uri.split("/")[-len(one.relative.split("/"))]) for one in raw)
    return next((was.name for was, one in zip(made, raw, strict=True) if was and was.plain != one.subdir.partition("/")[0]), "")


class _Rounds:
    """Counts how often tables were looked at in vain, which ends."""

    def __init__(self, database: str) -> None:
        self._database, self._looks, self._listings = database, 0, 0

    def looked(self) -> None:
        """Something happened to them while their write ids were read."""
        self._looks += 1
        self._limit()

    def listed(self, tables: Iterable[str], outdated: Iterable[str]) -> None:
        """Something took files from under a listing of some."""
        self._listings += 1
        shown = ", ".join([*sorted(tables), *sorted(outdated)])
        _LOG.info(
            "dropped, moved or compacted while they were listed, which is done again: %s", shown, extra=about(self._database)
        )
        self._limit()

    def _limit(self) -> None:
        if self._listings >= _LISTINGS or self._looks >= _LOOKS:
            raise ReplicationError(
                f"transactional tables of {self._database} change faster than they can be listed; dump again at a quieter time"
            )
