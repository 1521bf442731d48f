"""Names of databases in the query of a view, replaced where they stand (pure).

The query is parsed before and after: it has to be the same with other names of databases. All else stays as it was written.
What is not certain is not replaced: ``a.b.c`` is a field of a column to Hive, while ``a`` may be a database to others.

Keep this module out of imports that run at start: its parser takes a while to import.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from sqlglot import expressions as sql
from sqlglot import parse_one, tokenize
from sqlglot.tokenizer_core import TokenType

from hive_replication.load.replica.view_text import CannotRewrite, ReadsReplica
from hive_replication.logs import reason

#: Spark's name of the catalog that is Hive's metastore.
_SPARK_CATALOG = "spark_catalog"
_MOST_CHARACTERS = 2**18


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a query names a database, and what comes there instead."""

    identifier: sql.Identifier
    name: str

    def span(self, text: str) -> tuple[int, int]:
        """Its first character, and the one behind it; backquotes belong to it."""
        first, last = (self.identifier.meta.get(which) for which in ("start", "end"))
        if not isinstance(first, int) or not isinstance(last, int) or text[first : last + 1].strip("`") != self.identifier.name:
            raise CannotRewrite(f"the parser does not say where {self.identifier.name!r} stands")
        return first, last + 1


@lru_cache(maxsize=512)  # plans, loads and comparisons ask again
def with_databases(
    text: str, databases: tuple[tuple[str, str], ...], replicas: tuple[tuple[str, str], ...] = (), default: str = ""
) -> str:
    """The query with other names of databases.

    Args:
        text: a view's query, as written or as expanded by Hive.
        databases: each a name in lower case and the name that replaces it.
        replicas: each a name in lower case that is a replica's on the target, and the source of the replica.
        default: the database of unqualified names, in lower case, "" where it is not known.

    Raises:
        CannotRewrite: it cannot be parsed, or it is not certain which names are those of databases.
        ReadsReplica: it reads one whose name is a replica's on the target.
    """
    tree = _parsed(text)
    names = _Names(tree, dict(databases), dict(replicas), default, _before_points(text))
    found = names.places()
    names.require_all_seen()
    places = [(place.span(text), place) for place in found]
    if not places:
        return text
    parts, position = list[str](), 0
    for (first, end), place in sorted(places, key=lambda found: found[0]):
        parts += (text[position:first], f"`{place.name}`")
        position = end
        place.identifier.set("this", place.name)
        place.identifier.set("quoted", True)
    result = "".join((*parts, text[position:]))
    if _parsed(result) != tree:
        raise CannotRewrite("its text with the other names is not the same query")
    return result


def _parsed(text: str) -> sql.Query:
    if len(text) > _MOST_CHARACTERS:
        raise CannotRewrite(f"its text is longer than {_MOST_CHARACTERS} characters")
    try:
        tree = parse_one(text, dialect="hive")
    except Exception as error:  # whatever the parser fails with: the text is the source's, and holds its view alone
        raise CannotRewrite(f"its text cannot be parsed ({reason(error)})") from error
    if not isinstance(tree, sql.Query):
        raise CannotRewrite("its text is not one query")
    return tree


def _before_points(text: str) -> dict[int, str]:
    """What stands before a point, by the place of its first character: a name of a database always does."""
    return {
        token.start: token.text
        for token, following in pairwise(tokenize(text, dialect="hive"))
        if following.token_type == TokenType.DOT and token.token_type != TokenType.STRING
    }


