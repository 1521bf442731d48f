"""Local files, and whatever is mounted there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hive_replication.errors import Refused
from hive_replication.storage import paths
from hive_replication.storage.boundary import is_reserved
from hive_replication.storage.file_status import FileStatus, Space
from hive_replication.storage.object_store_backend import FsspecBackend


class LocalBackend(FsspecBackend):
    """Local files, and whatever is mounted there.

    Args:
        roots: paths of the storage roots: no symbolic link leads out of them, or into replication's own directory.
    """

    has_directories = True

    def __init__(self, options: Mapping[str, str], roots: Iterable[str]) -> None:
        super().__init__("file", "", options)
        self._roots = tuple(f"{os.path.realpath(root).rstrip('/')}/" for root in roots)

    def _key(self, path: str) -> str:
        real = os.path.realpath(path)
        if not f"{real}/".startswith(self._roots):
            raise Refused(f"file://{path} leads by a symbolic link to {real}, outside the storage roots of the policy")
        if is_reserved(real) and not is_reserved(path):
            raise Refused(f"file://{path} leads by a symbolic link to {real}, which is replication's own")
        return path

    def _status(self, info: dict[str, Any]) -> FileStatus:
        # Python has bytes of names that are no UTF-8 as surrogates (os.fsdecode), which nothing can write or send.
        return super()._status(info | {"name": paths.as_text(info["name"])})

    def ls(self, path: str) -> list[FileStatus]:
        """What a directory holds, one level."""
        return [self._status(info) for info in self._infos(self._key(path))]

    def walk(self, path: str, *, hidden: bool) -> list[FileStatus]:
        """All files below a directory. fsspec's own walk leaves out, without a word, what it may not read.

        A link to a directory is followed, as by Hive, but not to one that it lies in, which may hold other tables.
        """
        found: list[FileStatus] = []
        top = self._key(path)
        pending = [(top, _with_parents(os.path.realpath(top)))]
        while pending:
            directory, above = pending.pop()
            for info in self._infos(directory):
                name = info["name"]
                if info["type"] != "directory":
                    found.append(self._status(info))
                elif (hidden or not paths.is_hidden(Path(name).name)) and (real := os.path.realpath(name)) not in above:
                    pending.append((name, above | _with_parents(real)))
        return found

    def _infos(self, directory: str) -> Iterator[dict[str, Any]]:
        """What is in a directory; of links what they lead to, if that can be told: else whoever reads them learns why not."""
        for info in self._files.ls(directory, detail=True):
            with suppress(Refused, OSError):
                info |= self._files.info(self._key(info["name"])) if info["islink"] else {}
            yield info

    def space(self, path: str) -> Space | None:
        """Of the file system that the path lies, or would lie, on."""
        usage = shutil.disk_usage(next(place for place in (Path(path), *Path(path).parents) if place.exists()))
        return Space(usage.total, usage.free)

    def _rename(self, source: str, target: str) -> None:
        if Path(source).is_dir():
            Path(source).rename(target)
        else:
            # A link, unlike a rename, fails where another process made the target meanwhile.
            Path(target).hardlink_to(source)
            Path(source).unlink()

    def _delete_directory(self, key: str) -> None:
        shutil.rmtree(key)


def _with_parents(real: str) -> frozenset[str]:
    return frozenset({real, *map(str, Path(real).parents)})
