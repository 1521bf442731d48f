"""Records and reports below the dump root: ``.reports/.by-day/<database>-<hash>/<day>/<id>-<window>.json`` and ``.parquet``.

The database is the target's; the hash is of both metastores, since policies with one dump root may have targets of one name. A
directory for each day (UTC) keeps listings short: a storm leaves thousands of files a day. Earlier versions wrote to
``.by-day/<database>`` or ``.reports/<database>``, which are read still.

The report is written before the record, so a record that names one can be trusted to have it. Nothing here fails a load: what
cannot be written is a warning, and what cannot be read is left out.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import quote

from hive_replication.dump.format.closed_directories import passed_over_if_closed
from hive_replication.dump.format.interface import DumpStore
from hive_replication.errors import BadRequest, ReplicationError
from hive_replication.load.layout.directories import token_time
from hive_replication.load.records.record import Record, record_of, record_text
from hive_replication.load.records.report_file import read_report, write_report
from hive_replication.load.report import LoadReport
from hive_replication.logs import about
from hive_replication.policy import Policy
from hive_replication.policy.warehouse import pair_hash
from hive_replication.storage import Denied, FileStatus, Storage, paths

if TYPE_CHECKING:
    from hive_replication.load.records.report_rows import ReportRow

_LOG = logging.getLogger(__name__)

_NAME = re.compile(r"(?P<id>\d{13}[0-9a-f]{8})-(?P<what>[a-z0-9-]+)\.(?P<ending>json|parquet)")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_WINDOW = re.compile(r"(?:(\d{1,19})|bootstrap|repair|recovery)-(\d{1,19})")
_MOST = 1 << 20  # bytes of a record
_BOOTSTRAPS = 100  # the newest, which are read where there was no window


@dataclass(frozen=True, slots=True)
class Kept:
    """A record by its file's name: who reads names only need not read the records.

    Args:
        uri: of the record.
        id: of the record.
        what: the window of a load, else what was done.
    """

    uri: str
    id: str
    what: str


class RecordStore:
    """The records of one target database.

    Args:
        storage: of the dump root.
        root: the dump root.
        database: target database.
        pair: the metastores of source and target.
        policy: name of the policy.

    Attributes:
        closed: directories, mostly of one day, that this account may not read and that were passed over so far, each with why.
    """

    def __init__(self, storage: Storage, root: str, database: str, pair: tuple[str, str], policy: str = "") -> None:
        self._storage, self._policy = storage, policy
        self.closed: dict[str, str] = {}
        reports, name, earlier = f"{root.rstrip('/')}/.reports", _name(database, pair), quote(database, safe="")
        self._days, self._earlier_days = f"{reports}/.by-day/{name}", f"{reports}/.by-day/{earlier}"
        self._earlier = f"{reports}/{earlier}"
        self._mark = f"{_marks(root)}/{name}"

    @classmethod
    def of(cls, policy: Policy, store: DumpStore, database: str) -> RecordStore:
        """The records of a target database of a policy, beside its dumps. Nothing is read yet."""
        return cls(store.storage, store.root, database, policy.pair, policy.name)

    def prepare(self) -> None:
        """Begins to import what writes reports, which takes 0.3 s, while the load waits for servers; processes end after it."""
        threading.Thread(target=import_module, args=("hive_replication.load.records.report_rows",)).start()

    def keep(self, record: Record, report: LoadReport | None = None) -> Record:
        """Writes a record, and the whole report of a load with it; what was done by hand makes sensors look again.

        Returns:
            The record with the report's URI; without one if it could not be written.
        """
        name = f"{self._days}/{_day(token_time(record.id))}/{record.id}-{record.window or record.action.replace(' ', '-')}"
        record = replace(record, policy=self._policy)
        try:
            if report is not None:
                record = replace(record, report=f"{name}.parquet")
                write_report(self._storage, record.report, report, record_text(record))
            self._storage.write_once(f"{name}.json", record_text(record))
        except (ReplicationError, OSError) as error:
            _LOG.warning("the record of the %s could not be kept: %s", record.action, error, extra=about(record.database))
            return replace(record, report="")
        if record.by_hand:
            self._notify(record)
        return record

    def _notify(self, record: Record) -> None:
        try:
            self._storage.write(self._mark, record.id.encode())
        except (ReplicationError, OSError) as error:
            _LOG.warning("sensors notice the %s later: %s", record.action, error, extra=about(record.database))

    def names(self, most: int | None = None, since: float = 0.0) -> list[Kept]:
        """Records by their names, the newest first, but for :attr:`closed` days.

        Args:
            most: how many; all where None.
            since: seconds since the epoch; no earlier days are looked at.
        """
        found: list[Kept] = []
        for directory in self._directories(since):
            found += self._readable(directory)
            if most is not None and len(found) >= most:
                break
        return found[:most]

    def newest(self, most: int | None = None, since: float = 0.0) -> list[Record]:
        """The newest records, the newest first, as :meth:`names`; those that cannot be read are left out."""
        return self._records(self.names(most, since))

    def last_of(self, actions: Collection[str], most: int) -> Record | None:
        """The last record of some actions, among so many of the newest; None where there is none.

        Raises:
            Denied: this account may not read a day that may have a newer one.
        """
        for directory in self._directories(0.0):
            names = self._kept(directory)[:most]
            most -= len(names)
            if (found := next((one for one in self._records(names) if one.action in actions), None)) or not most:
                return found
        return None

    def has_own(self) -> bool:
        """Whether the policy kept the newest record, between these metastores; earlier versions did not say whose records are."""
        for names in map(self._kept, self._directories(0.0)):  # a closed day may have a newer one
            if names:
                return any(record.policy == self._policy for record in self._records(names[:1]))
        return False

    def had_replica(self) -> bool:
        """Whether the database was a finished replica once: only such a one has windows, repairs and recoveries."""
        bootstraps: list[Kept] = []
        for names in map(self._readable, self._directories(0.0)):  # the first tells it of nearly all: the others are not listed
            if any(_WINDOW.fullmatch(one.what) and not one.what.startswith("bootstrap-") for one in names):
                return True
            bootstraps += [one for one in names if one.what.startswith("bootstrap-")]
        return any(
            record.action == "bootstrap" and record.outcome != "failed" for record in self._records(bootstraps[:_BOOTSTRAPS])
        )

    def find(self, window: str) -> list[Record]:
        """The loads of a window, the newest first.

        A database that stood beyond the window's begin was loaded from there: without a load of exactly this window, those that
        begin in it and end with it are found.
        """
        asked = _WINDOW.fullmatch(window)
        if asked is None:
            raise BadRequest(f"{window!r} is no window such as 170-1400, bootstrap-170, repair-170 or recovery-170")
        names = self.names()
        found = [one for one in names if one.what == window] or [one for one in names if _is_part(one.what, asked)]
        return self._records(found)

    def _records(self, names: Iterable[Kept]) -> list[Record]:
        return [record for record in self._storage.threads.map(self._read, names) if record is not None]

    def _read(self, kept: Kept) -> Record | None:
        try:
            record = record_of(self._storage.read(kept.uri, most=_MOST))
        except (ReplicationError, OSError) as error:
            _LOG.warning("the record %s cannot be read: %s", kept.uri, error)
            return None
        if record is None:
            _LOG.warning("the record %s is damaged and left out", kept.uri)
        elif record.report:  # what a record says is never taken for a path
            return replace(record, report=f"{kept.uri.removesuffix('.json')}.parquet")
        return record

    def rows(self, record: Record) -> Iterator[ReportRow]:
        """The rows of a load's report, read in batches.

        Raises:
            BadRequest: the load has no report.
            ReplicationError: it is damaged, or cannot be read.
        """
        if not record.report:
            raise BadRequest(f"the {record.action} {record.window} of {record.database} left no report: {record.text}")
        yield from read_report(self._storage, record.report)

    def rows_at(self, uri: str, columns: Sequence[str]) -> Iterator[ReportRow]:
        """Some columns of the rows of a report by its URI, read as by :meth:`rows`.

        Raises:
            BadRequest: it is no report of this database, or it is not kept any more.
            ReplicationError: it is damaged, or cannot be read.
        """
        place = uri.removeprefix(f"{self._days}/")
        day, _, name = place.partition("/")
        if place == uri or not (_DAY.fullmatch(day) and _NAME.fullmatch(name)):
            raise BadRequest(f"{uri} is no report of this database below the dump root")
        yield from read_report(self._storage, uri, columns)

    def expired(self, before: float) -> list[FileStatus]:
        """Directories of days before a time, seconds since the epoch, and files of records of earlier versions from before it.

        Those that earlier versions wrote tell no pair of metastores: they stay where another pair has a database of this name.
        Places that this account may not read are passed over.
        """
        found: list[FileStatus] = []
        with passed_over_if_closed("the reports", self._days):
            found += (day for day in self._listed_days(self._days) if paths.name(day.uri) < _day(before))
            if self._is_shared():
                return found
        with passed_over_if_closed("the reports", self._earlier_days):
            found += (day for day in self._listed_days(self._earlier_days) if paths.name(day.uri) < _day(before))
        with passed_over_if_closed("the reports", self._earlier):
            found += [file for file, match in self._files(self._earlier) if token_time(match["id"]) < before]
        return found

    def _is_shared(self) -> bool:
        """Whether another pair of metastores has records of a database of this name here."""
        own, name = paths.name(self._days), paths.name(self._earlier)
        others = (paths.name(one.uri) for one in self._storage.ls(paths.parent(self._days)))
        return any(re.fullmatch(f"{re.escape(name)}-[0-9a-f]{{8}}", one) and one != own for one in others)

    def _kept(self, directory: str) -> list[Kept]:
        found = (
            Kept(file.uri, match["id"], match["what"]) for file, match in self._files(directory) if match["ending"] == "json"
        )
        return sorted(found, key=lambda one: one.id, reverse=True)

    def _readable(self, directory: str) -> list[Kept]:
        try:
            return self._kept(directory)
        except Denied as error:
            _LOG.warning("the records in %s are passed over: %s", directory, error)
            self.closed[directory] = str(error)
            return []

    def _directories(self, since: float) -> Iterator[str]:
        """Directories of records from a time on, the newest day first; with all of them, those of earlier versions last."""
        days = [day.uri for day in self._listed_days(self._days) if paths.name(day.uri) >= _day(since)]
        yield from reversed(days)
        if not since:
            yield from reversed([day.uri for day in self._listed_days(self._earlier_days)])
            yield self._earlier

    def _listed_days(self, place: str) -> list[FileStatus]:
        return [one for one in self._storage.ls(place) if one.is_dir and _DAY.fullmatch(paths.name(one.uri))]

    def _files(self, directory: str) -> Iterator[tuple[FileStatus, re.Match[str]]]:
        """Files of records and reports, with what their names say."""
        for file in self._storage.ls(directory):
            if match := _NAME.fullmatch(paths.name(file.uri)):
                yield file, match


def last_asked(policy: Policy, store: DumpStore) -> dict[str, float]:
    """When something was last done by hand to each target database of a policy, seconds since the epoch; none where nothing was.

    Sensors look again when this changes: an undo that is released, or a pause, writes no event at the source. It takes one call.

    Raises:
        Unreachable: the dump root does not answer.
    """
    names = {_name(database, policy.pair): database for database in policy.databases.values()}
    marks = ((names.get(paths.name(status.uri)), status.modified) for status in store.storage.ls(_marks(store.root)))
    return {database: modified for database, modified in marks if database is not None}


def _name(database: str, pair: tuple[str, str]) -> str:
    return f"{quote(database, safe='')}-{pair_hash(pair)}"


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")


def _marks(root: str) -> str:
    return f"{root.rstrip('/')}/.reports/.by-hand"


def _is_part(what: str, asked: re.Match[str]) -> bool:
    """Whether a load's window begins inside an asked one, and ends with it."""
    found = _WINDOW.fullmatch(what)
    return bool(found and found[1] and asked[1] and found[2] == asked[2] and int(found[1]) >= int(asked[1]))
