"""Object stores, and every other store that fsspec knows, e.g. S3 with ``s3fs``. Only calls that take names literally are used.

fsspec's ``rm``, ``mv`` and ``copy`` would expand ``*``, ``?`` and ``[`` in names.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, cast

import fsspec  # pyright: ignore[reportMissingTypeStubs]
from fsspec.spec import AbstractBufferedFile  # pyright: ignore[reportMissingTypeStubs]

from hive_replication.bounded_json import value_of
from hive_replication.policy.secrets import names_secret
from hive_replication.storage.client_errors import Answers, answered, written
from hive_replication.storage.file_status import FileChecksum, FileStatus, Space
from hive_replication.storage.object_moves import FileSystem, ObjectMoves

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


class FsspecBackend(ObjectMoves):
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
        self.is_bucket, self._on_azure = scheme in _OF_BUCKETS, scheme in _AZURE
        # Azure's URIs name container@account, and adlfs lists names that begin with the container alone.
        self._prefix, _, account = authority.partition("@") if scheme in _AZURE else (authority, "", "")
        make = cast("Any", fsspec).filesystem
        typed = {name: _typed(name, value) for name, value in options.items()}
        if account and "connection_string" not in options:
            typed = {"account_name": account.partition(".")[0], **typed}
        # Others write there too: what was listed once is never taken for what is there, whatever the policy's options say.
        files = make(scheme, **{**typed, "use_listings_cache": False, "skip_instance_cache": True})
        # Of a bucket s3fs asks for one key, by a GET, whose refusals have names.
        self._ask = partial(files.info, self._prefix)
        self._files = cast("FileSystem", files if scheme == "file" else Answers(files, self._ask))

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
        if not self.is_bucket:
            self._make_parent(key.rpartition("/")[0])
        told = partial(written if self.is_bucket else answered, self._ask)
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
        if not self.is_bucket:
            self._files.makedirs(self._key(path), exist_ok=True)

    def _make_parent(self, key: str) -> None:
        try:
            self._files.makedirs(key, exist_ok=True)
        except FileExistsError as error:  # a file, of which nobody may believe that it is the one to be written
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), key) from error

    def checksum(self, path: str) -> FileChecksum:
        """None of these stores has one that Hive knows."""
        raise NotImplementedError(f"{self._url} keeps no checksums that Hive knows; asked for {path}")

    def space(self, path: str) -> Space | None:  # noqa: ARG002
        """Unknown."""
        return None

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
        found: object = value_of(value)
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
