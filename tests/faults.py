"""Ways in which a process dies in the middle of its work, and what the superuser cannot be refused."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from hive_replication.copy.tasks import Copier, CopyFailure, CopyResult, CopyTask
from hive_replication.metastore.client import Metastore
from hive_replication.storage import Denied, Storage


class Killed(BaseException):
    """Stands for the end of the process: nothing may catch it."""


class DyingCopier:
    """Copies some files, then the process ends.

    Args:
        copier: copies them.
        files: how many.
    """

    def __init__(self, copier: Copier, files: int) -> None:
        self._copier, self._left = copier, files

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyResult | CopyFailure]:
        for task in tasks:
            if self._left == 0:
                raise Killed
            self._left -= 1
            yield from self._copier.copy([task])


@contextmanager
def dying_at(call: str, number: int, *, after: bool) -> Generator[None]:
    """The process ends (:class:`Killed`) at a call of a metastore client.

    Args:
        call: a method of the client.
        number: which of the calls, from 1.
        after: whether it comes through.
    """
    real, calls = getattr(Metastore, call), count(1)

    def dying(*args: object, **options: object) -> object:
        if next(calls) != number:
            return real(*args, **options)
        if after:
            real(*args, **options)
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Metastore, call, dying)
        with pytest.raises(Killed):
            yield


@contextmanager
def closed_directory(directory: str) -> Generator[None]:
    """Storage shows that there is a directory, and nothing of what is in it, as HDFS does of somebody else's with mode 0700."""

    status = Storage.status

    def guarded(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(storage: Storage, uri: str, *args: object, **options: object) -> Any:
            if uri.startswith(f"{directory}/") or (uri.rstrip("/") == directory and real is not status):
                raise Denied(f"{uri}: permission denied")
            return real(storage, uri, *args, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name, real in {name: getattr(Storage, name) for name in ("ls", "files", "status", "read", "write", "delete")}.items():
            patch.setattr(Storage, name, guarded(real))
        yield


@contextmanager
def unreadable_directories(*names: str) -> Generator[None]:
    """Local directories of these names may not be read: permissions do not stop the superuser, as whom tests may run."""
    real = os.scandir

    def scandir(path: str) -> Any:
        if Path(path).name in names:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.scandir", scandir)
        yield
