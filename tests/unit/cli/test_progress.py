"""What operators are told of long work: number, bytes, rate and time left."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.progress import Progress as Bars

from hive_replication.cli import progress as terminal
from hive_replication.progress import LoggedProgress, Pace

MIB = 1 << 20


class Lines:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, msg: str, *args: object) -> None:
        self.lines.append(msg % args)


def test_pace_tells_bytes_rate_and_time_left() -> None:
    now = [100.0]
    pace = Pace(10, lambda: now[0])
    assert str(pace) == ""
    now[0] += 2
    pace.add(4 * MIB)
    assert str(pace) == "4.0 MiB, 2.0 MiB/s, 18 s left"
    unknown = Pace(None, lambda: now[0])
    now[0] += 2
    unknown.add(0)
    assert str(unknown) == ""


def test_pace_of_what_has_no_bytes_tells_how_many_a_second() -> None:
    now = [100.0]
    pace = Pace(100_000, lambda: now[0])
    for _ in range(20_000):
        pace.add(0)
    now[0] += 10
    assert str(pace) == "2,000 a second, 40 s left"


def test_lines_of_a_log() -> None:
    log = Lines()
    assert list(LoggedProgress(log, every=0).count([3 * MIB] * 2, "files copied", 2, lambda size: size)) == [3 * MIB] * 2
    assert [line.partition(", ")[0] for line in log.lines] == ["files copied: 1 of 2", "files copied: 2 of 2"]
    assert ", 3.0 MiB, " in log.lines[0]
    assert "/s, " in log.lines[0]
    assert log.lines[0].endswith(" left")
    quiet = Lines()
    assert list(LoggedProgress(quiet).over([1], "things")) == [1]
    assert quiet.lines == []


def test_bars_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr("sys.stderr", shown)
    shown.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setenv("TERM", "xterm")
    with terminal.shown() as progress:
        bars: Bars = progress._bars  # type: ignore[attr-defined]
        seen = [_drawn(bars) for _ in progress.count([5 * MIB] * 3, "files copied", 3, lambda size: size)]
    assert "0/3" in seen[0]
    assert "2/3" in seen[2]
    assert "10.0 MiB," in seen[2]
    assert "/s," in seen[2]
    assert "left" in seen[2]


def _drawn(bars: Bars) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(bars.get_renderable())
    return console.file.getvalue()  # type: ignore[attr-defined]
