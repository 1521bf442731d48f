# ruff: noqa: D102 - those of fsspec
"""How object stores, which cannot rename, move a file or directory: by copies of all objects, which are deleted then.

Others may write there, move the same, or be killed in between: nothing is deleted before its copy is looked at, and a directory
is listed again until nothing is left of it.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from itertools import zip_longest
from typing import IO, Any, Protocol

from hive_replication.storage.azure_copies import settled_copy
from hive_replication.storage.client_errors import Busy, answered
from hive_replication.storage.repeats import once_served

_LOG = logging.getLogger(__name__)
_ROUNDS = 5
# What differs where an object was written again, as far as a store tells it.
_TIMES = ("mtime", "LastModified", "last_modified", "modified")
_WRITTEN = ("size", "ETag", "etag", *_TIMES)


class FileSystem(Protocol):
    """The part of fsspec's interface in use (fsspec has no types of its own)."""

    def info(self, path: str) -> dict[str, Any]: ...
    def ls(self, path: str, detail: bool = True) -> list[dict[str, Any]]: ...
    def find(self, path: str, *, withdirs: bool = False, detail: bool = True) -> dict[str, dict[str, Any]]: ...
    def open(self, path: str, mode: str, **options: int) -> IO[bytes]: ...
    def makedirs(self, path: str, exist_ok: bool = False) -> None: ...
    def cp_file(self, path1: str, path2: str) -> None: ...
    def rm_file(self, path: str) -> None: ...


class ObjectMoves:
    """The moves of a store; the rest of it is in :mod:`hive_replication.storage.object_store_backend`."""

    _files: FileSystem
    _on_azure: bool

    def _pieces(self, key: str) -> Iterator[bytes]:
        """Content of an object."""
        raise NotImplementedError

    def _rename(self, source: str, target: str) -> None:
        """Moves a file or directory to a free name."""
        info = self._files.info(source)
        if info["type"] != "directory":
            self._move(source, target, {source: info})
            return
        moved = self._files.find(source, detail=True)
        self._move(source, target, moved)
        try:
            self._move_rest(source, target, moved)
        except Busy as error:  # which would be repeated, and find its own copies in the way
            raise ConnectionError(f"{source} is moved to {target}, perhaps not all of it: {error}") from error

    def _move_rest(self, source: str, target: str, moved: dict[str, dict[str, Any]]) -> None:
        """Moves what was written meanwhile, which is in none of the listings before."""
        for _ in range(_ROUNDS):
            found = once_served(partial(self._files.find, detail=True), source)
            if again := [key for key in found if key in moved and _written(found[key]) != _written(moved[key])]:
                raise OSError(errno.EIO, f"{again[0]} was written again while it was moved to {target}")
            if not (new := {key: found[key] for key in found if key not in moved}):
                return
            self._move(source, target, new)
            moved |= new
        raise OSError(errno.EIO, f"somebody writes to {source} while it is moved to {target}")

    def _move(self, source: str, target: str, found: dict[str, dict[str, Any]]) -> None:
        """Copies objects that begin with a name, and then deletes them."""
        is_dir = source not in found
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
                if key in copies and self._is_gone(copies[key]):
                    self._copy(key, copies[key], found[key]["size"])
                if key in copies and self._is_written_again(key, found[key]):
                    if not is_dir:  # nothing is deleted: a repeat would find the copy in its way
                        self._take_back(key, copies[key])
                    raise OSError(errno.EIO, f"{key} was written again while it was moved to {target}")
                once_served(self._files.rm_file, key)
        except Busy as error:  # which would be repeated, and find its own copy in the way
            raise ConnectionError(f"{source} is copied whole to {target}, and cannot be deleted: {error}") from error

    def _is_written_again(self, key: str, listed: Mapping[str, Any]) -> bool:
        """Whether an object is not the listed one: of a large one, or directory, minutes lie between copy and deletion."""
        try:
            return _differs(listed, once_served(self._files.info, key))
        except FileNotFoundError:
            return False  # another process moved it

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

    def _remove(self, key: str) -> None:
        try:
            once_served(self._files.rm_file, key)
        except FileNotFoundError:
            _LOG.debug("nothing was written of %s", key)
        except OSError as error:
            _LOG.warning("what was written of %s could not be removed: %s", key, error)


def _differs(listed: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether an object was written again since it was listed, by what a listing and a question about one object both tell.

    Of one they tell the same tag, perhaps without its quotes, but times to the second only: a tag decides where there is one.
    """
    if listed["size"] != now["size"]:
        return True
    tags = [str(info.get("ETag") or info.get("etag") or "").strip('"') for info in (listed, now)]
    if all(tags):
        return tags[0] != tags[1]
    times = [next((info[name] for name in _TIMES if info.get(name)), None) for info in (listed, now)]
    seconds = [one.replace(microsecond=0) if isinstance(one, datetime) else one for one in times]
    return type(times[0]) is type(times[1]) and seconds[0] != seconds[1]


def _written(info: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(info.get(name) for name in _WRITTEN)
