"""Where the text of a view names a database."""

from __future__ import annotations

import pytest

from hive_replication.load.replica.view_text import reference, with_database
from hive_replication.metastore.types import StorageDescriptor, Table


def view(text: str, kind: str = "VIRTUAL_VIEW") -> Table:
    return Table(tableName="v", dbName="sales", tableType=kind, sd=StorageDescriptor(), viewExpandedText=text)


@pytest.mark.parametrize(
    ("text", "mapped"),
    [
        ("SELECT `o`.`a` FROM `sales`.`orders` `o`", "SELECT `o`.`a` FROM `replica`.`orders` `o`"),
        ("select a from SALES.orders, sales . `x`", "select a from replica.orders, replica . `x`"),
        (
            "SELECT 1 FROM (`sales`.`orders` JOIN `sales`.`x`)",
            "SELECT 1 FROM (`replica`.`orders` JOIN `replica`.`x`)",
        ),
        # a table of the database's own name: its columns stand behind the same name
        ("SELECT `sales`.`a` FROM `sales`.`sales`", "SELECT `sales`.`a` FROM `replica`.`sales`"),
        ("SELECT `sales`.`a` FROM `sales`.`orders` `sales`", "SELECT `sales`.`a` FROM `replica`.`orders` `sales`"),
    ],
)
def test_tables_of_the_database_are_found(text: str, mapped: str) -> None:
    assert reference(view(text), "sales").startswith("sales.")
    assert with_database(text, "sales", "replica") == mapped


@pytest.mark.parametrize(
    "text",
    [
        "SELECT `a` FROM `other`.`orders`",
        "SELECT 'sales.orders' FROM `other`.`x`",
        "SELECT `presales`.`a` FROM `my_sales`.`x`",
        "SELECT 1",
    ],
)
def test_other_names_and_literals_are_not(text: str) -> None:
    assert (reference(view(text), "sales"), with_database(text, "sales", "replica")) == ("", text)


def test_only_views_have_a_text() -> None:
    assert reference(view("SELECT a FROM sales.x", "MANAGED_TABLE"), "sales") == ""
