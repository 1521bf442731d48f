"""Names of databases in the texts of views (pure).

Hive writes the names of databases into a view's expanded text. Where a database is replicated under another name, the text of the
replica therefore names a database that is another one at the target, or none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hive_replication.metastore.table_kinds import is_view
from hive_replication.metastore.types import Table


class CannotRewrite(Exception):
    """It is not certain which names in a view's text are those of databases."""


class ReadsReplica(CannotRewrite):
    """A view certainly reads a database of the source by a name that is a replica's on the target.

    Args:
        database: that name.
        source: the database that is replicated under it.
    """

    def __init__(self, database: str, source: str) -> None:
        super().__init__(f"it reads {database}, which is the replica of {source} on the target")


_QUOTED = re.compile(r"`(\w+)`")
_LITERALS = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")


def reference(table: Table, database: str) -> str:
    """The first table of a database that a view reads by its name, "" where it reads none so, or is no view.

    Args:
        table: a view, or any table.
        database: name of the database.
    """
    text = _text(table)
    found = next(_references(text, database), None)
    return "" if found is None else f"{database}.{found['table']}"


def with_database(text: str, database: str, other: str) -> str:
    """The text that a view has to have where one database has another name."""
    for found in reversed(list(_references(text, database))):
        text = f"{text[: found.start('database')]}{other}{text[found.end('database') :]}"
    return text


def without_backquotes(text: str | None) -> str:
    """A view's text in which plain names are not quoted: rewritten there and back it has quotes that it had not before."""
    return _QUOTED.sub(r"\1", text or "")


def _text(table: Table) -> str:
    return (table.viewExpandedText or table.viewOriginalText or "") if is_view(table) else ""


def _references(text: str, database: str) -> Iterator[re.Match[str]]:
    """The places where a text names a table of the database.

    Where the name is also a table's alias, or a table's own name, it stands before columns, too: then it counts only after FROM
    and JOIN.
    """
    name = re.escape(database)
    blank = _LITERALS.sub(lambda found: " " * len(found[0]), text)
    qualified = rf"(?<![\w.`])`?(?P<database>{name})`?\s*\.\s*`?(?P<table>\w+)"
    alias = re.search(rf"(?<![\w`])`?{name}(?![\w])`?(?!\s*\.)|\.\s*`?{name}(?!\w)", blank, re.IGNORECASE)
    before = r"\b(?:FROM|JOIN)\s*\(*\s*" if alias else ""
    return re.finditer(before + (qualified.replace(r"(?<![\w.`])", "") if alias else qualified), blank, re.IGNORECASE)
