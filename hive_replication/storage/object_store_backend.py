"""Object stores, and every other store that fsspec knows, e.g. S3 with ``s3fs``. Only calls that take names literally are used.

fsspec's ``rm``, ``mv`` and ``copy`` would expand ``*``, ``?`` and ``[`` in names.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import zip_longest
from typing import IO, Any, Protocol, cast

import fsspec  # pyright: ignore[reportMissingTypeStubs]
from fsspec.spec import AbstractBufferedFile  # pyright: ignore[reportMissingTypeStubs]

from hive_replication.policy.secrets import names_secret
from hive_replication.storage.azure_copies import settled_copy
from hive_replication.storage.client_errors import Answers, Busy, answered, written
from hive_replication.storage.file_status import FileChecksum, FileStatus, Space
from hive_replication.storage.repeats import once_served

_LOG = logging.getLogger(__name__)
# Where file systems tell when an object was written: local files and gcsfs, s3fs, adlfs, webdav.
_MODIFIED = ("mtime", "LastModified", "last_modified", "modified")
_AZURE = frozenset({"abfs", "abfss", "az"})
# Stores whose only directories are buckets: makedirs would ask for the bucket, and make one where it gets no answer.
_OF_BUCKETS = _AZURE | {"s3", "s3a", "gs", "gcs", "oss"}
# Options whose values are numbers, by their names.
_COUNTS = re.compile(
    r"(\w*_)?(size|blocksize|timeout|time|seconds|port|retries|attempts|wait|factor|concurrency|threads|workers|level)"
    r"|(max|min|num)_\w+"
)

_BLOCK = 8 << 20  # bytes; S3 takes parts of 5 MiB and more
_MOST_PARTS = 9_000  # S3 takes 10,000, and a file may have grown


class _FileSystem(Protocol):
    """The part of fsspec's interface in use (fsspec has no types of its own)."""

    def info(self, path: str) -> dict[str, Any]: ...
    def ls(self, path: str, detail: bool = True) -> list[dict[str, Any]]: ...
    def find(self, path: str, *, withdirs: bool = False, detail: bool = True) -> dict[str, dict[str, Any]]: ...
    def open(self, path: str, mode: str, **options: int) -> IO[bytes]: ...
    def makedirs(self, path: str, exist_ok: bool = False) -> None: ...
    def cp_file(self, path1: str, path2: str) -> None: ...
    def rm_file(self, path: str) -> None: ...


