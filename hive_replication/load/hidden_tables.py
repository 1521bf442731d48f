"""Tables that the source has and does not show: nothing says that somebody dropped them.

A metastore with a filter (``metastore.server.filter.enabled``, as with Ranger) leaves out of its lists, without an error, what
the account may not see.
"""

from __future__ import annotations

from hive_replication.errors import MetastoreError
from hive_replication.load.session import Session


def why_hidden(session: Session, table: str) -> str:
    """Why the source may have a table that was in none of its lists, "" where it has none, or shows it by now.

    Args:
        session: the load, whose dump is believed where the source cannot be asked.
        table: its name.

    Raises:
        Unreachable: the source does not answer.
    """
    source, database = session.target.source_metastore, session.reader.header.scope.database
    if source is None:
        return ""
    try:
        if source.table(database, table) is None or table in source.table_names(database, table):
            return ""
        words = "it is in no list of tables"
    except MetastoreError as error:
        words = str(error)
    return f"the source hides the table from replication: {words}"
