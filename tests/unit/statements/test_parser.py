from __future__ import annotations

import shlex
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hive_replication.errors import BadRequest
from hive_replication.statements import ReplDump, ReplLoad, ReplStatus, Tables, for_shell, parse, parse_name, parse_tables


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("REPL DUMP sales", ReplDump("sales")),
        ("repl dump Sales.Orders;", ReplDump("sales", "orders")),
        ("REPL DUMP sales FROM 200", ReplDump("sales", None, 200)),
        ("REPL DUMP sales FROM 200 TO 1400", ReplDump("sales", None, 200, 1400)),
        ("REPL DUMP sales FROM 200 TO 1400 BATCH 100", ReplDump("sales", None, 200, 1400, 100)),
        ("REPL DUMP sales FROM 200 BATCH 100", ReplDump("sales", None, 200, None, 100)),
        ("REPL DUMP sales FROM 0", ReplDump("sales", None, 0)),
        ("REPL DUMP `sales`", ReplDump("sales")),
        ("REPL DUMP Sales.'t[0-9]+'", ReplDump("sales", tables=Tables("t[0-9]+"))),
        ("REPL DUMP sales.'a|b'.\"it's.*\" FROM 5", ReplDump("sales", None, 5, tables=Tables("a|b", "it's.*"))),
        (
            "REPL DUMP sales.'T.*' REPLACE sales.'a'.'b' FROM 5 TO 9 BATCH 2;",
            ReplDump("sales", None, 5, 9, 2, Tables("T.*"), Tables("a", "b")),
        ),
        ("REPL DUMP sales REPLACE sales.'a' FROM 5", ReplDump("sales", None, 5, replaces=Tables("a"))),
        ("REPL DUMP sales.'a' REPLACE Sales FROM 5", ReplDump("sales", None, 5, tables=Tables("a"), replaces=Tables(".*"))),
        ("REPL LOAD FROM hdfs://nn:8020/d/1", ReplLoad("hdfs://nn:8020/d/1")),
        ("REPL LOAD copy FROM 'hdfs://nn:8020/d 1'", ReplLoad("hdfs://nn:8020/d 1", "copy")),
        ('REPL LOAD copy.t FROM "hdfs://nn:8020/it\'s"', ReplLoad("hdfs://nn:8020/it's", "copy", "t")),
        ("REPL STATUS sales", ReplStatus("sales")),
        ("REPL STATUS sales.orders", ReplStatus("sales", "orders")),
        ("REPL STATUS sales.`a.b`", ReplStatus("sales", "a.b")),
        ("REPL DUMP sales.`x Y`", ReplDump("sales", "x y")),
        ("REPL LOAD copy.`c/b` FROM 'hdfs://nn:8020/d 1'", ReplLoad("hdfs://nn:8020/d 1", "copy", "c/b")),
    ],
)
def test_statement(text: str, expected: object) -> None:
    assert parse(text) == expected


ODD_NAMES = ["a-b", "a.b", "c/b", "x y", "it's", "a$b", "orders"]


@pytest.mark.parametrize("table", ODD_NAMES)
def test_a_statement_names_its_table_as_it_is_read_again(table: str) -> None:
    for statement in (f"REPL DUMP Sales.`{table}`", f"REPL LOAD sales.`{table}` FROM d", f"REPL STATUS sales.`{table}`"):
        name = parse(statement).name
        assert name is not None
        assert parse_name(name) == ("sales", table)


@pytest.mark.parametrize("table", ODD_NAMES)
def test_a_command_names_its_table_for_the_shell(table: str) -> None:
    (word,) = shlex.split(for_shell("sales", table))
    assert parse_name(word) == ("sales", table)
    assert for_shell("sales", "orders") == "sales.orders"
    assert for_shell("sales", "") == for_shell("sales") == "sales"


