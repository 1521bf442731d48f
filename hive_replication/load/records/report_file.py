"""The file of a load's report on the storage of the dump root. Imports what reads Parquet only when it is needed: 0.3 s."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

from tenacity import stop_after_attempt, wait_incrementing

from hive_replication.errors import BadRequest
from hive_replication.load.report import LoadReport
from hive_replication.logs import repeats
from hive_replication.retries import with_retries
from hive_replication.storage import Storage, TooLarge, paths
from hive_replication.storage.failures import is_transient

if TYPE_CHECKING:
    from hive_replication.load.records.report_rows import ReportRow

_LOG = logging.getLogger(__name__)

_CHUNK = 1 << 20  # bytes
_SMALL = 4 << 20  # bytes that are sent in one request
_MOST = 1 << 30  # bytes of a report that are read: some twelve million files
_READS, _PAUSE = 4, 5.0  # of a report; seconds after the first one, so many longer after each: while DataNodes are restarted


def write_report(storage: Storage, uri: str, report: LoadReport, record: bytes) -> None:
    """Writes a report, with the load's record in the file's metadata; it is there as a whole or not at all."""
    from hive_replication.load.records.report_rows import report_rows, write_rows

    with TemporaryFile() as file:
        write_rows(file, report_rows(report), record)
        size = file.seek(0, 2)
        file.seek(0)
        if size <= _SMALL:
            storage.write_once(uri, file.read())
            return
        unfinished = f"{paths.parent(uri)}/.{paths.name(uri)}.new"
        storage.create(unfinished, iter(lambda: file.read(_CHUNK), b""), overwrite=True)
        storage.rename(unfinished, uri)


def read_report(storage: Storage, uri: str, columns: Sequence[str] | None = None) -> Iterator[ReportRow]:
    """The rows of a report, read in batches; of some columns where they are given. It is fetched again on trouble that passes.

    Raises:
        BadRequest: it is not kept any more.
        ReplicationError: it is damaged, or cannot be read.
    """
    from hive_replication.load.records.report_rows import read_rows

    with TemporaryFile() as file:
        try:
            with_retries(
                lambda: _fetch(storage, uri, file),
                lambda error: error.__cause__ is not None and is_transient(error.__cause__),
                stop=stop_after_attempt(_READS),
                wait=wait_incrementing(_PAUSE, _PAUSE),
                before_sleep=repeats(_LOG, "the reading of %s", uri),
            )
        except FileNotFoundError as error:
            raise BadRequest(f"the report {uri} is not kept any more") from error
        file.seek(0)
        yield from read_rows(file, columns)


def _fetch(storage: Storage, uri: str, file: IO[bytes]) -> None:
    file.seek(0)
    file.truncate()
    for chunk in storage.stream(uri):
        if file.tell() + len(chunk) > _MOST:
            raise TooLarge(f"the report {uri} has more than the {_MOST:,} bytes that are read: read it with Spark")
        file.write(chunk)
