"""The files that a load brought, with their proofs: counts and the first rows in memory, all others in a temporary file."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from tempfile import TemporaryFile
from threading import RLock
from typing import IO, cast, overload
from weakref import finalize

from hive_replication.copy.tasks import CopyFailure, CopyResult

_MOST_FAILURES = 10_000  # that are kept; further ones are of lanes that are held all the same
_BATCH = 1_000  # rows that stay in memory, and rows written at once


class Copies(Sequence[CopyResult]):
    """One result per file. Threads may share it.

    The temporary file goes away with the object.

    Args:
        results: the first ones.

    Attributes:
        bytes: of the files that were copied (not of those found present).
        origins: numbers of files by origin.
        executors: numbers of files by executor.
        algorithms: numbers of files by the algorithm of their proof.
        unrecorded: number of files for which no checksum was recorded at the source.
        failures: files that could not be copied or proven; a later event may have made them needless.
    """

    def __init__(self, results: Iterable[CopyResult] = ()) -> None:
        self.bytes = self.unrecorded = 0
        self.origins, self.executors, self.algorithms = Counter[str](), Counter[str](), Counter[str]()
        self.failures: list[CopyFailure] = []
        self._first: list[CopyResult] = []
        self._last: list[CopyResult] = []
        self._written: list[int] = []  # where each batch begins in the file
        self._file: IO[bytes] | None = None
        self._lock = RLock()
        for result in results:
            self.add(result)

    def add(self, result: CopyResult) -> None:
        """Adds a file."""
        with self._lock:
            self.bytes += result.size if result.origin != "present" else 0
            self.unrecorded += not result.proof.recorded
            self.origins[result.origin] += 1
            self.executors[result.executor] += 1
            self.algorithms[result.proof.algorithm] += 1
            rows = self._first if len(self._first) < _BATCH else self._last
            rows.append(result)
            if len(self._last) == _BATCH:
                self._write()

    def fail(self, failure: CopyFailure) -> None:
        """Adds a file that could not be copied or proven."""
        with self._lock:
            if len(self.failures) < _MOST_FAILURES:
                self.failures.append(failure)

    def __len__(self) -> int:
        """Number of files."""
        return self.origins.total()

    def __iter__(self) -> Iterator[CopyResult]:
        """All rows, of which at most one batch is in memory at a time."""
        yield from self._first
        number = 0
        while number < len(self._written):
            yield from self._read(number)
            number += 1
        yield from list(self._last)

    @overload
    def __getitem__(self, index: int) -> CopyResult: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[CopyResult, ...]: ...
    def __getitem__(self, index: int | slice) -> CopyResult | tuple[CopyResult, ...]:
        """Some rows; reads no further than it has to."""
        if isinstance(index, slice):
            return tuple(islice(self, *index.indices(len(self))))
        return next(islice(self, range(len(self))[index], None))

    def __eq__(self, other: object) -> bool:
        """Whether another sequence has the same rows."""
        if not isinstance(other, Copies | tuple):
            return NotImplemented
        rows = cast("Sequence[object]", other)
        return len(self) == len(rows) and all(one == another for one, another in zip(self, rows, strict=True))

    __hash__ = None  # type: ignore[assignment] - it grows

    def __repr__(self) -> str:
        """How many there are."""
        return f"Copies({len(self)} files)"

    def _write(self) -> None:
        if self._file is None:
            self._file = TemporaryFile()  # noqa: SIM115 - it lives as long as the report
            finalize(self, self._file.close)
        self._written.append(self._file.seek(0, 2))
        pickle.dump(self._last, self._file)
        self._last = []

    def _read(self, number: int) -> list[CopyResult]:
        with self._lock:
            assert self._file is not None  # noqa: S101 - there is a batch in it
            self._file.seek(self._written[number])
            return pickle.load(self._file)  # noqa: S301 - its own file
