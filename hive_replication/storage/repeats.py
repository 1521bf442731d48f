"""Which calls to a store are repeated, for how long, and how a move is repeated whose answer was lost."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from tenacity import RetryCallState, stop_after_attempt, wait_random_exponential

from hive_replication.logs import repeats
from hive_replication.policy import Root
from hive_replication.retries import with_retries
from hive_replication.storage import webhdfs_answers
from hive_replication.storage.backend import Backend
from hive_replication.storage.client_errors import Busy
from hive_replication.storage.failures import is_down, is_transient, is_unanswered
from hive_replication.storage.hdfs_backend import HdfsBackend
from hive_replication.storage.webhdfs import WebHdfs

_LOG = logging.getLogger(__name__)
_ATTEMPTS = 4

T = TypeVar("T")


def repeated(
    call: Callable[[Backend, str], T], store: Backend, path: str, uri: str, root: Root, after: Callable[[RetryCallState], None]
) -> T:
    """Makes a call, up to four times where it meets a passing trouble; a nameservice that does not answer has its patience.

    ``hdfs-native`` waits for an active NameNode, but does not repeat a change that a NameNode may have made before it died.

    Args:
        call: gets the store and the path.
        store: of the root.
        path: on the store.
        uri: what the call is about.
        root: it lies under.
        after: called after each attempt that met such a trouble.
    """
    patience = root.patience

    def enough(state: RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome else None
        if patience and error and (is_unanswered(error) or is_down(error)):
            return (state.seconds_since_start or 0) >= patience
        return state.attempt_number >= _ATTEMPTS

    return with_retries(
        lambda: call(store, path),
        lambda error: is_transient(error) or (patience > 0 and is_unanswered(error)),
        stop=enough,
        wait=wait_random_exponential(0.2, max=5),
        before_sleep=repeats(_LOG, "a call about %s", uri),
        after=after,
    )


def once_served(call: Callable[[str], T], name: str) -> T:
    """Makes one of several calls for a change, up to four times where a store is busy: the change as a whole cannot be repeated.

    Args:
        call: gets the name; what it does may be done twice.
        name: of an object.
    """
    return with_retries(
        lambda: call(name),
        lambda error: isinstance(error, Busy),
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_random_exponential(0.2, max=5),
        before_sleep=repeats(_LOG, "a call about %s", name),
    )


def about_webhdfs(call: Callable[[WebHdfs, str], T], store: Backend, path: str) -> T | None:
    """A call over WebHDFS, which may be repeated where no NameNode answers; None, where nothing is called, from a store without.

    Args:
        call: gets the store's WebHDFS and the path.
        store: any.
        path: on the store.
    """
    web = store.webhdfs if isinstance(store, HdfsBackend) else None
    if web is None:
        return None
    try:
        return call(web, path)
    except webhdfs_answers.Busy as error:
        raise Busy(str(error)) from error


def moving(source: str, directory: str) -> Callable[[Backend, str], None]:
    """A call that moves a file or directory to a free path, and may be repeated.

    Args:
        source: its path.
        directory: where it goes to; made where it is missing.
    """
    begun: list[str] = []

    def move(store: Backend, path: str) -> None:
        begun.append(path)
        try:
            store.rename(source, path)
        except (FileExistsError, FileNotFoundError) as error:  # Of the source or of the directory.
            if len(begun) > 1 and not _there(store, source) and _there(store, path):
                return  # by the call before, whose answer was lost
            if isinstance(error, FileExistsError):
                raise
            store.status(source)
            store.mkdirs(directory)
            store.rename(source, path)

    return move


def once(data: bytes) -> Callable[[Backend, str], bool]:
    """A call that writes a small file in a bucket under a free name, and may be repeated; False, nothing written, elsewhere.

    A bucket has no rename: of two that find the name free, both copy what they have written under another one.

    Args:
        data: its content.
    """
    begun: list[str] = []

    def write(store: Backend, path: str) -> bool:
        if not store.is_bucket:
            return False
        if not begun and _there(store, path):
            raise FileExistsError(path)
        begun.append(path)
        try:
            store.write(path, data, block_size=None, overwrite=False)
        except FileExistsError:
            if b"".join(store.stream(path, len(data) + 1)) != data:
                raise  # else it is by a request whose answer was lost, perhaps of the client, which repeats them by itself
        return True

    return write


def _there(store: Backend, path: str) -> bool:
    try:
        store.status(path)
    except FileNotFoundError:
        return False
    return True