class FsspecBackend:
    """A store that fsspec knows.

    Args:
        scheme: fsspec's protocol, e.g. ``file`` or ``s3``.
        authority: the bucket, "" for local files; Azure's container, perhaps with ``@`` and the account's host.
        options: of the fsspec class, e.g. ``endpoint_url`` for S3; what is JSON is read so; numbers where it counts.
    """

    access = None
    has_checksums = False
    has_directories = False  # of object stores; whether others have them fsspec does not tell

    def __init__(self, scheme: str, authority: str, options: Mapping[str, str]) -> None:
        self._url = f"{scheme}://{authority}"
        self._sizes_blocks = scheme in _OF_BUCKETS and "default_block_size" not in options
        self._of_buckets, self._on_azure = scheme in _OF_BUCKETS, scheme in _AZURE
        # Azure's URIs name container@account, and adlfs lists names that begin with the container alone.
        self._prefix, _, account = authority.partition("@") if scheme in _AZURE else (authority, "", "")
        make = cast("Any", fsspec).filesystem
        typed = {name: _typed(name, value) for name, value in options.items()}
        if account and "connection_string" not in options:
            typed = {"account_name": account.partition(".")[0], **typed}
        files = make(scheme, use_listings_cache=False, skip_instance_cache=True, **typed)
        # Of a bucket s3fs asks for one key, by a GET, whose refusals have names.
        self._ask = partial(files.info, self._prefix)
        self._files = cast("_FileSystem", files if scheme == "file" else Answers(files, self._ask))

    def status(self, path: str) -> FileStatus:
        """Status of a file or directory."""
        return self._status(self._files.info(self._key(path)))

    def ls(self, path: str) -> list[FileStatus]:
        """What a directory holds, one level."""
        key = self._key(path)
        found = (info for info in self._files.ls(key, detail=True) if not _is_marker(info))
        return [
            self._status(info) for info in found if info["type"] != "directory" or info["name"].rstrip("/") != key.rstrip("/")
        ]

    def walk(self, path: str, *, hidden: bool) -> list[FileStatus]:  # noqa: ARG002 (a prefix is read whole or not at all)
        """All files below a directory."""
        info = self._files.info(self._key(path))  # find() says nothing about an absent directory.
        if info["type"] != "directory":  # adlfs finds a list of names then
            return [self._status(info)]
        found = self._files.find(self._key(path), detail=True).values()
        return [self._status(info) for info in found if not _is_marker(info)]

    def stream(self, path: str, size: int) -> Iterator[bytes]:
        """Content in pieces."""
        return self._pieces(self._key(path), size)

    def _pieces(self, key: str, size: int = _BLOCK) -> Iterator[bytes]:
        with self._files.open(key, "rb", **self._blocks(0)) as file:
            read = answered(self._ask)(file.read)  # not around the yield: what the caller does is not the store's
            while piece := read(size):
                yield piece

    def create(
        self, path: str, chunks: Iterable[bytes], *, overwrite: bool, expected: int | None = None, **_hdfs_only: int | None
    ) -> int:
        """Writes a file; block size and replication mean nothing here."""
        key = self._key(path)
        if not self._of_buckets:
            self._files.makedirs(key.rpartition("/")[0], exist_ok=True)
        told = partial(written if self._of_buckets else answered, self._ask)
        file = told()(self._files.open)(key, "wb" if overwrite else "xb", **self._blocks(expected))
        write, close = told()(file.write), told()(file.close)  # not around the chunks, which come from elsewhere
        try:
            size = sum(write(chunk) for chunk in chunks)
            close()
        except BaseException as error:
            if isinstance(file, AbstractBufferedFile):  # it is no object before its close: what has the name is somebody else's
                upload = cast("Any", file)
                with suppress(OSError):
                    answered()(upload.discard)()
                upload.closed = True  # or its end would publish what there is
            else:
                with suppress(OSError):
                    close()
                if not isinstance(error, FileExistsError):
                    self._remove(key)
            raise
        return size

    def _remove(self, key: str) -> None:
        try:
            once_served(self._files.rm_file, key)
        except FileNotFoundError:
            _LOG.debug("nothing was written of %s", key)
        except OSError as error:
            _LOG.warning("what was written of %s could not be removed: %s", key, error)

    def write(self, path: str, data: bytes, *, overwrite: bool, **_hdfs_only: int | None) -> None:
        """Writes a small file; block size means nothing here."""
        self.create(path, [data], overwrite=overwrite, expected=len(data))

    def rename(self, source: str, target: str) -> None:
        """Moves a file or directory to a free name."""
        source, target = self._key(source), self._key(target)
        with suppress(FileNotFoundError):
            self._files.info(target)  # fsspec's own exists() says no, too, where a store does not answer
            raise FileExistsError(target)
        self._rename(source, target)

    def delete(self, path: str, *, recursive: bool) -> bool:
        """Removes a file or directory; False where there was none."""
        key = self._key(path)
        try:
            info = self._files.info(key)
        except FileNotFoundError:
            return False
        if info["type"] != "directory":
            self._files.rm_file(key)
            return True
        if not recursive and self.ls(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), key)
        self._delete_directory(key)
        return True

    def mkdirs(self, path: str, mode: int | None = None) -> None:  # noqa: ARG002
        """Makes a directory and its parents; a mode means nothing here. Buckets are not made."""
        if not self._of_buckets:
            self._files.makedirs(self._key(path), exist_ok=True)

    def checksum(self, path: str) -> FileChecksum:
        """None of these stores has one that Hive knows."""
        raise NotImplementedError(f"{self._url} keeps no checksums that Hive knows; asked for {path}")

    def space(self, path: str) -> Space | None:  # noqa: ARG002
        """Unknown."""
        return None

    def _rename(self, source: str, target: str) -> None:
        # Object stores cannot rename: copy, then delete.
        info = self._files.info(source)
        is_dir = info["type"] == "directory"
        found = self._files.find(source, detail=True) if is_dir else {source: info}
        copies = {key: target + key[len(source) :] for key in found if not key.endswith("/")}  # s3fs finds none with the slash
        begun: list[str] = []
        try:
            for key in copies:
                begun.append(key)
                self._copy(key, copies[key], found[key]["size"])
        except BaseException:
            for key in begun if is_dir else ():
                self._take_back(key, copies[key])
            raise
        try:
            for key in found:  # another process that moved it, and failed, takes its copies back where their sources are there
                if is_dir and key in copies and self._is_gone(copies[key]):
                    self._copy(key, copies[key], found[key]["size"])
                once_served(self._files.rm_file, key)
        except Busy as error:  # which would be repeated, and find its own copy in the way
            raise ConnectionError(f"{source} is copied whole to {target}, and cannot be deleted: {error}") from error

    def _copy(self, source: str, target: str, size: int) -> None:
        """Copies an object and makes sure that it is whole: Azure may answer that a copy is pending, which can fail later."""
        try:
            once_served(lambda name: self._files.cp_file(source, name), target)
            status = answered()(settled_copy)(self._files, target) if self._on_azure else "success"
            if status == "success" and once_served(self._files.info, target)["size"] == size:
                return
            error = OSError(errno.EIO, f"the store did not copy it whole to {target} ({status})")
        except OSError as met:
            error = met
        if not self._is_there(source, target, size):
            raise error

    def _is_there(self, source: str, target: str, size: int) -> bool:
        """Whether a copy that failed is there all the same: its answer was lost, or another process made the same one.

        That may count on it by now, so it is removed only where it is not whole.
        """
        try:
            if self._files.info(target)["size"] == size:
                return all(one == other for one, other in zip_longest(self._pieces(source), self._pieces(target)))
        except OSError as error:
            _LOG.debug("what is at %s cannot be told: %s", target, error)
            return False
        self._remove(target)
        return False

    def _is_gone(self, key: str) -> bool:
        try:
            once_served(self._files.info, key)
        except FileNotFoundError:
            return True
        return False

    def _take_back(self, source: str, target: str) -> None:
        """Removes a copy, unless it is all that is left: another process may have moved the same directory."""
        try:
            once_served(self._files.info, source)
        except OSError as error:
            _LOG.warning("the copy %s stays, since %s is not found: %s", target, source, error)
        else:
            self._remove(target)

    def _delete_directory(self, key: str) -> None:
        for child in self._files.find(key, detail=True):
            self._files.rm_file(child)

    def _blocks(self, size: int | None) -> dict[str, int]:
        """In which blocks a file is read or written: a file system has two or three in memory, of 50 MiB each with s3fs."""
        if size is None or not self._sizes_blocks:
            return {}
        return {"block_size": max(_BLOCK, ((size // _MOST_PARTS >> 20) + 1) << 20)}

    def _key(self, path: str) -> str:
        return self._prefix + path

    def _status(self, info: dict[str, Any]) -> FileStatus:
        is_dir = info["type"] == "directory"
        uri = self._url + cast("str", info["name"]).removeprefix(self._prefix).rstrip("/")
        return FileStatus(uri, 0 if is_dir else int(info["size"] or 0), is_dir, _modified(info))


def _typed(option: str, value: str) -> object:
    """An option's value: a policy has texts only, and for fsspec ``false`` as a text is true.

    What is a number stays a text where the option counts nothing: a project, a user or an account may have such a name.
    """
    try:
        found: object = json.loads(value)
    except ValueError:
        return value
    if names_secret(option) and not value.lstrip().startswith("{"):
        return value  # a password of digits
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return value if is_number and not _COUNTS.fullmatch(option.lower()) else found


def _is_marker(info: Mapping[str, Any]) -> bool:
    """Whether an object stands for a directory, as S3A, the connector for GCS and consoles make them; others list files."""
    return info["type"] != "directory" and cast("str", info["name"]).endswith("/")


def _modified(info: Mapping[str, Any]) -> float:
    value = next((info[key] for key in _MODIFIED if info.get(key)), None)
    if value is None:  # a file of unknown age counts as new, so that it is never deleted for being old
        return 0.0 if info["type"] == "directory" else time.time()
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.timestamp() if isinstance(value, datetime) else float(value)
