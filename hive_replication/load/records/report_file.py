"""The file of a load's report on the storage of the dump root. Imports what reads Parquet only when it is needed: 0.3 s."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from hive_replication.errors import BadRequest
from hive_replication.load.report import LoadReport
from hive_replication.storage import Storage, TooLarge, paths

if TYPE_CHECKING:
    from hive_replication.load.records.report_rows import ReportRow

_CHUNK = 1 << 20  # bytes
_SMALL = 4 << 20  # bytes that are sent in one request
_MOST = 1 << 30  # bytes of a report that are read: some twelve million files


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
    """The rows of a report, read in batches; of some columns where they are given.

    Raises:
        BadRequest: it is not kept any more.
        ReplicationError: it is damaged, or cannot be read.
    """
    from hive_replication.load.records.report_rows import read_rows

    with TemporaryFile() as file:
        try:
            for chunk in storage.stream(uri):
                if file.tell() + len(chunk) > _MOST:
                    raise TooLarge(f"the report {uri} has more than the {_MOST:,} bytes that are read: read it with Spark")
                file.write(chunk)
        except FileNotFoundError as error:
            raise BadRequest(f"the report {uri} is not kept any more") from error
        file.seek(0)
        yield from read_rows(file, columns)
