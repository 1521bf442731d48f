"""What the demo prints: titles, steps with their seconds, bars; plain lines where nobody watches."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

Item = TypeVar("Item")


@dataclass(frozen=True)
class Screen:
    """The terminal."""

    console: Console = field(default_factory=lambda: _console())

    def title(self, text: str) -> None:
        """Begins a part."""
        self.console.print(f"\n[bold]{text}[/]")

    def say(self, text: str) -> None:
        """A line below the title; rich markup."""
        self.console.print(f"  {text}", soft_wrap=True)

    @contextmanager
    def step(self, text: str) -> Generator[None]:
        """A step with a spinner while it runs and its seconds at its end."""
        began = time.monotonic()
        with self.console.status(text):
            yield
        self.done(text, began)

    @contextmanager
    def bars(self) -> Generator[Progress]:
        """Bars that go when they are done."""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal) as bars:
            yield bars

    def steps(self, steps: Sequence[tuple[str, Callable[[], object]]]) -> None:
        """Carries out steps one after another, with a bar."""
        with self.bars() as bars:
            task = bars.add_task("", total=len(steps))
            for text, act in steps:
                bars.update(task, description=text)
                began = time.monotonic()
                act()
                bars.advance(task)
                self.done(text, began)

    def done(self, text: str, began: float) -> None:
        """A step's line, with the seconds since it began (:func:`time.monotonic`)."""
        self.say(f"[green]✓[/] {text} [dim]{time.monotonic() - began:.1f} s[/]")

    def over(self, items: Sequence[Item], label: str) -> Iterable[Item]:
        """A bar over some items (see :class:`hive_replication.progress.Progress`)."""
        return self.count(items, label, len(items))

    def count(
        self,
        items: Iterable[Item],
        label: str,
        total: int | None = None,
        size: Callable[[Item], int] | None = None,  # noqa: ARG002
        number: Callable[[Item], int] | None = None,
    ) -> Iterator[Item]:
        """A bar over a stream of items."""
        with self.bars() as bars:
            task = bars.add_task(label, total=total)
            for item in items:
                yield item
                bars.advance(task, number(item) if number else 1)


def _console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=120)
