"""A file system that can be written, which keeps of files of the company no more than their numbers."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass
from typing import cast

from bench.company import formula
from bench.company.files import Entry

_NUMBERS = re.compile(rb"(\d+)/(\d+)/(\d+);")


@dataclass(frozen=True, slots=True)
class _Settled:
    """A directory that holds exactly the first files of a partition, under their names and with their contents."""

    table: int
    partition: int
    files: int


class Tree:
    """Directories and files. Paths are absolute, without a slash at their ends. Safe to use from many threads.

    Of a partition's directory that is complete one object is left, of any other file of the company three numbers; the content of
    all else, such as journals, is kept.

    Args:
        files: how many a partition of the company has.
    """

    def __init__(self, files: int) -> None:
        self._files = files
        self._root: dict[str, object] = {}
        self._lock = threading.RLock()
        self._began = int(time.time())

    def status(self, path: str) -> Entry | None:
        """A file or directory; None where there is none."""
        node = self._find(path)
        return None if node is None else self._entry(path.rpartition("/")[2], node)

    def ls(self, path: str) -> list[Entry] | None:
        """What a directory holds, by name; for a file, itself; None where there is none."""
        node = self._find(path)
        if node is None:
            return None
        if isinstance(node, _Settled):
            node = _unsettled(node)
        if not isinstance(node, dict):
            return [self._entry(path.rpartition("/")[2], node)]
        with self._lock:
            found = sorted(cast("dict[str, object]", node).items())
        return [self._entry(name, one) for name, one in found]

    def complete(self, path: str) -> int:
        """How many directories of partitions below a database's directory hold exactly what the formula says."""
        found = self._find(path)
        with self._lock:
            tables = list(cast("dict[str, object]", found).items()) if isinstance(found, dict) else []
            return sum(_complete(table, directory) for table, directory in tables)

    def content(self, path: str) -> bytes | None:
        """Bytes of a file; None where there is none."""
        node = self._find(path)
        return formula.content(*node) if isinstance(node, tuple) else node if isinstance(node, bytes) else None

    def checksum(self, path: str) -> str | None:
        """Checksum of a file, as hex; None where there is none."""
        node = self._find(path)
        if isinstance(node, tuple):
            return formula.checksum(*node)
        return formula.checksum_of(node) if isinstance(node, bytes) else None

    def put(self, path: str, content: bytes) -> None:
        """Writes a file and makes its directories; what has the name is replaced."""
        parent, _, name = path.rpartition("/")
        with self._lock:
            self._directory(parent)[name] = _numbers(content) or content
            self._settle(parent)

    def mkdirs(self, path: str) -> None:
        """Makes a directory and its parents."""
        with self._lock:
            if self._find(path) is None:
                self._directory(path)

    def rename(self, source: str, target: str) -> str:
        """Gives a file or directory another name; "" if done, else which name is in the way: ``source`` or ``target``."""
        with self._lock:
            node = self._find(source)
            if node is None or self._find(target.rpartition("/")[0]) is None:
                return "source"
            if self._find(target) is not None:
                return "target"
            before, _, old = source.rpartition("/")
            del self._directory(before)[old]
            after, _, new = target.rpartition("/")
            self._directory(after)[new] = node
            self._settle(after)
            return ""

    def delete(self, path: str) -> bool:
        """Removes a file, or a directory with all it holds; False where there is none."""
        parent, _, name = path.rpartition("/")
        with self._lock:
            if self._find(path) is None:
                return False
            del self._directory(parent)[name]
            return True

    def _entry(self, name: str, node: object) -> Entry:
        if isinstance(node, dict | _Settled):
            return Entry(name, None, self._began)
        size = len(formula.content(*cast("tuple[int, int, int]", node))) if isinstance(node, tuple) else len(cast("bytes", node))
        return Entry(name, size, self._began)

    def _find(self, path: str) -> object | None:
        node: object = self._root
        for segment in filter(None, path.split("/")):
            if isinstance(node, _Settled):
                node = _unsettled(node)
            node = cast("dict[str, object]", node).get(segment) if isinstance(node, dict) else None
            if node is None:
                return None
        return node

    def _directory(self, path: str) -> dict[str, object]:
        """A directory to change, made with its parents where there is none."""
        node = self._root
        for segment in filter(None, path.split("/")):
            inner = node.setdefault(segment, {})
            if isinstance(inner, _Settled):
                inner = node[segment] = _unsettled(inner)
            if not isinstance(inner, dict):
                raise NotADirectoryError(path)
            node = cast("dict[str, object]", inner)
        return node

    def _settle(self, path: str) -> None:
        """Keeps only the numbers of a directory that holds all files of a partition."""
        found = self._directory(path)
        if len(found) != self._files:
            return
        first = found.get(formula.file_name(0))
        if not isinstance(first, tuple):
            return
        settled = _Settled(*cast("tuple[int, int, int]", first)[:2], self._files)
        if found == _unsettled(settled):
            parent, _, name = path.rpartition("/")
            self._directory(parent)[name] = settled


def _numbers(content: bytes) -> tuple[int, int, int] | None:
    """The numbers of a file of the company, by its content; None for any other content."""
    found = _NUMBERS.match(content)
    if not found:
        return None
    table, partition, file = map(int, found.groups())
    return (table, partition, file) if formula.content(table, partition, file) == content else None


def _unsettled(settled: _Settled) -> dict[str, object]:
    numbers = ((settled.table, settled.partition, file) for file in range(settled.files))
    return {formula.file_name(one[2]): one for one in numbers}


def _complete(table: str, directory: object) -> int:
    partitions = cast("dict[str, object]", directory) if isinstance(directory, dict) else {}
    return sum(
        isinstance(one, _Settled)
        and (table, name) == (formula.table_name(one.table), f"{formula.KEY}={formula.partition_value(one.partition)}")
        for name, one in partitions.items()
    )
