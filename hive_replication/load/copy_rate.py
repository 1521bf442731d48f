"""How fast the last load of a database was that copied enough to tell; kept in its directory, for estimates only."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from hive_replication.bounded_json import Count, Seconds
from hive_replication.errors import ReplicationError
from hive_replication.load.layout.directories import Layout
from hive_replication.load.report import LoadReport
from hive_replication.logs import about
from hive_replication.storage import Storage

_LOG = logging.getLogger(__name__)

_MOST = 4096  # bytes of the file
_FILES, _SECONDS = 8, 5.0  # a load that copied fewer files in less time tells nothing


@dataclass(frozen=True, slots=True)
class Rates:
    """What a load did in what time.

    Args:
        files: files copied.
        bytes: their bytes.
        copy_seconds: how long that took.
        operations: operations carried out on the metastore.
        apply_seconds: how long they took.
        measured: when, seconds since the epoch.
    """

    files: Count
    bytes: Count
    copy_seconds: Seconds
    operations: Count
    apply_seconds: Seconds
    measured: Seconds


_RATES = TypeAdapter(Rates)


def remember(storage: Storage, location: str, report: LoadReport) -> None:
    """Keeps the rates of a load, if it copied enough; that they cannot be written is no error.

    Args:
        storage: the target's.
        location: the target database's directory.
        report: of the load.
    """
    files, seconds = len(report.copies) - report.copies.origins["present"], report.seconds.get("copy", 0.0)
    if not files or (files < _FILES and seconds < _SECONDS):
        return
    operations = sum(report.applied.values())
    rates = Rates(files, report.bytes_copied, seconds, operations, report.seconds.get("apply", 0.0), time.time())
    try:
        storage.write(Layout(location).rates, _RATES.dump_json(rates))
    except (ReplicationError, OSError) as error:
        _LOG.info("the rates of the load are not kept: %s", error, extra=about(report.database))


def rates_of(storage: Storage, location: str) -> Rates | None:
    """The rates of the last load that was measured; None where there are none, or they cannot be read."""
    try:
        return _RATES.validate_json(storage.read(Layout(location).rates, most=_MOST))
    except (ReplicationError, OSError, ValidationError) as error:
        _LOG.debug("no rates of an earlier load: %s", error)
        return None
