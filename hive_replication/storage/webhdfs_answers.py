"""What the refusals of a WebHDFS mean."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

from hive_replication.bounded_json import parsed
from hive_replication.errors import ReplicationError
from hive_replication.logs import without_secrets
from hive_replication.storage.file_status import FileChecksum, StillOpen

_GATEWAY = (502, 503, 504)


class Busy(OSError):
    """No answer now: nobody listens, a standby NameNode, safe mode, a proxy that does not reach it."""


class Slow(Busy):
    """No answer within the time for it, from a server that listens."""


class Failing(ReplicationError):
    """An answer that may be better next time: the DataNode that was asked is lost."""


class Answered(ReplicationError):
    """An exception of Hadoop's own, about what was asked for: of a checksum, that blocks of the file are lost or damaged."""


class AnsweredFailing(Answered, Failing):
    """The same, which may be better next time."""


def not_webhdfs(path: str, body: bytes) -> ReplicationError:
    """The error of an answer that no WebHDFS gives."""
    text = without_secrets(" ".join(body[:1000].decode(errors="replace").split()))[:100]
    return ReplicationError(
        f"what was asked about {path} is not answered by WebHDFS but with {text!r}, as by a login page: set webhdfs of the "
        "storage root in the policy to the HTTP address of the NameNode"
    )


def object_of(path: str, body: bytes, name: str) -> Mapping[str, Any]:
    """The object that an answer holds.

    Raises:
        ReplicationError: it holds none.
    """
    try:
        answer: Any = parsed(body)[name]
    except (LookupError, TypeError, ValueError) as error:
        raise not_webhdfs(path, body) from error
    if type(answer) is not dict:
        raise not_webhdfs(path, body)
    return cast("Mapping[str, Any]", answer)


def checksum_of(path: str, body: bytes) -> FileChecksum:
    """The checksum that an answer holds.

    Raises:
        ReplicationError: it holds none.
    """
    answer = object_of(path, body, "FileChecksum")
    try:
        # The text may be longer than the checksum: Hadoop writes its whole buffer, padded with zeros.
        return FileChecksum(str(answer["algorithm"]), str(answer["bytes"])[: 2 * int(answer["length"])].lower())
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise not_webhdfs(path, body) from error


def message(body: str) -> str:
    """What Hadoop's exception says, "" where an answer has none."""
    return _of_exception(body, "message").split("\n", 1)[0][:300]  # without the stack trace


def is_of_gateway(status: int, body: str) -> bool:
    """Whether a proxy answers in place of a WebHDFS, which it does not reach now."""
    return status in _GATEWAY and not _of_exception(body, "exception")


def _of_exception(body: str, name: str) -> str:
    with suppress(LookupError, TypeError, ValueError):
        return str(parsed(body.encode())["RemoteException"][name])
    return ""


def error_of(path: str, status: int, body: str) -> Exception:
    """What an answer other than 200 means; WebHDFS names Hadoop's exception in a RemoteException."""
    text = without_secrets(" ".join(body.split()))[:300]
    if status == 404:  # others answer so about all that they do not serve
        known = _of_exception(body, "exception").endswith("FileNotFoundException")
        return FileNotFoundError(path) if known else not_webhdfs(path, body.encode())
    if is_of_gateway(status, body):
        return Busy(f"a proxy answers {status} in place of WebHDFS: {text}")
    kind = _of_exception(body, "exception") or text  # its message may name a file, which may have any name
    if "FileAlreadyExistsException" in kind:
        return FileExistsError(path)
    if "StandbyException" in kind or "RetriableException" in kind:
        return Busy(f"WebHDFS answered {status}: {text}")
    if status == 401 or "AccessControlException" in kind or "SecurityException" in kind:
        return PermissionError(errno.EACCES, f"WebHDFS refuses: {message(body) or text}", path)
    if "is under construction" in text:
        return StillOpen(f"{path} is still being written: HDFS has no checksum of it yet")
    # Hadoop answers 403 to any IOException that it knows no better code for.
    failing, final = (AnsweredFailing, Answered) if message(body) else (Failing, ReplicationError)
    return (failing if status >= 500 else final)(f"WebHDFS answered {status} for {path}: {text}")
