"""Parser of the seeds' statements (replication-v2, "New commands"); keywords in any case, names as Hive's identifiers."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from hive_replication.errors import BadRequest
from hive_replication.statements.tables import ALL, TOKEN, Tables, parse_tables

_TOKEN = re.compile(
    rf"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`([^`]+)`|({TOKEN}|[A-Za-z0-9_]+\.`[^`]+`|[^\s;'"`]+)|(;))"""
)
_NAME = re.compile(r"[A-Za-z0-9_]+")
_QUOTED = re.compile(r"(?P<database>[A-Za-z0-9_]+)\.`(?P<table>[^`\x00-\x1f\x7f]+)`")
#: In place of a database: each one of the policy.
EVERY = "*"

GRAMMAR = """REPL DUMP <db>[.<table>]|* [FROM <evid> [TO <evid>] [BATCH <n>]]
REPL DUMP <db>.'<regex>'[.'<regex>'] [REPLACE <db>[.'<regex>'[.'<regex>']]] [FROM ...]
REPL LOAD [<db>[.<table>]] FROM <dir> [TO <evid>]
REPL STATUS <db>[.<table>]"""


@dataclass(frozen=True, slots=True)
class ReplDump:
    """``REPL DUMP``: ``from_evid`` None is a bootstrap, ``batch`` 0 no limit of events, ``*`` each database of the policy.

    ``tables`` are those of the database that are dumped, None for those of the policy; ``replaces`` those that the replica was
    made with, None where the statement does not say.
    """

    database: str
    table: str | None = None
    from_evid: int | None = None
    to_evid: int | None = None
    batch: int = 0
    tables: Tables | None = None
    replaces: Tables | None = None

    @property
    def name(self) -> str:
        """``db`` or ``db.table``, as :func:`parse_name` reads it."""
        return _joined(self.database, self.table)


@dataclass(frozen=True, slots=True)
class ReplLoad:
    """``REPL LOAD``: without names the dump's own are used; with them the dump's database or table is renamed.

    ``to_evid`` is the last event that is applied, None for all of the dump.
    """

    directory: str
    database: str | None = None
    table: str | None = None
    to_evid: int | None = None

    @property
    def name(self) -> str | None:
        """``db`` or ``db.table``, as :func:`parse_name` reads it, None where the statement names neither."""
        return _joined(self.database, self.table) if self.database else None


@dataclass(frozen=True, slots=True)
class ReplStatus:
    """``REPL STATUS`` of a target database or table."""

    database: str
    table: str | None = None

    @property
    def name(self) -> str:
        """``db`` or ``db.table``, as :func:`parse_name` reads it."""
        return _joined(self.database, self.table)


Statement = ReplDump | ReplLoad | ReplStatus


class _Tokens:
    def __init__(self, text: str) -> None:
        self._text = text
        self._words: list[str] = []
        position = 0
        stripped = text.rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if match is None:
                raise self.error(f"unreadable from {stripped[position:]!r}")
            quoted = next((group for group in match.groups()[:3] if group is not None), None)
            self._words.append(quoted if quoted is not None else (match[4] or match[5]))
            position = match.end()
        if self._words and self._words[-1] == ";":
            self._words.pop()

    def error(self, problem: str) -> BadRequest:
        forms = GRAMMAR.replace("\n", "  |  ")
        return BadRequest(f"cannot read the statement {self._text.strip()!r}: {problem}; the forms are  {forms}")

    def keyword(self, *words: str) -> str | None:
        """Takes the next word if it is one of ``words``."""
        if self._words and self._words[0].upper() in words:
            return self._words.pop(0).upper()
        return None

    def expect(self, *words: str) -> str:
        found = self.keyword(*words)
        if found is None:
            raise self.error(f"expected {' or '.join(words)} {self._here()}")
        return found

    def word(self, what: str) -> str:
        if not self._words:
            raise self.error(f"expected {what} at its end")
        return self._words.pop(0)

    def number(self, what: str, least: int) -> int:
        word = self.word(what)
        if not re.fullmatch(r"[0-9]{1,18}", word) or int(word) < least:
            raise self.error(f"{what} must be a whole number from {least} on, not {word!r}")
        return int(word)

    def name(self) -> tuple[str, str | None]:
        """A database, or a database and a table; Hive keeps both in lower case."""
        word = self.word("a database or table name")
        try:
            return parse_name(word)
        except BadRequest as error:
            raise self.error(str(error)) from None

    def tables(self) -> tuple[str, Tables] | None:
        """A database and regular expressions, if the next word is that."""
        try:
            found = parse_tables(self._words[0]) if self._words else None
        except BadRequest as error:
            raise self.error(str(error)) from None
        if found is not None:
            self._words.pop(0)
        return found

    def end(self) -> None:
        if self._words:
            raise self.error(f"unexpected {self._here()}")

    def _here(self) -> str:
        return f"at {self._words[0]!r}" if self._words else "at its end"


