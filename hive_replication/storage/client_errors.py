"""From what clients of object stores raise to OSErrors, which the rest knows."""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

from hive_replication.errors import ReplicationError

# How s3fs tells 503 (slow down) and 500.
_BUSY = frozenset({errno.EBUSY, getattr(errno, "EREMOTEIO", errno.EBUSY)})
# What a network answers. Python makes ConnectionErrors of some of these; aiohttp's errors, which gcsfs lets through, are none.
_NETWORK = frozenset(
    {
        *(errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ETIMEDOUT),
        *(errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.ENETUNREACH, errno.ENETDOWN),
    }
)
_AIOHTTPS = re.compile(r"Client\w*Error")
_DENIED, _NOT_NOW = 403, frozenset({401, 408, 429})
_NOT_IMPLEMENTED = 501
# How S3 names credentials or a clock that it takes for no request at all.
_NO_CREDENTIALS = frozenset(
    {
        *("ExpiredToken", "InvalidToken", "TokenRefreshRequired", "InvalidAccessKeyId"),
        *("RequestTimeTooSkewed", "RequestExpired", "AuthorizationHeaderMalformed", "InvalidClientTokenId"),
    }
)
# To a HEAD it answers 400 alone, of these too, but also of an object with a customer's key and of a key that is too long. Some
# gateways sign names with odd characters in another way.
_OF_ONE_OR_ALL = frozenset({"400", "SignatureDoesNotMatch"})
# What Python raises where a client can do nothing with a name or an option; their own classes tell of the store.
_OF_THE_CALL = (ValueError, TypeError, LookupError, AttributeError, NotImplementedError, ArithmeticError)


class Busy(ConnectionError):
    """A store asks for fewer requests, or cannot answer at this moment."""


@contextmanager
def answered(ask: Callable[[], object] | None = None) -> Generator[None]:
    """Around calls of a client of an object store: what it raises is an OSError.

    Botocore, gcsfs and Azure's have errors of their own for a store that cannot be reached and for credentials that are missing.

    Args:
        ask: asks the store for something else, where its answer may concern one object or all.
    """
    try:
        yield
    except ReplicationError:
        raise
    except Exception as error:
        told = _as_os_error(error)
        if told is error or (ask and _is_of_one(error, ask)):
            raise
        raise told from error


@contextmanager
def written(ask: Callable[[], object] | None = None) -> Generator[None]:
    """The same around calls that write into a bucket: nothing else can be missing there."""
    try:
        with answered(ask):
            yield
    except FileNotFoundError as error:
        raise ConnectionError(f"its bucket is missing ({error})") from error


class Answers:
    """A file system of fsspec whose calls raise OSErrors only; see :func:`answered`.

    Args:
        files: the file system.
        ask: see there.
    """

    def __init__(self, files: Any, ask: Callable[[], object] | None = None) -> None:
        self._files, self._ask = files, ask

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._files, name)
        return answered(self._ask)(found) if callable(found) else found


def _is_of_one(error: Exception, ask: Callable[[], object]) -> bool:
    """Whether an answer of S3 that may concern one object or all does concern one: the store serves others."""
    if not isinstance(error, OSError) or _of_s3(error)[0] not in _OF_ONE_OR_ALL:
        return False
    try:
        with answered():
            ask()
    except (ConnectionError, TimeoutError):
        return False
    except OSError:
        return True  # an empty bucket, or one that may not be listed: it has taken the credentials
    return True


def _as_os_error(error: BaseException) -> OSError:
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, OSError):
        code, status = _of_s3(error)
        if error.errno in _BUSY or code == "RequestTimeout" or (status >= 500 and status != _NOT_IMPLEMENTED):
            return Busy(str(error))
        if _is_of_network(error) or code in _NO_CREDENTIALS | _OF_ONE_OR_ALL:
            return ConnectionError(text)
        forbidden = error.errno is None and str(error).startswith("Forbidden")  # as gcsfs tells 403
        return PermissionError(errno.EACCES, str(error)) if forbidden else error
    if isinstance(error, RuntimeError) and error.__cause__ is not None:  # adlfs wraps Azure's
        return _as_os_error(error.__cause__)
    status = _http_status(error)
    if status == _DENIED:
        return PermissionError(errno.EACCES, text)
    if isinstance(error, (*_OF_THE_CALL, RuntimeError)) or (400 <= status < 500 and status not in _NOT_NOW):
        return OSError(errno.EIO, text)
    return Busy(text) if status >= 500 or status in _NOT_NOW - {401} else ConnectionError(text)


def _is_of_network(error: OSError) -> bool:
    """Whether an error, which Python's own classes do not tell so, means that a store was not reached."""
    if isinstance(error, ConnectionError | TimeoutError):
        return False
    return isinstance(error, socket.gaierror) or error.errno in _NETWORK or bool(_AIOHTTPS.fullmatch(type(error).__name__))


def _of_s3(error: OSError) -> tuple[str, int]:
    """Code and HTTP status of S3's answer, which s3fs keeps as the cause: its errors' numbers do not tell them apart."""
    answer = getattr(error.__cause__, "response", None)
    if not isinstance(answer, dict):
        return "", 0
    parts = cast("dict[str, dict[str, Any]]", answer)
    code, status = parts.get("Error", {}).get("Code", ""), parts.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return str(code), status if isinstance(status, int) else 0


def _http_status(error: BaseException) -> int:
    """Of an HTTP answer that an error stands for; 0 where it stands for none."""
    told = (str(getattr(error, name, "")) for name in ("status_code", "code", "status"))
    return next((int(value) for value in told if value.isdecimal()), 0)
