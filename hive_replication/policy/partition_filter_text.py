"""The text of a partition filter, read by the grammar of Hive's metastore (its ``PartitionFilter.g4``; pure).

Keep this module out of imports that run at start: its parser takes a while to import.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Final

from sqlglot import expressions as sql
from sqlglot import parse_one
from sqlglot.errors import SqlglotError

from hive_replication.policy.partition_conditions import Comparison, Condition, Junction

_LONGEST, _DEEPEST = 10_000, 50
_OPERATORS: Final[Mapping[type[sql.Expr], str]] = {
    sql.EQ: "=",
    sql.NEQ: "<>",
    sql.LT: "<",
    sql.LTE: "<=",
    sql.GT: ">",
    sql.GTE: ">=",
    sql.Like: "LIKE",
}
_REVERSED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TAKEN = (
    "Hive's metastore takes partition columns compared by =, <>, !=, <, <=, >, >=, LIKE, [NOT] BETWEEN and [NOT] IN with quoted "
    "texts, integers and DATE '2026-01-31', joined by AND, OR and parentheses"
)


def condition_of(text: str) -> Condition:
    """What a filter says.

    Raises:
        ValueError: it is no filter of Hive's metastore.
    """
    try:
        return _condition(_parsed(text))
    except (SqlglotError, ValueError, RecursionError) as error:
        said = str(error).partition(" for <class")[0].partition(".")[0][:200]  # without the parser's own names
        raise ValueError(f"{text[:200]!r} is no partition filter ({said}): {_TAKEN}") from error


def _parsed(text: str) -> sql.Expr:
    if "\\" in text or len(text) > _LONGEST:  # the metastore would take the backslash as part of the text
        raise ValueError(f"a backslash, or more than {_LONGEST:,} characters")
    tree = parse_one(text, dialect="hive")
    if sum(1 for _ in tree.find_all(sql.Paren)) > _DEEPEST:
        raise ValueError(f"more than {_DEEPEST} parentheses")
    return tree


def _condition(found: sql.Expr) -> Condition:
    inner = found.this
    match found:
        case sql.Paren():
            return _condition(inner)
        case sql.And() | sql.Or():
            return _joined(isinstance(found, sql.And), _condition(inner), _condition(found.expression))
        case sql.Not(this=sql.In() | sql.Between()):
            return _range(inner, inside=False)
        case sql.In() | sql.Between():
            return _range(found, inside=True)
        case _ if type(found) in _OPERATORS and not found.args.get("negate"):
            return _comparison(found)
        case _:
            raise _not_taken(found)


def _joined(every: bool, *parts: Condition) -> Junction:
    """Flat where several follow each other."""
    flat = (one.parts if isinstance(one, Junction) and one.every is every else (one,) for one in parts)
    return Junction(every, tuple(part for one in flat for part in one))


def _range(found: sql.Expr, *, inside: bool) -> Condition:
    """IN and BETWEEN, or what NOT makes of them."""
    column, values = _column(found.this), [_value(one) for one in found.expressions]
    if isinstance(found, sql.Between):
        low, high = (_value(found.args[one]) for one in ("low", "high"))
        return Junction(
            inside, (Comparison(column, ">=" if inside else "<", low), Comparison(column, "<=" if inside else ">", high))
        )
    if not values:
        raise _not_taken(found)
    return Junction(not inside, tuple(Comparison(column, "=" if inside else "<>", one) for one in values))


def _comparison(found: sql.Expr) -> Condition:
    how, left, right = _OPERATORS[type(found)], found.this, found.expression
    if isinstance(left, sql.Column) or how not in _REVERSED:
        return Comparison(_column(left), how, _value(right))
    return Comparison(_column(right), _REVERSED[how], _value(left))


def _column(found: sql.Expr) -> str:
    column = found.unnest()
    if not isinstance(column, sql.Column) or column.table:
        raise _not_taken(found)
    return column.name.lower()


def _value(found: sql.Expr) -> str | int:
    match found:
        case sql.Literal(is_string=True):
            return found.name
        case sql.Literal() if found.name.isdecimal():
            return int(found.name)
        case sql.Neg(this=sql.Literal(is_string=False)) if found.name.isdecimal():
            return -int(found.name)
        case sql.Cast(this=sql.Literal(is_string=True)) if found.is_type("date"):
            return date.fromisoformat(found.name).isoformat()
        case sql.Sub():  # 2026-01-31 without quotes
            return date.fromisoformat(found.sql(dialect="hive").replace(" ", "")).isoformat()
        case _:
            raise _not_taken(found)


def _not_taken(found: sql.Expr) -> ValueError:
    return ValueError(f"not {found.sql(dialect='hive')}")
