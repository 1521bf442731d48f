"""Makes the copied files of a table or partition visible, and its new image for the metastore."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from hive_replication.copy.preserve import Place
from hive_replication.copy.proof import Crc32c
from hive_replication.copy.tasks import Check, CopyFailure, CopyTask
from hive_replication.copy.thread_copier import ThreadCopier
from hive_replication.copy.while_held import WhileHeld, go_on
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.events.files import FileRef
from hive_replication.load.apply.lane_placement import Visibility
from hive_replication.load.layout.directories import is_temporary
from hive_replication.load.layout.file_moves import move_file
from hive_replication.load.operations import kinds as op
from hive_replication.load.replica.fingerprint import with_fingerprint
from hive_replication.load.replica.hive4_translation import keep_translation
from hive_replication.load.replica.name_mapping import point_at
from hive_replication.load.replica.state import PREFIX
from hive_replication.load.replica.target_boundary import TargetBoundary
from hive_replication.metastore.statistics import claimed, with_claims
from hive_replication.metastore.types import Partition, Table, copy_of, directory_of
from hive_replication.storage import Storage
from hive_replication.storage.access import Access

Thing = TypeVar("Thing", Table, Partition)


def with_data(
    storage: Storage,
    boundary: TargetBoundary,
    current: Thing,
    operation: op.ReplaceData | op.AppendData,
    shown: str,
    directory: str,
    mode: Visibility,
    place: Place | None = None,
    check: Check = go_on,
) -> Thing:
    """Makes the files of an operation part of an object's data; returns the new image of the object.

    Args:
        storage: the target's.
        boundary: of the target database.
        current: the present table or partition.
        operation: the change of its data.
        shown: its name for reports.
        directory: where the files are staged.
        mode: how they become visible.
        place: of a new file, where access is preserved: files that are there already keep theirs.
        check: raises if the lock is lost; asked before each file that readers see at once.

    Raises:
        ReplicationError: a file of the same name has other content.
        Refused: the object's present location, which anybody may have changed since it was placed, is none of the policy's.
    """
    live = directory_of(current)
    relocates = mode in ("replace", "union")
    if mode in ("append", "union"):
        boundary.require_within(live, shown)
    if mode == "append":
        if place:  # else a new sub-directory would be open to all
            below = (file.relative for file in operation.content.files if file.subdir)
            _places(storage, live, directory, (one for one in below if storage.exists(f"{directory}/{one}")), place)
        _append(storage, directory, live, operation, shown, place, check)
    elif relocates:
        storage.mkdirs(directory)
    if mode == "union":
        _stage_live_files(storage, directory, live, operation, shown, place, check)
    location = directory if relocates else current.sd.location
    image = operation.image if isinstance(operation.image, type(current)) else current
    files = file_names(operation.content) if mode == "replace" else list(storage.named_files(str(location)))
    return with_fingerprint(merged_image(image, current, location, changes_data=mode != "same"), files)


def merged_image(image: Thing, current: Thing, location: str | None, *, changes_data: bool = False) -> Thing:
    """An image with a location, and with the parameters that only the target has.

    Column statistics are marked as accurate only if both images mark them so, and never for changed data.

    Args:
        image: the source's image.
        current: the target's image.
        location: of its data on the target.
        changes_data: whether its data changes.
    """
    made = copy_of(image)
    point_at(made.sd, location)
    kept = {key: value for key, value in (current.parameters or {}).items() if key.startswith(PREFIX)}
    claims = frozenset[str]() if changes_data else claimed(image.parameters) & claimed(current.parameters)
    made.parameters = with_claims(kept | (made.parameters or {}), claims)
    if isinstance(made, Table) and isinstance(current, Table):
        keep_translation(made, current)
    return with_fingerprint(made)


def file_names(content: op.Content) -> list[str]:
    """Names of files relative to the object's directory."""
    return [file.relative for file in content.files]


