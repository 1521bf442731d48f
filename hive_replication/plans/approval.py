"""Windows that wait for an operator's approval (policy ``approval``).

They are files below ``<dump_root>/.plans/<target database>/``, which all instances of a policy share: a bootstrap has no target
database yet whose parameters could hold them, and a load under way never writes over them::

    <window>.html             the report
    <window>.json             the planned window, written last: what its load would do
    <window>.<time>.approved  when and by whom the plan made at that time was approved
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter, ValidationError

from hive_replication.dump_root import dump_root
from hive_replication.errors import BadRequest
from hive_replication.load.plan import LoadPlan
from hive_replication.load.resolutions import Resolution
from hive_replication.policy import Policy
from hive_replication.storage import FileStatus, Storage, paths
from hive_replication.units import when


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
    """

    window: str
    directory: str
    kind: str
    events: int
    planned: float
    summary: str
    steps: tuple[str, ...] = field(repr=False)
    approved: str = ""


_PLANNED = TypeAdapter(PlannedWindow)


def steps(plan: LoadPlan) -> tuple[str, ...]:
    """What a load would do in the terms in which an approval stays good.

    The events of each table, what becomes of strangers, and where lanes have to stop. A load that was interrupted has less to do
    when it goes on, and perhaps in other operations, but nothing that is not among these.
    """
    of_database = (one for segment in plan.segments for one in (*segment.alters, segment.barrier) if one)
    found = {f"{plan.database}: event {one.evid}" for one in of_database}
    for lane in plan.lanes:
        for one in lane.operations:
            name = f"{plan.database}.{one.table}"
            found |= {f"{name}: event {evid}" for evid in one.evids}
            if isinstance(one, Resolution):
                found.add(f"{'/'.join((name, *one.partitions))}: {one.outcome}")
        if lane.obstacle is not None:
            found.add(f"{', '.join(lane.names)}: held at event {lane.obstacle.evid}")
    return tuple(sorted(found))


class Approvals:
    """The planned windows of a policy's target databases.

    Args:
        storage: of the dumps.
        root: the policy's dump root.
    """

    def __init__(self, storage: Storage, root: str) -> None:
        self._storage, self._root = storage, f"{root.rstrip('/')}/.plans"

    @classmethod
    def of(cls, policy: Policy) -> Approvals:
        """Those of a policy; storage is asked for nothing yet."""
        root = dump_root(policy)
        return cls(Storage((root,)), root.uri)

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
        """Lets a window wait for approval, in place of all others of the database."""
        for other in self._files(database):
            if not other.uri.endswith(".html"):
                self._storage.delete(other.uri)
        self._storage.write_once(self._uri(database, f"{planned.window}.json"), _PLANNED.dump_json(planned))

    def waiting(self, database: str) -> PlannedWindow | None:
        """The window of a target database that was planned last; None where none was, or it was withdrawn."""
        names = {paths.name(status.uri) for status in self._files(database)}
        for name in sorted(name for name in names if name.endswith(".json") and not name.startswith(".")):
            try:
                planned = _PLANNED.validate_json(self._storage.read(self._uri(database, name)))
            except (FileNotFoundError, ValidationError):
                continue
            mark = _mark(planned)
            approved = self._storage.read(self._uri(database, mark)).decode() if mark in names else ""
            return replace(planned, approved=approved)
        return None

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
            self._storage.write(self._uri(database, _mark(found)), f"{now} by {by}".encode())
        return found

    def withdraw(self, database: str, window: str) -> None:
        """Forgets a planned window, so that it is planned anew."""
        self._storage.delete(self._uri(database, f"{window}.json"))

    def _files(self, database: str) -> Iterable[FileStatus]:
        return self._storage.ls(f"{self._root}/{database}")

    def _uri(self, database: str, name: str) -> str:
        return f"{self._root}/{database}/{name}"


def _mark(planned: PlannedWindow) -> str:
    """Name of the file that approves a plan: it approves no other one of the same window."""
    return f"{planned.window}.{planned.planned:.3f}.approved"