class _Names:
    """Tells the names of databases in a query from those of tables, aliases, columns and fields that are spelled the same."""

    def __init__(
        self,
        tree: sql.Query,
        databases: Mapping[str, str],
        replicas: Mapping[str, str],
        default: str,
        before_points: Mapping[int, str],
    ) -> None:
        self._tree, self._databases, self._replicas, self._before_points = tree, databases, replicas, before_points
        self._known = databases.keys() | replicas.keys()
        tables = list(tree.find_all(sql.Table))
        self._aliases = {one.alias_or_name.lower() for one in tables}
        self._aliases |= {one.name.lower() for one in tree.find_all(sql.TableAlias)}
        self._tables = {(one.db.lower() or default, one.name.lower()) for one in tables}

    def require_all_seen(self) -> None:
        """Makes sure that the parser has passed over nothing that may name one of the databases."""
        seen = {identifier.meta.get("start") for identifier in self._tree.find_all(sql.Identifier)}
        for place, text in self._before_points.items():
            if text.lower() in self._known and place not in seen:
                raise CannotRewrite(f"the parser passes over {text!r} at character {place + 1}")

    def places(self) -> list[_Place]:
        """Where the query names one of the databases. That it reads a replica is told first: then nothing is uncertain."""
        found, uncertain = list[_Place](), list[CannotRewrite]()
        for identifier in list(self._tree.find_all(sql.Identifier)):
            try:
                found += self._named(identifier)
            except ReadsReplica:
                raise
            except CannotRewrite as error:
                uncertain.append(error)
        if uncertain:
            raise uncertain[0]
        return found

    def _named(self, identifier: sql.Identifier) -> Iterator[_Place]:
        name = identifier.name.lower()
        if isinstance(identifier.parent, sql.Anonymous):  # `db.function` in one pair of backquotes
            database, _, function = name.partition(".")
            if function and database in self._known:
                yield _Place(identifier, f"{self._on_target(database)}.{identifier.name[len(database) + 1 :]}")
        elif name in self._known and self._is_database(identifier, name):
            yield _Place(identifier, self._on_target(name))

    def _on_target(self, database: str) -> str:
        if database in self._replicas:
            raise ReadsReplica(database, self._replicas[database])
        return self._databases[database]

    def _is_database(self, identifier: sql.Identifier, name: str) -> bool:
        owner = identifier.parent
        if isinstance(owner, sql.Table):
            return _of_table(identifier, owner, name)
        if isinstance(owner, sql.Dot):
            return _of_function(identifier, owner, name)
        if isinstance(owner, sql.Column):
            self._require_field(identifier, owner, name)
        elif identifier.meta.get("start") in self._before_points:  # else a column of USING, an alias, a field
            raise CannotRewrite(f"it is not certain what {name} stands for in {type(owner).__name__.upper()}")
        return False

    def _require_field(self, identifier: sql.Identifier, column: sql.Column, name: str) -> None:
        """``a.b.c`` is a field of a column, unless ``a.b`` is a table of the query and ``a``, or a catalog before it, is none."""
        parts = [part.name.lower() for part in column.parts]
        place = int(parts[0] == _SPARK_CATALOG and len(parts) > 3)
        first = column.parts[place] is identifier and len(parts) > place + 2
        if first and parts[0] not in self._aliases and (name, parts[place + 1]) in self._tables:
            raise CannotRewrite(f"it is not certain whether {name} is a database in {'.'.join(parts)}")


def _of_table(identifier: sql.Identifier, table: sql.Table, name: str) -> bool:
    if identifier.arg_key == "this":
        return False
    if table.catalog and (identifier.arg_key, table.catalog.lower()) != ("db", _SPARK_CATALOG):
        raise CannotRewrite(f"it is not certain whether {name} is a database in {table.catalog}.{table.db}.{table.name}")
    return True


def _of_function(identifier: sql.Identifier, dot: sql.Dot, name: str) -> bool:
    """``db.function(...)``: nothing else than a database stands before a function; before anything else it is a field."""
    above = dot.parent
    last = identifier.arg_key == "expression"
    if last and isinstance(above, sql.Dot) and above.this is dot and isinstance(above.expression, sql.Func):
        raise CannotRewrite(f"it is not certain whether {name} is a database in the name of a function")
    return not last and isinstance(dot.expression, sql.Func)
