"""Snapshots of the source's directories, whose differences say which directories of a table need not be listed.

Of each snapshottable directory there are two of ours at most: one that baselines name, and a newer one that is made before the
next scan lists anything. What is known of a directory then holds since the newer one, and so the older one can be deleted. A scan
that is killed costs listings at most: a baseline says by its mark since which snapshot it holds, and where that is gone the
directory is listed. Names hold the time, so none is used twice.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from hive_replication.drift.findings import TableDrift
from hive_replication.dump.source import Source
from hive_replication.errors import ReplicationError
from hive_replication.load.replica.target import Target
from hive_replication.logs import about
from hive_replication.storage import Storage, paths
from hive_replication.storage.hdfs_snapshots import (
    Difference,
    create_snapshot,
    delete_snapshot,
    since_snapshot,
    snapshottable,
)

_LOG = logging.getLogger(__name__)

_FRESH = 60.0  # seconds for which a difference is not asked for again


class NoSnapshots(ReplicationError):
    """No snapshots can be made of a directory; the message says why."""


class Snapshotted:
    """A directory of which snapshots are made, during a scan.

    Args:
        storage: the source's.
        uri: of the directory.
        names: of the snapshots of ours, oldest first; what is listed from now on, is listed after the last one.
    """

    def __init__(self, storage: Storage, uri: str, names: Sequence[str]) -> None:
        self._storage, self.uri, self.names = storage, uri, list(names)
        self._differences: dict[str, Difference] = {}
        self.asked = time.monotonic()

    def mark(self, location: str, name: str = "") -> str:
        """What a baseline keeps of the snapshot since which it holds: 16 hex digits of both; "" for directories outside.

        Args:
            location: URI of a directory.
            name: of the snapshot; the newest where "".
        """
        location = paths.normalise(location)
        text = f"{self.uri}\0{name or self.names[-1]}\0{location}"
        return hashlib.sha256(text.encode()).hexdigest()[:16] if paths.is_under(location, self.uri) else ""

    def snapshot_of(self, location: str, mark: str) -> str:
        """Name of the snapshot that a mark was made of; "" where that is gone, or the directory was another one."""
        return next((name for name in self.names if mark and mark == self.mark(location, name)), "")

    def has_changed(self, location: str, name: str) -> bool:
        """Whether anything below a directory may have changed since a snapshot.

        Raises:
            ReplicationError: HDFS does not tell.
        """
        if name not in self._differences:
            found = self._storage.about_webhdfs(self.uri, lambda web, path: since_snapshot(web, path, name))
            assert found is not None  # noqa: S101 (it was asked by WebHDFS for its snapshottable directories)
            self._differences[name] = found
        return self._differences[name].touches(paths.normalise(location)[len(self.uri) :].lstrip("/"))


class Snapshots:
    """The snapshots of one replica of a database.

    Args:
        storage: the source's.
        policy: name of the policy.
        database: source database.
        replica: what tells this replica of the database from others, of which there may be some by policies of the same name.
        begun: when the scan of all tables began, seconds since the epoch; it makes at most one snapshot of a directory.

    Attributes:
        created: how many were made.
        deleted: how many were deleted.
    """

    def __init__(self, storage: Storage, policy: str, database: str, replica: str, begun: float) -> None:
        self._storage, self._database, self._begun = storage, database, round(1000 * begun)
        self._prefix = f"hive_replication.{policy}.{database}.{hashlib.sha256(replica.encode()).hexdigest()[:8]}."
        self._ours = re.compile(re.escape(self._prefix) + r"\d{13,}")
        self._known: dict[str, Snapshotted] = {}
        self._allowed: dict[str, Mapping[str, int]] = {}  # by store; see _directories
        self.created = self.deleted = 0

    def directory_of(self, location: str, *, deleted: bool) -> str:
        """URI of the snapshottable directory that a table's directory is, or lies in.

        Args:
            location: of the table.
            deleted: whether Hive deletes the table's directory when it drops the table: HDFS refuses that while it has snapshots.

        Raises:
            NoSnapshots: there is none, or its store does not tell.
        """
        location = paths.normalise(location)
        uri = next((one for one in self._directories(location) if paths.is_under(location, one)), None)
        if uri is None:
            raise NoSnapshots(f"neither {location} nor a directory above it allows snapshots to this account")
        if deleted and uri == location:
            raise NoSnapshots(f"with snapshots of {location} Hive could not drop the table: allow them of a directory above")
        return uri

    def of(self, location: str, *, deleted: bool) -> Snapshotted:
        """The same, with a snapshot that is older than what is listed from now on.

        Raises:
            NoSnapshots: there is no such directory, or no snapshot can be made of it.
        """
        uri = self.directory_of(location, deleted=deleted)
        try:
            return self._snapshotted(uri)
        except (ReplicationError, OSError) as error:
            raise NoSnapshots(f"no snapshots of {uri}: {error}") from error

    def recorded(self, found: Snapshotted, location: str) -> None:
        """Deletes all but the newest snapshot of a table's own directory, as its baselines are written; see :meth:`finish`."""
        if found.uri == paths.normalise(location):
            self._known.pop(found.uri, None)
            try:
                self._delete(found.uri, self._present(found.uri)[:-1])
            except (ReplicationError, OSError) as error:
                _LOG.warning("old snapshots of %s are left: %s", found.uri, error, extra=about(self._database))

    def finish(self, locations: Callable[[], Iterable[tuple[str, bool]]]) -> None:
        """At the end of a scan of all tables deletes all but the newest snapshots, and all of directories that hold no table.

        Args:
            locations: of the policy's tables, and whether Hive deletes them; only asked for where there are snapshots.
        """
        used: dict[str, bool] | None = None
        for root in {paths.split(root.uri)[:2]: root.uri for root in self._storage.roots}.values():
            try:
                for uri, number in self._directories(root).items():
                    may_have = (number or uri in self._known) and self._storage.holds(uri)
                    if may_have and (names := self._present(uri)):
                        used = {paths.normalise(one): deleted for one, deleted in locations()} if used is None else used
                        needed = any(paths.is_under(one, uri) and not (one == uri and used[one]) for one in used)
                        self._delete(uri, names[:-1] if needed else names)
            except NoSnapshots as error:
                _LOG.debug("no snapshots are looked for: %s", error, extra=about(self._database))
            except (ReplicationError, OSError) as error:
                _LOG.warning("old snapshots in the store of %s are left: %s", root, error, extra=about(self._database))

    def remove(self, location: str) -> None:
        """Deletes all snapshots of the directory that a table's directory is, or lies in: the policy asks for none.

        Raises:
            ReplicationError: they cannot be deleted.
        """
        for uri in self._directories(location):
            if paths.is_under(paths.normalise(location), uri):
                self._delete(uri, self._present(uri))

    def told(self, found: Iterable[TableDrift]) -> list[str]:
        """What they spared in a scan, and why not more, in sentences."""
        found = list(found)
        spared, looked = sum(one.spared for one in found), sum(one.looked for one in found)
        snapshots = f"snapshots: {self.created} made, {self.deleted} deleted; {spared:,} of {looked:,} directories not listed"
        whole = Counter(one.whole for one in found if one.whole)
        return [snapshots, *(f"all directories of {number} tables listed: {why}" for why, number in whole.items())]

    def _directories(self, location: str) -> Mapping[str, int]:
        """How many snapshots there were by the URIs of the snapshottable directories of a location's store."""
        scheme, authority, _ = paths.split(location)
        store = f"{scheme}://{authority}"
        if store not in self._allowed:
            try:
                found = self._storage.about_webhdfs(location, lambda web, _: snapshottable(web, "/"))
            except (ReplicationError, OSError) as error:
                raise NoSnapshots(f"{store} does not tell its snapshottable directories: {error}") from error
            if found is None:
                raise NoSnapshots(f"{store} has no snapshots, or its root in the policy no webhdfs")
            self._allowed[store] = {paths.normalise(store + path): number for path, number in found.items()}
        return self._allowed[store]

    def _snapshotted(self, uri: str) -> Snapshotted:
        """Where two are left, the last scan has not come to its end: this one goes on with both."""
        if (known := self._known.get(uri)) and time.monotonic() - known.asked < _FRESH:
            return known
        names = self._present(uri)
        newest = _number(names[-1]) if names else 0
        if not names or (len(names) == 1 and newest < self._begun):
            name = f"{self._prefix}{max(round(1000 * time.time()), newest + 1):013d}"
            self._storage.about_webhdfs(uri, lambda web, path: create_snapshot(web, path, name))
            self.created += 1
            names = [*names, name]
        self._known[uri] = Snapshotted(self._storage, uri, names)
        return self._known[uri]

    def _present(self, uri: str) -> list[str]:
        """Names of ours, oldest first."""
        found = (paths.name(one.uri) for one in self._storage.ls(f"{uri.rstrip('/')}/.snapshot"))
        return sorted(filter(self._ours.fullmatch, found), key=_number)

    def _delete(self, uri: str, names: Iterable[str]) -> None:
        for name in names:
            self._storage.about_webhdfs(uri, lambda web, path, name=name: delete_snapshot(web, path, name))
            self.deleted += 1


def snapshots_of(source: Source, target: Target, database: str, begun: float) -> Snapshots:
    """The snapshots at the source by which drift from a replica is found.

    Args:
        source: the source side.
        target: the target side.
        database: source database.
        begun: see :class:`Snapshots`.
    """
    replica = f"{target.identity}/{target.policy.target_of(database)}"
    return Snapshots(source.storage, source.policy.name, database, replica, begun)


def remove_snapshots(source: Source, target: Target, database: str) -> None:
    """Deletes them, if the policy asks for them: the source is to be a replica, whose directories are moved and deleted."""
    if source.policy.drift and source.policy.drift.snapshots:
        snapshots_of(source, target, database, 0.0).finish(tuple)


def _number(name: str) -> int:
    """When a snapshot was made, milliseconds since the epoch."""
    return int(name.rpartition(".")[2])
