"""A reader that queries the target while it is loaded, and must see whole transactions only."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from resources.embedded.hive import HiveDriver
from tests.acid.transactions import TOTAL


@dataclass
class Reader:
    """Queries in a loop, from entry to exit; the last one begins after the exit.

    Args:
        hive: a driver of its own.
        database: replica of the first database.
        first: whether the replica is being made, and may not be there yet.
    """

    hive: HiveDriver
    database: str
    first: bool
    reads: int = 0
    wrong: list[str] = field(default_factory=list[str])
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        queries = {
            f"SELECT v FROM {self.database}.accounts": TOTAL,
            f"SELECT v FROM {self.database}.debit UNION ALL SELECT v FROM {self.database}.credit": 0,
        }
        last = False
        while not last:
            last = self._stop.is_set()
            for query, total in queries.items():
                self._read(query, total, missing=self.first and not last)

    def _read(self, query: str, total: int, *, missing: bool) -> None:
        (result,) = self.hive.run([query])
        if result.error:
            if not (missing and ("not found" in result.error or "does not exist" in result.error)):
                self.wrong.append(f"{query}: {result.error}")
            return
        self.reads += 1
        found = sum(map(int, result.rows))
        if found != total and not (missing and not result.rows):
            self.wrong.append(f"{query}: {found} instead of {total}")
