"""A plan's report as Markdown and as one HTML file. Names in it come from dumps, which are untrusted: all is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader

from hive_replication.markdown import escaped
from hive_replication.plans.plan_report import PlanReport
from hive_replication.plans.plan_rows import COLUMNS
from hive_replication.units import count, duration, size, unbroken, when

_MOST_ROWS = 5_000
_FIGURES = frozenset({"files", "size"})  # columns whose cells end below each other
_PLACES = {
    "cmroot": "cmroot: the source has deleted or replaced it",
    "unreadable": "it cannot be read now, e.g. since the account may not",
    "gone": "nowhere: neither its path nor cmroot has it",
}


@dataclass(frozen=True, slots=True)
class Section:
    """A table of the report.

    Args:
        title: its heading.
        head: headings of its columns.
        rows: as many as are shown.
        more: number of those left out.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    more: int = 0

    @property
    def columns(self) -> Iterator[tuple[str, bool]]:
        """Headings, and whether a column holds figures."""
        return ((name, name in _FIGURES) for name in self.head)

    @property
    def cells(self) -> Iterator[Iterator[tuple[object, bool]]]:
        """The cells of each row, and whether each is a figure."""
        return (
            (
                (unbroken(str(_shown(cell))) if name in _FIGURES else cell, name in _FIGURES)
                for cell, name in zip(row, self.head, strict=True)
            )
            for row in self.rows
        )


def as_markdown(report: PlanReport, *, window: str = "", most_rows: int = _MOST_ROWS) -> str:
    """The report as Markdown.

    Args:
        report: the report.
        window: how Dagster calls the window, where it does.
        most_rows: of one table; the number of the others is told.
    """
    return _rendered(_MARKDOWN, "plan.md.j2", report, window, most_rows)


def as_html(report: PlanReport, *, window: str = "") -> str:
    """The report as one HTML page that needs nothing else; ``report`` and ``window`` as in :func:`as_markdown`."""
    return _rendered(_HTML, "plan.html.j2", report, window, _MOST_ROWS)


def _rendered(environment: Environment, template: str, report: PlanReport, window: str, most_rows: int) -> str:
    plan = report.plan
    return environment.get_template(template).render(
        title=f"Plan of {plan.database}: {_about(report)}",
        window=window,
        directory=plan.directory,
        made=when(report.made),
        figures=list(figures(report)),
        sections=list(_sections(report, most_rows)),
    )


def _about(report: PlanReport) -> str:
    plan = report.plan
    return f"bootstrap at {plan.to_evid}" if plan.kind == "bootstrap" else f"window {plan.from_evid}-{plan.to_evid}"


def figures(report: PlanReport) -> Iterator[tuple[str, str]]:
    """What is to be known at first sight, each with its name."""
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in sorted(report.operations.items()))
    yield "Operations", f"{sum(report.operations.values()):,}: {kinds}" if kinds else "none: nothing to do"
    files = sum(report.files.values())
    yield "Files to copy", f"{count(files, 'file')}, {size(report.bytes)}" if files else "none"
    for place, what in (("cmroot", "from cmroot"), ("unreadable", "unreadable"), ("gone", "nowhere to be found")):
        if report.files.get(place):
            yield f"Of them {what}", count(report.files[place], "file")
    yield "Time", f"about {duration(report.estimate.seconds)}; {report.estimate.basis}"
    if report.collapsed.events:
        yield "Collapsed", str(report.collapsed)
    for lane, what in (("held", "Held tables"), ("skipped", "Skipped")):
        number = sum(row.lane == lane for row in report.rows)
        if number:
            yield what, f"{number:,}"
    number = sum(1 for _ in report.conflicts)
    yield "Conflicts", f"{number:,}" if number else "none"


def _sections(report: PlanReport, most_rows: int) -> Iterator[Section]:
    doing = [row.cells[:-1] for row in report.rows if row.lane not in ("held", "skipped")]
    held = [(row.evid, row.object, row.reason) for row in report.rows if row.lane == "held"]
    skipped = [(row.evid, row.object, row.reason) for row in report.rows if row.lane == "skipped"]
    elsewhere = [(one.object, one.file, _size(one.size), _PLACES[one.place]) for one in report.elsewhere]
    for title, head, rows in (
        ("In the way on the target", ("object", "what becomes of it"), list(report.conflicts)),
        ("Held: cannot go beyond an event", ("event", "tables", "why"), held),
        ("Operations", COLUMNS[:-1], doing),
        ("Files that are no longer at their path", ("object", "file", "size", "taken from"), elsewhere),
        ("Skipped", ("event", "object", "why"), skipped),
    ):
        if rows:
            yield _section(title, head, rows, most_rows)


def _section(title: str, head: Sequence[str], rows: Sequence[Iterable[object]], most: int) -> Section:
    return Section(title, tuple(head), tuple(map(tuple, rows[:most])), max(0, len(rows) - most))


def _size(number: int) -> str:
    return size(number) if number >= 0 else ""


def _shown(value: object) -> object:
    return "" if value is None else value


def _escaped(value: object) -> str:
    return escaped(_shown(value))


_LOADER = PackageLoader("hive_replication.plans")
_HTML = Environment(loader=_LOADER, autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_shown)
# HTML's escapes would show in Markdown: every expression is escaped for Markdown instead.
_MARKDOWN = Environment(loader=_LOADER, autoescape=False, trim_blocks=True, lstrip_blocks=True, finalize=_escaped)  # noqa: S701
