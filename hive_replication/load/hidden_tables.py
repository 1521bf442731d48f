"""Tables that a dump lacks although the source may have them: only its answer for one table says what became of it.

A metastore with a filter (``metastore.server.filter.enabled``, as with Ranger) leaves out of its lists, without an error, what
the account may not see. So a table that is in none of them is gone, hidden or, where a grant has come since, shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hive_replication.errors import MetastoreError
from hive_replication.events.files import FileRef
from hive_replication.load.replica.held_reasons import HIDDEN_REASON, UNSHOWN_REASON
from hive_replication.load.session import Session
from hive_replication.metastore.client import Metastore
from hive_replication.storage import paths
from hive_replication.storage.failures import granting


@dataclass(frozen=True, slots=True)
class Gone:
    """The source has no such table, or cannot be asked: then its dump is believed."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """The source may have it, and does not show it.

    Args:
        reason: one sentence.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Shown:
    """The source has it, and lists it by now.

    Args:
        created: when it was made, seconds since the epoch; 0 where unknown.
    """

    created: int


def at_source(session: Session, table: str) -> Gone | Hidden | Shown:
    """What became of a table that was in none of the source's lists.

    Args:
        session: the load.
        table: its name.

    Raises:
        Unreachable: the source does not answer.
    """
    source = session.target.source_metastore
    return Gone() if source is None else seen(source, session.reader.header.scope.database, table)


def seen(source: Metastore, database: str, table: str) -> Gone | Hidden | Shown:
    """What the source says of one table.

    Args:
        source: its metastore.
        database: of the source.
        table: its name.

    Raises:
        Unreachable: the source does not answer.
    """
    try:
        found = source.table(database, table)
        if found is None:
            return Gone()
        if table in source.table_names(database, table):
            return Shown(found.createTime or 0)
        words = "it is in no list of tables"
    except MetastoreError as error:
        words = str(error)
    return Hidden(f"{HIDDEN_REASON}{words}")


def why_unshown(files: Iterable[FileRef], what: str) -> str:
    """Why a dump has no files of what may be read: the metastore did not show its table; "" where it did.

    Args:
        files: of the dump.
        what: has them.
    """
    unshown = next((file.uri for file in files if file.is_unshown_table), "")
    if not unshown:
        return ""
    grant = granting(paths.split(unshown)[2].rstrip("/"), "r-x", below=True)
    return (
        f"{UNSHOWN_REASON}{what} to the account of the dump, whose log has its words: where it asks "
        f"HDFS, let the account read {unshown} ({grant}), then repair the table"
    )
