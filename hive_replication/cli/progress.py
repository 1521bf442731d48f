"""Progress bars on a terminal's stderr; elsewhere lines of the logger ``hive_replication.progress``."""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hive_replication.progress import Item, LoggedProgress, Number, Pace, Progress, Size

if TYPE_CHECKING:
    from rich.progress import Progress as Bars


class TerminalProgress(Progress):
    """A bar for each running step; see :class:`hive_replication.progress.Progress`."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars

    def count(
        self,
        items: Iterable[Item],
        label: str,
        total: int | None = None,
        size: Size[Item] | None = None,
        number: Number[Item] | None = None,
    ) -> Iterator[Item]:
        """A step of a stream of items; its bar goes when it ends."""
        pace = Pace(total)
        task = self._bars.add_task(label, total=total, pace="")
        try:
            for item in items:
                yield item
                done = number(item) if number else 1
                pace.add(size(item) if size else 0, done)
                self._bars.update(task, advance=done, pace=str(pace))
        finally:
            self._bars.remove_task(task)


@contextmanager
def shown() -> Generator[Progress, None, None]:
    """Shows progress while the context is open."""
    if not sys.stderr.isatty():
        yield LoggedProgress(logging.getLogger("hive_replication.progress"))
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    named, pace = TextColumn("{task.description}"), TextColumn("{task.fields[pace]}")
    columns = (SpinnerColumn(), named, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), pace)
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        yield TerminalProgress(bars)
