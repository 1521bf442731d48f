"""Some tables of a database by regular expressions, as Hive's statements name them: ``sales.'t[0-9]+'.'t[0-4].*'`` (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hive_replication.errors import BadRequest
from hive_replication.regular_expressions import require_expression

_EXPRESSION = r"""(?:'[^']*'|"[^"]*")"""
#: A database and regular expressions, as a token of a statement.
TOKEN = rf"[A-Za-z0-9_]+(?:\.{_EXPRESSION})+"
_PARTS = re.compile(rf"(?P<database>[A-Za-z0-9_]+)\.(?P<include>{_EXPRESSION})(?:\.(?P<exclude>{_EXPRESSION}))?")


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables whose names one expression matches as a whole, in any case, and another one does not; "" matches none.

    Hive's rule (REPL policies of Hive 4): what is excluded is left out although it is included.
    """

    include: str
    exclude: str = ""

    def of(self, database: str) -> str:
        """As it stands in a statement."""
        expressions = (self.include, self.exclude) if self.exclude else (self.include,)
        return ".".join((database, *(f'"{one}"' if "'" in one else f"'{one}'" for one in expressions)))


#: All tables of a database.
ALL = Tables(".*")


def parse_tables(text: str) -> tuple[str, Tables] | None:
    """Reads ``db.'include'`` or ``db.'include'.'exclude'``, quotes of either kind; None where the text is no such thing.

    Raises:
        BadRequest: it is one, with too many expressions, or with one that is empty or no regular expression.
    """
    if not re.fullmatch(TOKEN, text.strip()):
        return None
    parts = _PARTS.fullmatch(text.strip())
    if parts is None:
        raise BadRequest(f"{text!r} has more than two expressions: one for the tables taken in, one for those left out")
    expressions = [part[1:-1] for part in (parts["include"], parts["exclude"]) if part is not None]
    for expression in expressions:
        require_expression(expression)
    return parts["database"].lower(), Tables(*expressions)