def parse(text: str) -> Statement:
    """Reads one statement.

    Raises:
        BadRequest: the text is no such statement; the message names the place and the three forms.
    """
    tokens = _Tokens(text)
    tokens.expect("REPL")
    verb = tokens.expect("DUMP", "LOAD", "STATUS")
    statement = {"DUMP": _dump, "LOAD": _load, "STATUS": _status}[verb](tokens)
    tokens.end()
    return statement


def parse_name(text: str) -> tuple[str, str | None]:
    """Reads ``db`` or ``db.table``: the database and, if it names one, the table; one of other characters as ``db.`a-b` ``.

    Raises:
        BadRequest: the text is no such name.
    """
    if quoted := _QUOTED.fullmatch(text.lower()):
        return quoted["database"], quoted["table"]
    parts = text.lower().split(".")
    if len(parts) > 2 or not all(_NAME.fullmatch(part) for part in parts):
        raise BadRequest(
            f"{text!r} is not a name like db or db.table; a table of other characters than letters, digits and _ stands between "
            "backquotes, for the shell in single quotes: 'db.`a-b`'"
        )
    return parts[0], parts[1] if len(parts) == 2 else None


def for_shell(database: str, table: str | None = None) -> str:
    """A name as it stands in a command: what :func:`parse_name` reads, protected from the shell."""
    return shlex.quote(_joined(database, table))


def _joined(database: str, table: str | None) -> str:
    if not table:
        return database
    return f"{database}.{table}" if _NAME.fullmatch(table) else f"{database}.`{table}`"


def _dump(tokens: _Tokens) -> ReplDump:
    some = tokens.tables()
    tables = some[1] if some is not None else None
    if some is not None:
        database, table = some[0], None
    else:
        database, table = (EVERY, None) if tokens.keyword(EVERY) else tokens.name()
    replaces = _replaced(tokens, database, table) if tokens.keyword("REPLACE") else None
    if not tokens.keyword("FROM"):
        if replaces is not None:
            raise tokens.error("REPLACE needs FROM: only a replica has tables that others replace")
        return ReplDump(database, table, tables=tables)
    start = tokens.number("the event id after FROM", 0)
    end = tokens.number("the event id after TO", 0) if tokens.keyword("TO") else None
    batch = tokens.number("the number of events after BATCH", 1) if tokens.keyword("BATCH") else 0
    if end is not None and end < start:
        raise tokens.error(f"TO {end} lies before FROM {start}")
    return ReplDump(database, table, start, end, batch, tables, replaces)


def _replaced(tokens: _Tokens, database: str, dumped: str | None) -> Tables:
    if dumped is not None:
        raise tokens.error(f"REPLACE is about the tables of a database, the dump is of {_joined(database, dumped)} alone")
    found = tokens.tables()
    name, table = (found[0], None) if found is not None else tokens.name()
    if name != database or table is not None:
        raise tokens.error(f"REPLACE names {_joined(name, table)}, the dump is of the database {database}")
    return found[1] if found is not None else ALL


def _load(tokens: _Tokens) -> ReplLoad:
    database, table = (None, None) if tokens.keyword("FROM") else tokens.name()
    if database is not None:
        tokens.expect("FROM")
    directory = tokens.word("the dump directory")
    return ReplLoad(directory, database, table, tokens.number("the event id after TO", 0) if tokens.keyword("TO") else None)


def _status(tokens: _Tokens) -> ReplStatus:
    return ReplStatus(*tokens.name())
