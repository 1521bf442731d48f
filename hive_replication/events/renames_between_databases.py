"""Tables that get the name of another database: the log has one row of such a rename, under the new database (pure).

``ALTER TABLE db1.t RENAME TO db2.t`` writes an ALTER_TABLE of ``db2.t`` whose message begins with ``db1`` and ``t`` (measured on
3.1.3 and 4.2.0; where one of the databases is a source of replication, both refuse it for managed tables, and allow it for
external ones). For ``db1`` the table leaves the policy, for ``db2`` it comes from outside.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import replace

from hive_replication.bounded_json import value_of
from hive_replication.events.event_records import Notification

_TEXT = r'"((?:[^"\\]|\\.)*)"'
# Inside the message's images, which are texts themselves, the quotes of such a key would be escaped.
_BEFORE = {key: re.compile(rf'(?<!\\)"{key}"\s*:\s*{_TEXT}') for key in ("db", "table")}


def rows_of(row: Notification, databases: Container[str]) -> Iterator[Notification]:
    """The row as databases see it: as it is, and of a rename into another database also under the name that was left.

    Args:
        row: of the log.
        databases: lower-case names of those that are asked for.
    """
    if row.database in databases:
        yield row
    if row.type == "ALTER_TABLE" and row.database:  # else of another catalog
        before, table = (_before(row.message, key) for key in ("db", "table"))
        if table and before != row.database and before in databases:
            yield replace(row, database=before, table=table)


def as_seen_by(row: Notification, database: str) -> Notification:
    """The row as one database sees it; one that is of another database stays as it is."""
    return next(rows_of(row, (database,)), row)


def _before(message: str, key: str) -> str:
    found = _BEFORE[key].search(message)
    with suppress(ValueError):
        return str(value_of(f'"{found[1]}"')).strip().lower() if found else ""
    return ""
