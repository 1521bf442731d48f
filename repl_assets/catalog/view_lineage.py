"""Which tables a view reads, from its text.

Keep out of here: anything of Dagster. The parser is imported with the first view, since it takes a second.
"""

from __future__ import annotations

import logging

from hive_replication.logs import reason

_LOG = logging.getLogger("dagster")


def tables_read(text: str, database: str) -> tuple[tuple[str, str], ...]:
    """Databases and tables that a view's query reads, sorted, without common table expressions.

    Args:
        text: the view's query, as Hive expanded it.
        database: the database of unqualified table names.

    Returns:
        The tables; none, with a warning, if the query cannot be parsed: the parser does not know all of Hive's syntax.
    """
    from sqlglot import expressions, parse_one
    from sqlglot.optimizer.scope import traverse_scope

    try:
        scopes = traverse_scope(parse_one(text, dialect="hive"))
    except Exception as error:  # noqa: BLE001 (whatever it meets: clients write any text, and all definitions depend on this)
        _LOG.warning("lineage of a view of %s is not shown, its text cannot be read: %s", database, reason(error))
        return ()
    found = (source for scope in scopes for source in scope.sources.values() if isinstance(source, expressions.Table))
    return tuple(sorted({((table.db or database).lower(), table.name.lower()) for table in found}))
