"""Snapshots of HDFS and the difference between one and the present, by WebHDFS of Hadoop 3.1 and later.

An account may make and delete snapshots of directories that it owns and that an administrator has opened for it
(``hdfs dfsadmin -allowSnapshot``). Names are paths below the snapshottable directory, "" for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from hive_replication.bounded_json import parsed
from hive_replication.errors import ReplicationError
from hive_replication.storage.webhdfs import WebHdfs

_MOST = 16 << 20  # bytes of a difference: of 100,000 changes; with more all may as well be listed
_KINDS = frozenset({"CREATE", "DELETE", "MODIFY", "RENAME"})


@dataclass(frozen=True, slots=True)
class Difference:
    """What has changed since a snapshot.

    Args:
        changed: names of what is new, gone, renamed or modified, and of all directories above.
        replaced: names of what is new, gone or renamed (both names): of what lies below HDFS tells nothing, or by the old name.
    """

    changed: frozenset[str]
    replaced: frozenset[str]

    def touches(self, name: str) -> bool:
        """Whether a directory, or what lies below, may not be what it was."""
        return name in self.changed or any(one in self.replaced for one in _and_above(name))


def snapshottable(web: WebHdfs, path: str) -> Mapping[str, int]:
    """How many snapshots there are by the paths of directories of which the account may make some; a superuser is told all.

    Raises:
        ReplicationError: this HDFS does not tell; OSErrors likewise.
    """
    op = "GETSNAPSHOTTABLEDIRECTORYLIST"
    try:
        found = parsed(web.told(path, op, most=_MOST), most=_MOST, values=_MOST)["SnapshottableDirectoryList"] or ()
        return {_path(one): int(one["snapshotNumber"]) for one in found}
    except (LookupError, TypeError, ValueError) as error:
        raise ReplicationError(f"{op} is answered without {error}") from error


def create_snapshot(web: WebHdfs, path: str, name: str) -> None:
    """Makes a snapshot of a directory.

    Raises:
        ReplicationError: it cannot be made; OSErrors likewise.
    """
    web.told(path, "CREATESNAPSHOT", {"snapshotname": name}, method="PUT")


def delete_snapshot(web: WebHdfs, path: str, name: str) -> None:
    """Deletes a snapshot of a directory.

    Raises:
        ReplicationError: it cannot be deleted, or is gone; OSErrors likewise.
    """
    web.told(path, "DELETESNAPSHOT", {"snapshotname": name}, method="DELETE")


def since_snapshot(web: WebHdfs, path: str, name: str) -> Difference:
    """What has changed in a directory since a snapshot of it.

    The directory has to be the snapshottable one: of one below, which was renamed away and made anew, HDFS tells no difference.

    Raises:
        ReplicationError: there is no such snapshot, or HDFS does not tell; OSErrors likewise.
    """
    op = "GETSNAPSHOTDIFF"
    body = web.told(path, op, {"oldsnapshotname": name, "snapshotname": ""}, most=_MOST)
    try:
        report = parsed(body, most=_MOST, values=_MOST)["SnapshotDiffReport"]
        of, found = (report["snapshotRoot"], report["fromSnapshot"]), difference(report["diffList"])
    except (LookupError, TypeError, ValueError) as error:
        raise ReplicationError(f"{op} of {path} is answered without {error}") from error
    if of != (path, name):
        raise ReplicationError(f"{op} of {path} is answered without the snapshot {name}: of another one")
    return found


def difference(entries: Iterable[Mapping[str, Any]]) -> Difference:
    """Reads the entries of a ``SnapshotDiffReport`` (pure).

    That of a directory says MODIFY where entries in it are new, gone or renamed, and each of those has an entry of its own, but
    not what lies below them; what was modified below a renamed one is told under its old name.

    Raises:
        ValueError: an entry is of no kind that is known; LookupErrors likewise.
    """
    changed: set[str] = set()
    replaced: set[str] = set()
    for entry in entries:
        kind, names = entry["type"], [str(entry["sourcePath"])]
        if kind not in _KINDS:
            raise ValueError(f"a known kind of change ({kind!r})")
        if kind == "RENAME":
            names.append(str(entry["targetPath"]))
        for name in names:
            changed.update(_and_above(name))
        if kind != "MODIFY":
            replaced.update(names)
    return Difference(frozenset(changed), frozenset(replaced))


def _and_above(name: str) -> Iterator[str]:
    """A name, and those of the directories above it."""
    while name:
        yield name
        name = name.rpartition("/")[0]
    yield ""


def _path(one: Mapping[str, Any]) -> str:
    """Of an entry of ``GETSNAPSHOTTABLEDIRECTORYLIST``."""
    status = cast("Mapping[str, Any]", one["dirStatus"])
    return f"{str(one['parentFullPath']).rstrip('/')}/{status['pathSuffix']}".rstrip("/") or "/"
