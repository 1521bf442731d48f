"""What an object store's client raises is told as what it means: for one file, or for the whole store."""

from __future__ import annotations

import errno
import socket
from typing import Any

import pytest

from hive_replication.copy.copy_file import copy_file
from hive_replication.copy.tasks import CopyFailure, CopyTask
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.events.files import FileRef
from hive_replication.policy import Root
from hive_replication.storage import Denied, Storage, object_store_backend
from tests.bucket import _Bucket

ROOT = "memory://bucket/"


class EndpointConnectionError(Exception):
    """As botocore has it, whose errors are no OSErrors."""


class ClientConnectorError(OSError):
    """As aiohttp has it, which gcsfs lets through: Python makes no ConnectionError of its number."""


class OtherError(OSError):
    """As another client may have it."""


class ClientError(Exception):
    """As botocore has it."""

    def __init__(self, code: str, status: int) -> None:
        super().__init__(f"An error occurred ({code}) when calling an operation")
        self.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}


def of_s3(error: OSError, code: str, status: int) -> OSError:
    """As s3fs raises what S3 answers."""
    error.__cause__ = ClientError(code, status)
    return error


class HttpError(Exception):
    """As gcsfs has it."""

    def __init__(self, code: int | str) -> None:
        super().__init__(f"answered {code}")
        self.code = code


class _Troubled(_Bucket):
    """A bucket whose client raises errors, one after another; the last one for ever."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors, self.asked = list(errors), 0

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0) if len(self.errors) > 1 else self.errors[0]
        return super().info(path, **options)


def storage(monkeypatch: pytest.MonkeyPatch, files: _Bucket) -> Storage:
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(object_store_backend.fsspec, "filesystem", lambda *_, **__: files)
    return Storage((Root(uri=ROOT),))


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (EndpointConnectionError("Could not connect to the endpoint URL"), 1),
        (ClientConnectorError(errno.ECONNREFUSED, "Cannot connect to host storage.googleapis.com:443"), 1),
        (ClientConnectorError(-3, "Temporary failure in name resolution"), 1),
        (OtherError(errno.EHOSTUNREACH, "No route to host"), 1),
        (socket.gaierror(-2, "Name or service not known"), 1),
        (TimeoutError(errno.ETIMEDOUT, "Connection timed out"), 1),
        (HttpError(401), 1),
        (HttpError("503"), 4),
        (HttpError(429), 4),
        (OSError(errno.EBUSY, "Please reduce your request rate."), 4),
        (OSError(errno.EREMOTEIO, "We encountered an internal error."), 4),
        (of_s3(OSError(errno.EIO, "HTTP Status code: 502"), "502", 502), 4),
        (of_s3(OSError(errno.EIO, "HTTP Status code: 504"), "504", 504), 4),
        (of_s3(OSError(errno.EIO, "Your socket connection was not read from"), "RequestTimeout", 400), 4),
        (of_s3(PermissionError("The provided token has expired."), "ExpiredToken", 400), 1),
        (of_s3(PermissionError("The difference between the request time and"), "RequestTimeTooSkewed", 403), 1),
        (of_s3(PermissionError("The AWS Access Key Id you provided"), "InvalidAccessKeyId", 403), 1),
    ],
)
def test_a_store_that_does_not_serve_is_unreachable(monkeypatch: pytest.MonkeyPatch, error: Exception, asked: int) -> None:
    files = _Troubled(error)
    with pytest.raises(Unreachable, match=r"^the storage root memory://bucket/ cannot be reached: "):
        storage(monkeypatch, files).status(f"{ROOT}t/f")
    assert files.asked == asked


class _Choosing(_Bucket):
    """A bucket that refuses one object, and perhaps all else."""

    def __init__(self, refused: OSError, others: Exception | None) -> None:
        super().__init__()
        self.refused, self.others = refused, others
        self.objects |= {"bucket/t/f": (b"1", 0.0), "bucket/t/g": (b"1", 0.0)}

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        error = self.refused if path.endswith("/f") else self.others
        if error:
            raise error
        return super().info(path, **options)

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        self.info(path)
        return super()._open(path, mode, **options)


HEAD_REFUSED = of_s3(OSError(errno.EINVAL, "Bad Request"), "400", 400)
OTHERWISE_SIGNED = of_s3(PermissionError("The request signature we calculated"), "SignatureDoesNotMatch", 403)
EXPIRED = of_s3(PermissionError("The provided token has expired."), "ExpiredToken", 400)


@pytest.mark.parametrize("refused", [HEAD_REFUSED, OTHERWISE_SIGNED])
@pytest.mark.parametrize(
    ("others", "serves"),
    [
        (None, True),
        (FileNotFoundError("bucket"), True),
        (of_s3(PermissionError("Access Denied"), "AccessDenied", 403), True),
        (EXPIRED, False),
        (OTHERWISE_SIGNED, False),
        (HEAD_REFUSED, False),
        (OSError(errno.EBUSY, "Slow down"), False),
        (TimeoutError("no answer"), False),
    ],
)
def test_an_object_that_is_refused_without_a_reason_is_alone_where_its_bucket_answers(
    monkeypatch: pytest.MonkeyPatch, refused: OSError, others: Exception | None, *, serves: bool
) -> None:
    """One with a customer's key, or whose name is too long or has odd characters, stopped its whole database for good."""
    store = storage(monkeypatch, _Choosing(refused, others))
    for call in (store.status, store.read, lambda uri: store.write(uri, b"1"), lambda uri: store.rename(uri, f"{uri}2")):
        with pytest.raises(ReplicationError, match="t/f" if serves else "cannot be reached") as told:
            call(f"{ROOT}t/f")
        assert isinstance(told.value, Unreachable) != serves


