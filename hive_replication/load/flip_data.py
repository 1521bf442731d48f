"""Bringing data to a table or partition: what it is to be, with its new location or its new files."""

from __future__ import annotations

from typing import TypeVar

from hive_replication.copy.tasks import CopyFailure, CopyTask
from hive_replication.copy.threads import ThreadCopier
from hive_replication.errors import ReplicationError
from hive_replication.events.files import FileRef
from hive_replication.load import operations as op
from hive_replication.load.mapping import placed as point_at
from hive_replication.load.place import Mode
from hive_replication.load.stamp import stamped
from hive_replication.load.state import PREFIX
from hive_replication.load.translation import keep_translation
from hive_replication.metastore.statistics import claimed, with_claims
from hive_replication.metastore.types import Partition, Table, copy_of, directory_of
from hive_replication.storage import Storage

Thing = TypeVar("Thing", Table, Partition)


def with_data(
    storage: Storage, current: Thing, operation: op.ReplaceData | op.AppendData, shown: str, directory: str, mode: Mode
) -> Thing:
    """Brings the files of an operation; answers the object as its metastore shall have it now.

    Args:
        storage: the target's.
        current: the table or partition as it is.
        operation: what changes its data.
        shown: its name for reports.
        directory: where the files are staged.
        mode: how they become visible.

    Raises:
        ReplicationError: a file is in the way.
    """
    live = directory_of(current)
    flips = mode in ("replace", "union")
    if mode == "append":
        _append(storage, directory, live, operation)
    elif flips:
        storage.mkdirs(directory)
    if mode == "union":
        _join(storage, directory, live, operation, shown)
    location = directory if flips else current.sd.location
    image = operation.image if isinstance(operation.image, type(current)) else current
    files = names_of(operation.content) if mode == "replace" else list(storage.named_files(str(location)))
    return stamped(merged(image, current, location, changes_data=mode != "same"), files)


def merged(image: Thing, current: Thing, location: str | None, *, changes_data: bool = False) -> Thing:
    """An image with the location given, keeping what only the target knows of the object.

    Statistics of columns are claimed to be accurate only where both claim it, and none of changed data.

    Args:
        image: as the source has it.
        current: as the target has it.
        location: where its data lies.
        changes_data: whether its data is other data now.
    """
    made = copy_of(image)
    point_at(made.sd, location)
    kept = {key: value for key, value in (current.parameters or {}).items() if key.startswith(PREFIX)}
    claims = frozenset[str]() if changes_data else claimed(image.parameters) & claimed(current.parameters)
    made.parameters = with_claims(kept | (made.parameters or {}), claims)
    if isinstance(made, Table) and isinstance(current, Table):
        keep_translation(made, current)
    return stamped(made)


def names_of(content: op.Content) -> list[str]:
    """Names of its files, relative to the object's directory."""
    return [file.relative for file in content.files]


def _join(storage: Storage, staged: str, live: str, operation: op.ReplaceData | op.AppendData, shown: str) -> None:
    """Copies the live files beside the staged ones, so that all become visible at once (policy ``append: atomic``)."""
    tasks: list[CopyTask] = []
    for name, status in storage.named_files(live).items():
        checksum = storage.checksum(status.uri)
        file = FileRef(status.uri, checksum.value if checksum else "")
        tasks.append(CopyTask(file, f"{staged}/{name}", operation.evid, shown, status.size))
    for answer in ThreadCopier(storage, storage).copy(tasks):
        if isinstance(answer, CopyFailure):
            raise ReplicationError(answer.reason)


def _append(storage: Storage, staged: str, live: str, operation: op.ReplaceData | op.AppendData) -> None:
    """Gives each staged file its name in the live directory, one after another."""
    for file in operation.content.files:
        source, place = f"{staged}/{file.relative}", f"{live}/{file.relative}"
        if not storage.exists(source):
            continue  # in place already, as the placement saw
        if not storage.exists(place):
            storage.rename(source, place)
        elif storage.checksum(source) == storage.checksum(place):
            storage.delete(source)
        else:
            raise ReplicationError(f"{place} exists on the target with other content than event {operation.evid} adds")
    storage.delete(staged, recursive=True)  # empty now, or holding what a killed copy left unfinished
