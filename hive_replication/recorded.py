"""Keeps a record of what operators do: with who did it and when, and how it ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from hive_replication.connect import Connection
from hive_replication.connect.hanging_storage import PATIENCE, require_answers
from hive_replication.errors import BadRequest, LockLost, Refused, Unreachable
from hive_replication.load.layout.directories import new_token
from hive_replication.load.records import Record, RecordStore
from hive_replication.load.records.record import Action
from hive_replication.process import actor

_LOG = logging.getLogger(__name__)


@dataclass
class Notes:
    """What is recorded of an action besides who did it."""

    tables: tuple[str, ...] = ()
    to_evid: int | None = None
    text: str = ""
    changed: bool = True


@contextmanager
def recorded(
    connection: Connection, action: Action, database: str, table: str | None, *, begun: Callable[[], bool] = lambda: False
) -> Generator[Notes]:
    """Records an action when it ends, also where it is interrupted; one that changed nothing leaves no record.

    Args:
        connection: both sides.
        action: what is done.
        database: target database.
        table: one of its tables, or None for all.
        begun: whether it has changed something where it is refused; by default it is refused before it begins.
    """
    notes = Notes((table,) if table else ())
    record = Record(new_token(), action, database, actor(), 0.0)
    try:
        yield notes
    except BaseException as error:
        if not isinstance(error, BadRequest | Refused) or isinstance(error, LockLost) or begun():
            text = str(error) or "interrupted"
            _keep(connection, replace(record, time=time.time(), outcome="failed", tables=notes.tables, text=text))
        raise
    if notes.changed:
        _keep(connection, replace(record, time=time.time(), tables=notes.tables, to_evid=notes.to_evid, text=notes.text))


def _keep(connection: Connection, record: Record) -> None:
    try:
        require_answers(connection.store.storage, PATIENCE)
    except Unreachable as error:
        _LOG.warning("the record of the %s could not be kept: %s", record.action, error)
        return
    RecordStore.of(connection.target.policy, connection.store, record.database).keep(record)