def test_a_store_that_is_busy_for_a_moment_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    files = _Troubled(OSError(errno.EBUSY, "Slow down"), OSError(errno.EREMOTEIO, "internal"), FileNotFoundError("t/f"))
    assert storage(monkeypatch, files).status(f"{ROOT}t/f") is None
    assert files.asked == 3


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (HttpError(400), ReplicationError),
        (ValueError("a name that no object can have"), ReplicationError),
        (HttpError(403), Denied),
        (of_s3(PermissionError("Access Denied"), "AccessDenied", 403), Denied),
        (of_s3(PermissionError("Forbidden"), "403", 403), Denied),
        (of_s3(OSError(errno.EINVAL, "Your key is too long"), "KeyTooLongError", 400), ReplicationError),
        (of_s3(OSError(errno.EIO, "A header you provided implies"), "NotImplemented", 501), ReplicationError),
        (OSError("Forbidden: b/o\nlacks storage.objects.get"), Denied),
        (RuntimeError("no bucket's"), ReplicationError),
        (OtherError(errno.EIO, "of one file"), ReplicationError),
    ],
)
def test_what_concerns_one_file_is_told_of_it_alone(
    monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type[ReplicationError]
) -> None:
    with pytest.raises(kind, match="t/f") as told:
        storage(monkeypatch, _Troubled(error)).status(f"{ROOT}t/f")
    assert not isinstance(told.value, Unreachable)


def test_an_error_within_a_runtime_error_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped = RuntimeError("Failed to upload block!")
    wrapped.__cause__ = EndpointConnectionError("refused")
    with pytest.raises(Unreachable):
        storage(monkeypatch, _Troubled(wrapped)).status(f"{ROOT}t/f")


@pytest.mark.parametrize("error", [EndpointConnectionError("no route"), OSError(errno.EBUSY, "Slow down")])
@pytest.mark.parametrize("where", ["read", "close"])
def test_an_outage_in_the_middle_of_a_copy_fails_the_window_and_holds_no_table(
    monkeypatch: pytest.MonkeyPatch, error: Exception, where: str
) -> None:
    files = _Bucket()
    files.objects["bucket/s/f"] = b"1", 0.0
    opened = files._open

    def raising(*_: object) -> None:
        raise error

    def failing(path: str, mode: str = "rb", **options: Any) -> Any:
        file = opened(path, mode, **options)
        if (mode == "rb") == (where == "read"):
            setattr(file, where, raising)
        return file

    monkeypatch.setattr(files, "_open", failing)
    store = storage(monkeypatch, files)
    told = copy_file(CopyTask(FileRef(f"{ROOT}s/f", "", "", ""), f"{ROOT}t/f", 1, "db.t"), store, store)
    assert isinstance(told, CopyFailure)
    assert told.kind == "unreachable"


@pytest.mark.parametrize("scheme", ["s3", "gs", "abfs"])
def test_buckets_are_written_into_and_never_made(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    """A bucket that did not answer was made, and so got other rights where it was the account's own."""

    class NoBucket(_Bucket):
        def makedirs(self, path: str, exist_ok: bool = False) -> None:
            raise AssertionError(f"{path} was to be made")

        def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
            if not path.startswith("bucket/"):
                raise FileNotFoundError("The specified bucket does not exist")
            return super()._open(path, mode, **options)

    monkeypatch.setattr(object_store_backend.fsspec, "filesystem", lambda *_, **__: NoBucket())
    store = Storage((Root(uri=f"{scheme}://bucket/w"), Root(uri=f"{scheme}://other/w")))
    store.mkdirs(f"{scheme}://bucket/w/t")
    store.write(f"{scheme}://bucket/w/t/f", b"1")
    assert store.read(f"{scheme}://bucket/w/t/f") == b"1"
    with pytest.raises(
        Unreachable, match=rf"^the storage root {scheme}://other/w/ cannot be reached: its bucket is missing \(The "
    ):
        store.write(f"{scheme}://other/w/f", b"1")