def test_a_name_that_cannot_be_read_is_told_how_to_write_it() -> None:
    with pytest.raises(BadRequest, match=r"in single quotes: 'db\.`a-b`'"):
        parse_name("sales.a-b")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected REPL"),
        ("SELECT 1", "expected REPL at 'SELECT'"),
        ("REPL", "expected DUMP or LOAD or STATUS at its end"),
        ("REPL DROP sales", "at 'DROP'"),
        ("REPL DUMP", "expected a database or table name"),
        ("REPL DUMP a.b.c", "'a.b.c' is not a name"),
        ("REPL DUMP sales.", "'sales.' is not a name"),
        ("REPL DUMP sa-les", "'sa-les' is not a name"),
        ("REPL DUMP sales FROM", "the event id after FROM"),
        ("REPL DUMP sales FROM x", "not 'x'"),
        ("REPL DUMP sales FROM -1", "not '-1'"),
        ("REPL DUMP sales FROM 1 TO", "the event id after TO"),
        ("REPL DUMP sales FROM 5 TO 4", "TO 4 lies before FROM 5"),
        ("REPL DUMP sales FROM 5 BATCH 0", "from 1 on"),
        ("REPL DUMP sales TO 4", "unexpected at 'TO'"),
        ("REPL DUMP sales BATCH 4", "unexpected at 'BATCH'"),
        ("REPL DUMP sales FROM 1 BATCH 4 TO 9", "unexpected at 'TO'"),
        ("REPL DUMP sales.''", "an empty regular expression"),
        ("REPL DUMP sales.'a'.''", "an empty regular expression"),
        ("REPL DUMP sales.'a'.'b'.'c'", "more than two expressions"),
        ("REPL DUMP sales.'a'b", "unexpected at 'b'"),
        ("REPL DUMP sales.'a(' FROM 5", "'a(' is not a regular expression"),
        ("REPL DUMP sales.'[a-c&&[b]]'", "is not a regular expression"),
        ("REPL DUMP sales.'\\p{Alpha}'", "is not a regular expression"),
        ("REPL DUMP sales.[a-z]", "'sales.[a-z]' is not a name"),
        ("REPL DUMP hive.sales.'a'", "is not a name"),
        ("REPL DUMP @hive#sales", "'@hive#sales' is not a name"),
        (f"REPL DUMP sales.'{'a' * 1001}'", "longer than 1000"),
        ("REPL DUMP sales.'a' REPLACE other.'b' FROM 5", "REPLACE names other, the dump is of the database sales"),
        ("REPL DUMP sales.'a' REPLACE sales.b FROM 5", "REPLACE names sales.b"),
        ("REPL DUMP sales.'a' REPLACE sales.'b'", "REPLACE needs FROM"),
        ("REPL DUMP sales.orders REPLACE sales.'a.*' FROM 5", "the dump is of sales.orders alone"),
        ("REPL DUMP sales.'a' REPLACE", "expected a database or table name"),
        ("REPL LOAD sales.'a' FROM d", "is not a name"),
        ("REPL LOAD", "expected a database or table name"),
        ("REPL LOAD sales", "expected FROM"),
        ("REPL LOAD FROM", "expected the dump directory"),
        ("REPL LOAD FROM a b", "unexpected at 'b'"),
        ("REPL LOAD FROM 'a", "unreadable from"),
        ("REPL STATUS sales FROM 3", "unexpected at 'FROM'"),
        ("REPL STATUS sales; REPL STATUS sales", "unexpected at ';'"),
    ],
)
def test_broken_statement_names_the_place_and_the_forms(text: str, problem: str) -> None:
    with pytest.raises(BadRequest) as raised:
        parse(text)
    assert problem in str(raised.value)
    assert "REPL LOAD [<db>[.<table>]] FROM <dir>" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_expressions_are_written_as_they_are_read() -> None:
    for tables in (Tables("a"), Tables("it's", 'say "x"'), Tables(".*", "b")):
        assert parse_tables(tables.of("sales")) == ("sales", tables)


_names = st.from_regex(r"[a-z0-9_]{1,12}", fullmatch=True)
_evids = st.integers(0, 10**17)


@given(_names, st.none() | _names, st.none() | st.tuples(_evids, st.none() | _evids, st.integers(0, 1000)))
def test_every_dump_is_read_back(database: str, table: str | None, window: tuple[int, int | None, int] | None) -> None:
    text = f"REPL DUMP {database}" + (f".{table}" if table else "")
    if window is None:
        assert parse(text) == ReplDump(database, table)
        return
    start, length, batch = window
    end = None if length is None else start + length
    text += f" FROM {start}" + (f" TO {end}" if end is not None else "") + (f" BATCH {batch}" if batch else "")
    assert parse(text) == ReplDump(database, table, start, end, batch)


@given(st.text())
def test_any_text_is_a_statement_or_a_bad_request(text: str) -> None:
    with suppress(BadRequest):
        parse("REPL " + text)
