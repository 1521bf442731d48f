"""The report of a load as messages of the log: what is held, and what was skipped."""

from __future__ import annotations

import logging
import re

from hive_replication.load.report import LoadReport
from hive_replication.logs import about

_LOG = logging.getLogger(__name__)
_TYPE = re.compile(r"[A-Z_]+ ")  # of an event, before the name of its object


def log_report(report: LoadReport) -> None:
    """Logs held lanes as warnings, what was skipped and collapsed as decisions."""
    for held in report.held:
        for table in held.tables:
            extra = about(report.database, table, held.evid)
            if held.tried:
                _LOG.warning("the table is held at event %d: %s", held.after, held.reason, extra=extra)
            else:
                _LOG.info("the table was held before, at event %d, and is not tried: %s", held.after, held.reason, extra=extra)
    for view in report.broken_views:
        _LOG.warning(
            "the view reads its database by the name that it has at the source: rewrite it", extra=about(report.database, view)
        )
    if _LOG.isEnabledFor(logging.INFO):
        for skipped in report.skipped:
            extra = about(report.database, _table(skipped.what), skipped.evid)
            _LOG.info("skipped %s: %s", skipped.what, skipped.reason, extra=extra)
    if report.collapsed.events:
        _LOG.info("collapsed: %s", report.collapsed, extra=about(report.database, evid=report.to_evid))


def _table(what: str) -> str | None:
    """The table of what was skipped: an event's type and object, or ``db.table/partition``; None for a database."""
    kind = _TYPE.match(what)
    if kind and kind[0].endswith("_DATABASE "):
        return None
    return what.removeprefix(kind[0] if kind else "").partition("/")[0].rpartition(".")[2]
