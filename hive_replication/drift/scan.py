"""Scans for drift, one table after another.

An object has drifted if its files on the source are not those of its replica, they do not change for some seconds, no job seems
to write there, and no event of its table waits. So a write in progress is not drift, and neither is one whose event follows
soon. If an event follows later, its load finds the files copied and proven already.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from hive_replication.drift.baselines import Baseline, Memory
from hive_replication.drift.directories import difference, is_copy, observed, observed_or_not
from hive_replication.drift.findings import UNREAD, Drifted, NoReplica, Scanned, TableDrift, Unread, unread
from hive_replication.drift.objects import BATCH, Objects
from hive_replication.drift.snapshots import Snapshots, remove_snapshots, snapshots_of
from hive_replication.drift.spared import Spared, is_deleted_with_its_table
from hive_replication.drift.under_way import BatchScan, TableScan
from hive_replication.dump.source import Source, is_replica, why_skipped
from hive_replication.errors import BadRequest, MissingEvents, Unreachable
from hive_replication.events.events_of_policy import LogEvent, ends_transaction, notifications, of_policy
from hive_replication.load.replica.state import ReplicaState, is_ours, replica_state
from hive_replication.load.replica.target import Target
from hive_replication.logs import about, reason
from hive_replication.metastore.faults import NotFound
from hive_replication.metastore.table_kinds import has_files, is_partitioned, is_transactional
from hive_replication.metastore.tables import batches
from hive_replication.metastore.types import Database, Table
from hive_replication.policy.checks import Drift
from hive_replication.progress import Progress, Silent
from hive_replication.verify import NOT_COMPARED, UNCOMPARED, TableComparison, compare_database

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class DriftScan:
    """Scans a replicated database for drift. Changes nothing but its own baselines, and snapshots where the policy asks for them.

    Args:
        source: the source side.
        target: the target side.
        database: source database.
        settle: seconds between the two listings of a suspect.
        sleep: waits for a number of seconds.
        begun: when the scan of all tables began of which this is a part, seconds since the epoch.
        progress: shows the progress in partitions of a table.
    """

    source: Source
    target: Target
    database: str
    settle: float = 10.0
    sleep: Callable[[float], None] = time.sleep
    begun: float = field(default_factory=time.time)
    progress: Progress = field(default_factory=Silent)

    @cached_property
    def snapshots(self) -> Snapshots:
        """Those of this replica, and how many were made and deleted."""
        return snapshots_of(self.source, self.target, self.database, self.begun)

    def finish(self) -> None:
        """Deletes the snapshots that no table needs any more; to be called when all tables were scanned."""
        if self._drift.snapshots:
            with suppress(NoReplica):
                self._require_replica()
                self.snapshots.finish(self._locations)

    def _require_replica(self) -> Database:
        """The target database; where it is no replica any more, snapshots of ours stay on no old source.

        Raises:
            NoReplica: it is none.
        """
        found = self.target.metastore.database(self._replica)
        state = replica_state(found)
        if found is None or state.failed_over or not state.source:
            remove_snapshots(self.source, self.target, self.database)
            raise NoReplica(f"the target's {self._replica!r} is no replica any more: nothing can drift")
        return found

    def told(self, found: Iterable[TableDrift]) -> list[str]:
        """What snapshots spared in a scan, and why not more, in sentences; none where the policy asks for no snapshots."""
        return self.snapshots.told(found) if self._drift.snapshots else []

    def names(self) -> list[str]:
        """Tables of the policy on the source, sorted.

        Raises:
            BadRequest: the source has no such database, or the target no replica of it.
        """
        self.source.database(self.database)
        if not replica_state(self.target.metastore.database(self._replica)).source:
            raise BadRequest(f"the target has no replica {self._replica!r}: nothing can drift")
        return sorted(filter(self.source.policy.includes, self.source.metastore.table_names(self.database)))

    def table(self, name: str) -> TableDrift | None:
        """Scans one table, once more if it is dropped while it is read; None for one without files or without a replica.

        Raises:
            Unreachable: a metastore does not answer.
            NoReplica: there is no replica of the database any more.
        """
        try:
            with suppress(NotFound, FileNotFoundError):
                return self._scanned(name)
            return self._scanned(name)
        except (NotFound, FileNotFoundError) as error:
            return TableDrift(name, 0, waiting=f"it changed while it was read: {reason(error)}")
        except Unreachable as error:
            for side in (self.source, self.target):
                side.metastore.current_event_id()
            return unread(name, error)  # its storage, on which others need not lie
        except NOT_COMPARED as error:
            return unread(name, error)

    def _scanned(self, name: str) -> TableDrift | None:
        database, began = self._require_replica(), time.monotonic()
        table, replica = self.source.metastore.table(self.database, name), self.target.metastore.table(self._replica, name)
        if table is None or replica is None or not self._is_replicated(table, replica):
            return None
        memory = Memory(self.target.storage, database.locationUri or "")
        objects = self._objects(table, replica)
        if is_transactional(table):
            scan = BatchScan({part: one for batch in batches(objects.names(), BATCH) for part, one in objects.of(batch).items()})
            return replace(self._transactional(table, replica, scan, memory), seconds=time.monotonic() - began)
        known = memory.read(name)
        spared = Spared(self.snapshots, self._drift, table, known, time.time())
        run = TableScan(table, replica, spared, known, TableDrift(name, 0))
        names = objects.names()
        for _ in self.progress.count(self._looked(run, objects, names), f"partitions of {name}", len(names)):
            pass
        if run.changed or run.known:  # what is left of these is not there any more
            memory.write(name, run.kept)
        spared.recorded()
        if self._drift.snapshots:
            self._require_replica()  # meanwhile: a snapshot may be newer than the failover
        waiting = run.unread() or run.found.waiting
        return replace(run.found, seconds=time.monotonic() - began, waiting=waiting, spared=spared.number, whole=spared.why)

    def _looked(self, run: TableScan, objects: Objects, names: Sequence[str]) -> Iterator[str]:
        """Looks at all objects, and yields the names of those done."""
        for batch in batches(names, BATCH):
            self._batch(run, objects.of(batch))
            yield from batch

    def _batch(self, run: TableScan, objects: Mapping[str, Scanned]) -> None:
        """Looks at a batch of objects, and adds to the run what was found."""
        scan, table = BatchScan(objects), run.table
        known = {part: base for part in objects if (base := run.known.pop(part, None)) is not None}
        self._observe(scan, objects.keys() - run.spared.of(objects, known), known)
        suspects, drifted, waiting = self._suspects(scan, known), dict[str, Drifted](), ""
        if suspects and table.partitionKeys and run.is_being_written(self.source.storage):
            scan.writing |= suspects
            suspects = set[str]()
        if suspects:
            suspects = self._unchanged(scan, suspects)
            waiting = self._waiting(table, run.replica, scan, suspects) if suspects else ""
            drifted = {} if waiting else self._drifted(scan, suspects)
        if waiting:
            _LOG.info("what differs is not repaired now: %s", waiting, extra=about(self.database, table.tableName))
        kept = {part: base for part, base in known.items() if part not in drifted} | scan.equal
        kept = {part: run.spared.marked(part, base, scan.digests.get(part, "")) for part, base in kept.items()}
        run.changed |= kept != known
        run.kept |= kept
        run.unreadable |= scan.unread
        run.found = replace(
            run.found,
            looked=run.found.looked + len(objects),
            drifted=(*run.found.drifted, *(drifted[part] for part in sorted(drifted))),
            writing=(*run.found.writing, *sorted(scan.writing)),
            waiting=waiting or run.found.waiting,
            listings=run.found.listings + scan.listings,
        )

    def _transactional(self, table: Table, replica: Table, scan: BatchScan, memory: Memory) -> TableDrift:
        """Compares what readers see of a transactional table, not its metadata, if what a side lists or shows has changed.

        The directories alone do not tell what was committed since: files lie there before, and an empty base is not listed.
        """
        name = table.tableName.lower()
        objects = list(scan.objects.values())
        ours = list(observed(self.source.storage, [one.source for one in objects]))
        theirs = list(observed(self.target.storage, [one.target for one in objects]))
        seen = ((self.source, self.database), (self.target, self._replica))
        write_ids = [side.metastore.write_ids(db, [name])[name].encode(name) for side, db in seen]
        digest = hashlib.sha256(" ".join([*(one.digest for one in (*ours, *theirs)), *write_ids]).encode()).hexdigest()[:16]
        answer = TableDrift(name, len(objects), listings=2 * len(objects))
        if memory.read(name).get("") == Baseline(digest, 0):
            return answer
        found = self._compared(name)
        if found.content:
            self.sleep(self.settle)
            found = self._compared(name)
        why = "; ".join(found.differences[:3])
        if not found.content and (found.repairs or not why):
            memory.write(name, {"": Baseline(digest, 0)})
            return answer
        if why.startswith(UNCOMPARED):
            return replace(answer, waiting=f"{UNREAD}{why.removeprefix(UNCOMPARED)}")
        waiting = self._waiting(table, replica, scan, set()) if found.content else why
        drifted = () if waiting else tuple(Drifted(partition, digest, why) for partition in found.content)
        return replace(answer, drifted=drifted, waiting=waiting)

    def _compared(self, name: str) -> TableComparison:
        (found,) = compare_database(self.source, self.target, self.database, table=name)
        return found

    @property
    def _replica(self) -> str:
        return self.target.policy.target_of(self.database)

    @property
    def _drift(self) -> Drift:
        return self.source.policy.drift or Drift()

    def _locations(self) -> list[tuple[str, bool]]:
        """Of the policy's tables at the source, and whether Hive deletes them with the tables."""
        tables = self.source.metastore.tables(self.database, self.names())
        return [(one.sd.location, is_deleted_with_its_table(one)) for one in tables if one.sd.location]

    def _is_replicated(self, table: Table, replica: Table) -> bool:
        ours = is_ours(replica, f"{self.source.identity}/{self.database}")
        with_data = not self.source.policy.metadata_only and not why_skipped(table, acid=self.source.acid)
        return ours and with_data and (has_files(table) or is_partitioned(table))

    def _objects(self, table: Table, replica: Table) -> Objects:
        return Objects(self.source.metastore, self.target.metastore, table, replica)

    def _observe(self, scan: BatchScan, names: Iterable[str], known: Mapping[str, Baseline]) -> None:
        """Lists directories; listings that are as known are not held."""
        names = list(names)
        found = observed_or_not(self.source.storage, [scan.objects[name].source for name in names], time.time())
        for name, seen in zip(names, found, strict=True):
            if isinstance(seen, Unread):
                scan.leave(name, seen)
                continue
            scan.digests[name] = digest = seen.digest
            if name not in known or known[name][:2] != (digest, scan.objects[name].evid):
                scan.observed[name] = seen
        scan.listings += len(names)

    def _suspects(self, scan: BatchScan, known: Mapping[str, Baseline]) -> set[str]:
        """Objects that differ from their baselines; objects without a baseline are compared with their replicas."""
        current = {name: base for name, base in known.items() if base.evid == scan.objects[name].evid}
        suspects = {name for name in scan.observed if name in current}
        unknown = [name for name in scan.observed if name not in current]
        found = observed_or_not(self.target.storage, [scan.objects[name].target for name in unknown])
        for name, replica in zip(unknown, found, strict=True):
            if isinstance(replica, Unread):
                scan.leave(name, replica)
            elif is_copy(scan.observed[name].files, replica.files):
                scan.equal[name] = Baseline(scan.digests[name], scan.objects[name].evid)
                del scan.observed[name]
            else:
                suspects.add(name)
        scan.listings += len(unknown)
        return suspects

    def _unchanged(self, scan: BatchScan, suspects: set[str]) -> set[str]:
        """Those that do not change for some seconds, and that no job seems to write to."""
        first = {name: scan.digests[name] for name in suspects}
        self.sleep(self.settle)
        self._observe(scan, suspects, {})
        suspects = suspects - scan.unread.keys()
        scan.writing |= {name for name in suspects if scan.observed[name].writing or scan.digests[name] != first[name]}
        return suspects - scan.writing

    def _waiting(self, table: Table, replica: Table, scan: BatchScan, suspects: set[str]) -> str:
        """Why the suspects may differ from their replicas without drift: events that wait, or a load in progress."""
        name = table.tableName.lower()
        state = replica_state(self.target.metastore.database(self._replica))
        if name in state.held or name in state.left or state.applied is None:
            return "the table is held, or its bootstrap is not finished"
        try:
            if self._has_events(name, state, transactional=is_transactional(table)):
                return "events wait"
        except MissingEvents as error:
            return str(error)
        now = self._objects(table, self.target.metastore.table(self._replica, name) or replica).of(sorted(suspects))
        return "a load is in progress" if any(now.get(part) != scan.objects[part] for part in suspects) else ""

    def _has_events(self, name: str, state: ReplicaState, *, transactional: bool) -> bool:
        metastore, policy = self.source.metastore, self.source.policy
        position, current = state.position(name), metastore.current_event_id()
        replica = is_replica(metastore.database(self.database), position)
        for row in notifications(metastore, position, current, policy.max_message_bytes, self.database):
            event = LogEvent(row, policy.partition_filter)
            ends = transactional and ends_transaction(event, self.database, replica=replica)
            if ends or of_policy(event, self.database, name.__eq__, shared=not policy.metadata_only):
                return True
        return False

    def _drifted(self, scan: BatchScan, suspects: set[str]) -> dict[str, Drifted]:
        """Compares suspects with their replicas by checksum; equal ones get a new baseline."""
        found: dict[str, Drifted] = {}
        compare = partial(difference, self.source.storage, self.target.storage, self.database)
        asked = [(scan.objects[name], scan.observed[name].files) for name in suspects]
        for name, differs in zip(suspects, self.target.storage.many.map(compare, asked), strict=True):
            digest = scan.digests[name]
            if isinstance(differs, Unread):
                scan.leave(name, differs)
            elif differs is None:
                scan.writing.add(name)
            elif differs:
                found[name] = Drifted(name, digest, differs)
            else:
                scan.equal[name] = Baseline(digest, scan.objects[name].evid)
        scan.listings += len(suspects)
        return found
