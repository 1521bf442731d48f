"""Which tables a view reads, from its text.

Keep out of here: anything of Dagster. The parser is imported with the first view, since it takes a second.
"""

from __future__ import annotations

import logging

_LOG = logging.getLogger("dagster")


def tables_read(text: str, database: str) -> tuple[tuple[str, str], ...]:
    """Databases and tables that a view's text names, sorted, common table expressions left out.

    Args:
        text: the view's query; of Hive's two, the expanded one.
        database: where names without a database belong.

    Returns:
        Nothing, with a warning, where the text cannot be read: some of Hive's syntax is not known to the parser.
    """
    from sqlglot import expressions, parse_one
    from sqlglot.errors import SqlglotError
    from sqlglot.optimizer.scope import traverse_scope

    try:
        scopes = traverse_scope(parse_one(text, dialect="hive"))
    except (SqlglotError, RecursionError) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        _LOG.warning("lineage of a view of %s is not shown, its text cannot be read: %s", database, first)
        return ()
    found = (source for scope in scopes for source in scope.sources.values() if isinstance(source, expressions.Table))
    return tuple(sorted({((table.db or database).lower(), table.name.lower()) for table in found}))