def _stage_live_files(
    storage: Storage,
    staged: str,
    live: str,
    operation: op.ReplaceData | op.AppendData,
    shown: str,
    place: Place | None,
    check: Check,
) -> None:
    """Copies the live files to the staged ones, so that all become visible at once (policy ``append: atomic``)."""
    tasks: list[CopyTask] = []
    found = storage.named_files(live)
    places = _places(storage, staged, live, found, place) if place else {}
    for name, status in found.items():
        checksum = storage.checksum(status.uri)
        file = FileRef(status.uri, checksum.value if checksum else "")
        tasks.append(CopyTask(file, f"{staged}/{name}", operation.evid, shown, status.size, places.get(name.rpartition("/")[0])))
    for answer in WhileHeld(ThreadCopier(storage, storage), check).copy(tasks):
        if isinstance(answer, CopyFailure):
            raise answer.error


def _places(storage: Storage, target: str, origin: str, names: Iterable[str], like: Place) -> dict[str, Place]:
    """Directories that files go to, by their paths below ``target``; those that are made take after theirs in ``origin``."""
    above = {"/".join(parts[:length]) for parts in (name.split("/") for name in names) for length in range(len(parts))}
    found: dict[str, Place] = {}
    for below in sorted(above):
        directory = f"{target}/{below}".rstrip("/")
        made = not storage.exists(directory)
        if made:
            storage.mkdirs(directory, 0o700)
        access = _access(storage, directory)
        if access is None:
            return {}
        private = bool(below) and not (access.members or access.other)  # of a load that was killed before it gave it access
        wanted = _access(storage, f"{origin}/{below}") if made or private else None
        if wanted is not None:
            access = like.preserve.give(storage, directory, replace(wanted, user=7), access, is_dir=True)
        found[below] = Place(like.preserve, Access(like.new.owner, access.group, 6, 0, 0, default=access.default), asks=True)
    return found


def _access(storage: Storage, directory: str) -> Access | None:
    return storage.about_access(directory, lambda store, path: store.read(path))


def _append(
    storage: Storage,
    staged: str,
    live: str,
    operation: op.ReplaceData | op.AppendData,
    shown: str,
    like: Place | None,
    check: Check,
) -> None:
    """Moves the staged files to the live directory, many at once: a window may have an INSERT for each of thousands."""

    def move(file: FileRef) -> None:
        source, place = f"{staged}/{file.relative}", f"{live}/{file.relative}"
        staged_now, placed = storage.exists(source), storage.exists(place)
        if not staged_now:
            if not placed:
                raise ReplicationError(f"{place}, which event {operation.evid} adds, is neither there nor staged")
            return  # in place already, as the placement found
        if not placed:

            def access() -> Place | None:
                return _places(storage, live, staged, [file.relative], like).get(file.subdir) if like else None

            move_file(storage, source, place, shown=shown, evid=operation.evid, access=access, check=check)
        elif _same(storage, source, place):
            storage.delete(source)
        else:
            raise ReplicationError(f"{place} exists on the target with other content than event {operation.evid} adds")

    files = operation.content.files
    deque(storage.threads.map(move, files) if len(files) > 1 else map(move, files), maxlen=0)
    try:
        storage.delete(staged)
    except Unreachable:
        raise
    except ReplicationError:  # it is not empty
        _delete_unfinished(storage, staged)


def _delete_unfinished(storage: Storage, staged: str) -> None:
    """Deletes unfinished files of killed copies, and directories that are empty: whatever else is there is somebody else's."""
    for one in storage.ls(staged):
        if one.is_dir:
            _delete_unfinished(storage, one.uri)
        elif is_temporary(one.uri):
            storage.delete(one.uri)
    if not storage.ls(staged):
        storage.delete(staged)


def _same(storage: Storage, *files: str) -> bool:
    """Whether two files have the same content: by their store's checksums, which in an encryption zone are never the same."""
    one, other = (storage.checksum(file) for file in files)
    if one is not None and one == other:
        return True
    read, again = (Crc32c.of(storage.stream(file)) for file in files)
    return read == again
