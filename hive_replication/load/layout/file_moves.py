"""Moving a file to where a rename may not lead: another store, or another encryption zone."""

from __future__ import annotations

from collections.abc import Callable

from hive_replication.copy.preserve import Place
from hive_replication.copy.tasks import Check, CopyFailure, CopyTask
from hive_replication.copy.thread_copier import ThreadCopier
from hive_replication.copy.while_held import WhileHeld, go_on
from hive_replication.errors import ReplicationError
from hive_replication.events.files import FileRef
from hive_replication.storage import AlreadyExists, Storage, paths

# In the three messages with which HDFS refuses to move something into a zone, out of one, or from one to another.
_ZONE = "encryption zone"


def move_file(
    storage: Storage,
    file: str,
    place: str,
    *,
    shown: str,
    evid: int = 0,
    access: Callable[[], Place | None] = lambda: None,
    check: Check = go_on,
) -> None:
    """Gives a file another name, or where that cannot be copies it, proven as every copy is, and deletes it then.

    Args:
        storage: of both places.
        file: its URI.
        place: the new one, which is free.
        shown: the object that it is of, for reports.
        evid: of the event that asks for it, for reports.
        access: tells that of a new file in the place, where access is preserved.
        check: raises if the lock is lost; asked before it gets the name.

    Raises:
        AlreadyExists: the name is taken.
        ReplicationError: it could not be copied; Unreachable where the store does not answer.
    """
    check()
    if paths.split(file)[:2] == paths.split(place)[:2]:
        try:
            storage.rename(file, place)
        except AlreadyExists:
            raise
        except ReplicationError as error:
            if _ZONE not in str(error):
                raise
        else:
            return
    checksum = storage.checksum(file)
    task = CopyTask(FileRef(file, checksum.value if checksum else ""), place, evid, shown, place=access())
    for answer in WhileHeld(ThreadCopier(storage, storage), check).copy([task]):
        if isinstance(answer, CopyFailure):
            raise answer.error
    storage.delete(file)
