"""Which tables views read, by their texts as Hive keeps them."""

from __future__ import annotations

import logging

import pytest

from repl_assets.catalog.view_lineage import tables_read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select `orders`.`a` from `sales`.`orders`", [("sales", "orders")]),
        (
            "SELECT o.a, t.x FROM `sales`.`Orders` o LATERAL VIEW explode(o.items) t AS x LEFT SEMI JOIN hr.c ON o.a = c.a",
            [("hr", "c"), ("sales", "orders")],
        ),
        (
            "WITH x AS (SELECT * FROM t1) SELECT * FROM x UNION ALL SELECT a FROM t2 WHERE a IN (SELECT b FROM t3)",
            [("db", "t1"), ("db", "t2"), ("db", "t3")],
        ),
        ("FROM sales.a SELECT b", [("sales", "a")]),
        ("SELECT 1", []),
    ],
)
def test_tables_of_a_view(text: str, expected: list[tuple[str, str]]) -> None:
    assert list(tables_read(text, "db")) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ((",
        "SELECT a FROM t LATERAL VIEW explode(m) . AS k",  # sqlglot: AttributeError
        "SELECT TRANSFORM (a) USING ( 'cat' AS VAR_MAP (x STRING, y INT) FROM t",  # IndexError
    ],
)
def test_a_text_that_cannot_be_read_is_told(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(logging.getLogger("dagster"), "propagate", True)
    assert tables_read(text, "db") == ()
    assert "lineage of a view of db is not shown" in caplog.text
