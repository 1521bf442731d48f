"""Windows that wait for an operator's approval (policy ``approval``).

They are files below ``<dump_root>/.plans/<target database>-<hash>/``, shared by all instances of a policy. The hash is of the
metastores of source and target: plans from before a failback, or of another target with the same dump root, do not count. They
are not database parameters, since a bootstrap has no target database yet, and a load in progress could overwrite them::

    <window>.html             the report
    <window>.json             the planned window, written last: what its load would do
    <window>.<time>.approved  when and by whom the plan made at that time was approved
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace

from pydantic import TypeAdapter

from hive_replication.bounded_json import MIB, Count, Seconds, parsed
from hive_replication.connect.dump_root import dump_root
from hive_replication.dump.format.interface import DumpStore
from hive_replication.errors import BadRequest
from hive_replication.load.operations.conflict_resolutions import Resolution
from hive_replication.load.operations.kinds import DropPartitions, DropTable
from hive_replication.load.plan.load_plan import LoadPlan
from hive_replication.load.replica.covers import covers
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target import Target
from hive_replication.load.untrusted_dump import opened
from hive_replication.logs import about, reason
from hive_replication.policy import Policy
from hive_replication.policy.warehouse import pair_hash
from hive_replication.signing import SigningKey, signing_key
from hive_replication.storage import Denied, FileStatus, Storage, TooLarge, paths
from hive_replication.units import when

_LOG = logging.getLogger(__name__)

#: Bytes of a planned window, and of an approval.
_MOST, _MOST_MARK = 32 * MIB, 10_000
_PURPOSE = "approval"


@dataclass(frozen=True, slots=True)
class PlannedWindow:
    """A window that was planned.

    Args:
        window: e.g. ``170-1400`` or ``bootstrap-170``.
        directory: its dump.
        kind: of the dump, ``bootstrap`` or ``incremental``.
        events: number of events in it.
        planned: when, seconds since the epoch.
        summary: one line for operators.
        steps: what its load would do, see :func:`steps`.
        approved: when and by whom it was approved, or "".
        source: the source's metastore, as the policy names it; "" in files of earlier versions.
        target: the target's metastore, likewise.
    """

    window: str
    directory: str
    kind: str
    events: Count
    planned: Seconds
    summary: str
    steps: tuple[str, ...] = field(repr=False)
    approved: str = ""
    source: str = ""
    target: str = ""


_PLANNED = TypeAdapter(PlannedWindow)


def steps(plan: LoadPlan) -> tuple[str, ...]:
    """What a load would do in terms that decide whether an approval remains valid.

    The events of each table, what of it is dropped, what becomes of foreign objects, and where lanes have to stop. One event may
    drop a replica or keep it, as the policy says by then (``excluded``). A load that was interrupted has less to do when it is
    repeated, and perhaps in other operations, but nothing that is not among these.
    """
    of_database = (one for segment in plan.segments for one in (*segment.alters, segment.barrier) if one)
    found = {f"{plan.database}: event {one.evid}" for one in of_database}
    for lane in plan.lanes:
        for one in lane.operations:
            name = f"{plan.database}.{one.table}"
            found |= {f"{name}: event {evid}" for evid in one.evids}
            if isinstance(one, Resolution):
                found.add(f"{'/'.join((name, *one.foreign_partitions))}: {one.outcome}")
            elif isinstance(one, DropTable):
                found.add(f"{name}: dropped")
            elif isinstance(one, DropPartitions):
                found |= {f"{name}: partitions dropped at event {evid}" for evid in one.evids}
        if lane.stop is not None:
            found.add(f"{', '.join(lane.names)}: held at event {lane.stop.evid}")
    return tuple(sorted(found))


def more_than_applied(target: Target, store: DumpStore, state: ReplicaState, directory: str) -> str:
    """What a load of a dump brings beside events that the replica has applied, each with an approved window; "" for nothing.

    Held tables that are rebuilt, or that a window took into the policy, are no more than that window: they come as they are now.

    Args:
        target: the target side.
        store: where the dump is.
        state: of the replica.
        directory: of the dump.

    Raises:
        BadRequest: there is no dump, or it is incomplete, damaged or unreadable.
        Refused: it is none of the policy.
    """
    reader, applied = opened(store, directory), state.applied or 0
    header = reader.header
    if header.kind == "bootstrap":
        return f"it is of the database as it was at event {header.to_evid}"
    if not covers(applied, header.to_evid):
        return f"it ends at event {header.to_evid}, after {applied}, where the replica stands"
    if state.scope and header.taken not in ("", state.scope):
        return "it is of other tables than the replica was made with"
    if state.left and target.policy.excluded == "drop":
        return f"replicas that have left the policy are dropped with it: {', '.join(sorted(state.left))}"
    return ""


class Approvals:
    """The planned windows of a policy's target databases.

    Args:
        storage: of the dumps.
        root: the policy's dump root.
        key: signs approvals; those that it has not signed do not count. None where who writes below the dump root may approve.
        pair: the metastores of source and target; plans of others do not count.
    """

    def __init__(self, storage: Storage, root: str, key: SigningKey | None = None, pair: tuple[str, str] = ("", "")) -> None:
        self._storage, self._root, self._key, self._pair = storage, f"{root.rstrip('/')}/.plans", key, pair

    @classmethod
    def of(cls, policy: Policy) -> Approvals:
        """The planned windows of a policy. Nothing is read yet."""
        root = dump_root(policy)
        return cls(Storage((root,)), root.uri, signing_key(policy.signing_key), policy.pair)

    def report(self, database: str, window: str, html: str, *, keep_seconds: float) -> str:
        """Writes the report of a window, and deletes old ones.

        Args:
            database: target database.
            window: the window.
            html: the report.
            keep_seconds: age at which reports are deleted.

        Returns:
            Its URI.
        """
        for old in self._files(database):
            if old.uri.endswith(".html") and old.modified < time.time() - keep_seconds:
                self._storage.delete(old.uri)
        uri = self._uri(database, f"{window}.html")
        self._storage.write(uri, html.encode())
        return uri

    def wait(self, database: str, planned: PlannedWindow) -> None:
        """Replaces the database's planned windows by one that waits for approval."""
        for other in self._files(database):
            if not other.uri.endswith(".html"):
                self._storage.delete(other.uri)
        source, target = self._pair
        planned = replace(planned, source=source, target=target)
        self._storage.write_once(self._uri(database, f"{planned.window}.json"), _PLANNED.dump_json(planned))

    def waiting(self, database: str) -> PlannedWindow | None:
        """The window of a target database that was planned last; None where none was, or it was withdrawn."""
        names = {paths.name(status.uri) for status in self._files(database)}
        for name in sorted(name for name in names if name.endswith(".json") and not name.startswith(".")):
            try:
                planned = self._read(self._uri(database, name))
                if name != f"{planned.window}.json":
                    raise ValueError(f"it is of the window {planned.window}")  # noqa: TRY301
                if (planned.source, planned.target) != self._pair:
                    raise ValueError(f"it is from {planned.source} to {planned.target}")  # noqa: TRY301
            except (FileNotFoundError, ValueError, Denied) as error:
                _LOG.info(
                    "the planned window %s cannot be read and is planned again: %s", name, reason(error), extra=about(database)
                )
                continue
            mark = _mark(planned)
            return replace(planned, approved=self._approved(database, planned) if mark in names else "")
        return None

    def dumps(self) -> Iterator[str]:
        """Directories of the dumps that planned windows wait with, of all policies with this dump root: retention keeps them.

        Plans of another pair of metastores that this account may not read are passed over: its dumps are another policy's.

        Raises:
            Denied: this account may not read its own plans, or which there are.
        """
        for directory in self._storage.ls(self._root):
            try:
                yield from list(self._dumps_in(directory.uri))
            except Denied as error:
                if directory.uri.endswith(f"-{pair_hash(self._pair)}"):
                    raise
                _LOG.warning("plans of another policy are passed over: %s", error)

    def _dumps_in(self, directory: str) -> Iterator[str]:
        for file in self._storage.ls(directory):
            if file.uri.endswith(".json"):
                with suppress(FileNotFoundError, ValueError):  # withdrawn meanwhile; unreadable ones are planned again
                    yield self._read(file.uri).directory

    def approve(self, database: str, window: str, by: str) -> PlannedWindow:
        """Approves exactly the window that waits.

        Raises:
            BadRequest: another one waits, or none.
        """
        found = self.waiting(database)
        if found is None or found.window != window:
            waits = f"the window {found.window} waits" if found else "no window waits"
            raise BadRequest(f"the window {window!r} of {database!r} does not wait for approval: {waits}")
        if not found.approved:
            now = when(time.time())
            text = f"{now} by {by}"
            signed = "" if self._key is None else f"\n{self._key.sign(_PURPOSE, _signed(database, found, text))}"
            self._storage.write(self._uri(database, _mark(found)), f"{text}{signed}".encode())
        return found

    def _approved(self, database: str, planned: PlannedWindow) -> str:
        """When and by whom a plan was approved; "" where the policy has a key and it did not sign that, or it cannot be read."""
        try:
            data = self._storage.read(self._uri(database, _mark(planned)), most=_MOST_MARK)
        except (FileNotFoundError, Denied, TooLarge) as error:  # of this database only; another account may have approved it
            why = reason(error)
            _LOG.warning("the approval of %s cannot be read, and does not count: %s", planned.window, why, extra=about(database))
            return ""
        text, _, signature = data.decode(errors="replace").partition("\n")
        if self._key is None or self._key.verifies(_PURPOSE, _signed(database, planned, text), signature):
            return text
        _LOG.warning("the approval of %s is not signed by the signing_key of the policy", planned.window, extra=about(database))
        return ""

    def withdraw(self, database: str, window: str) -> None:
        """Deletes a planned window, so that it is planned again."""
        self._storage.delete(self._uri(database, f"{window}.json"))

    def _read(self, uri: str) -> PlannedWindow:
        return _PLANNED.validate_python(parsed(self._storage.read(uri, most=_MOST), most=_MOST))

    def _files(self, database: str) -> Iterable[FileStatus]:
        return self._storage.ls(self._directory(database))

    def _uri(self, database: str, name: str) -> str:
        return f"{self._directory(database)}/{name}"

    def _directory(self, database: str) -> str:
        return f"{self._root}/{database}-{pair_hash(self._pair)}"


def _signed(database: str, planned: PlannedWindow, text: str) -> bytes:
    """What an approval signs: exactly the plan that was looked at, of this database and pair, and who approved it when."""
    plan = json.dumps(asdict(replace(planned, approved="")), sort_keys=True)
    return json.dumps([database, plan, text]).encode()


def _mark(planned: PlannedWindow) -> str:
    """Name of the file that approves a plan: it approves no other one of the same window."""
    return f"{planned.window}.{planned.planned:.3f}.approved"
