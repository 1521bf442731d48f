"""The demo's tables and the SQL that makes their rows: data without any server."""

# ruff: noqa: S608, RUF001 (queries of this module's own values, in letters of many languages)

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

Format = Literal["parquet", "orc", "text"]
Columns = tuple[tuple[str, str], ...]

DATABASE = "sales"
FIRST_DAY = date(2024, 1, 1)
DAYS = 30
ORDERS_A_DAY = 120


@dataclass(frozen=True, slots=True)
class Design:
    """A table of the demo.

    Args:
        name: its name.
        columns: names and Hive types, without partition keys.
        keys: names and types of the partition keys.
        format: of its files.
        external: whether its data lies outside the warehouse and is not Hive's to delete.
    """

    name: str
    columns: Columns
    keys: Columns = ()
    format: Format = "parquet"
    external: bool = False


ORDERS = Design(
    "orders",
    (
        ("order_id", "bigint"),
        ("customer_id", "bigint"),
        ("amount", "decimal(10,2)"),
        ("status", "string"),
        ("placed_at", "timestamp"),
    ),
    (("ds", "date"),),
)
RETURNS = Design(
    "returns",
    (("return_id", "bigint"), ("order_id", "bigint"), ("remark", "string")),
    (("country", "string"), ("reason", "string")),
    "text",
)
CUSTOMERS = Design("customers", (("customer_id", "bigint"), ("name", "string"), ("city", "string")), format="orc")
COMPLAINTS = Design("complaints", (("complaint_id", "bigint"), ("text", "string")), format="text")
WEB_LOGS = Design("web_logs", (("path", "string"), ("status", "int"), ("bytes", "bigint")), format="text", external=True)
PRICES = Design("prices", (("product_id", "bigint"), ("price", "decimal(8,2)")))
CLICKS = Design("clicks", (("customer_id", "bigint"), ("page", "string")))
STOCK = Design("stock", (("product_id", "bigint"), ("pieces", "int")))
STOCK_BY_PLACE = Design("stock", (("product_id", "bigint"), ("place", "string"), ("pieces", "int")), format="orc")
FLASH_SALE = Design("flash_sale", (("product_id", "bigint"), ("discount", "int")))
BIG_ORDERS = "big_orders"
SUPPLIERS = "suppliers"

#: Countries and reasons of returns: blanks, percent signs, slashes, quotes and letters beyond ASCII in partition values.
RETURN_PLACES = (
    ("Deutschland", "zu groß"),
    ("Österreich", "100 % falsch / defekt"),
    ("Côte d'Ivoire", "50% too late"),
    ("España", "talla S/M"),
    ("日本", "色が違う"),
    ("United Kingdom", "changed my mind"),
)
#: Added to while the sensor runs.
NEW_RETURN_PLACE = ("Türkiye", "kırık = %100 / iade")


def day(number: int) -> date:
    """The day of a partition of orders, the first is number 0."""
    return FIRST_DAY + timedelta(days=number)


def campaigns(number: int) -> Design:
    """The table that gets another name in each round."""
    return Design(f"campaigns_{number}", (("campaign_id", "bigint"), ("slogan", "string")), format="orc")


def order_rows(days: range, files: int = 2, salt: int = 0) -> str:
    """Orders of some days: so many files a day."""
    ids = f"range({ORDERS_A_DAY * days.start}, {ORDERS_A_DAY * days.stop}, 1, 1)"
    return f"""
        SELECT /*+ REPARTITION({files}) */ {salt} * 1000000 + id AS order_id,
               1 + pmod(xxhash64(id, {salt}), 400) AS customer_id,
               CAST(pmod(xxhash64(id, {salt} + 1), 100000) / 100 AS decimal(10, 2)) AS amount,
               element_at(array('new', 'paid', 'sent'), CAST(1 + pmod(id, 3) AS int)) AS status,
               timestamp_seconds(1704067200 + id * 720) AS placed_at,
               date_add(DATE'{FIRST_DAY}', CAST(id DIV {ORDERS_A_DAY} AS int)) AS ds
        FROM {ids}"""


def return_rows(places: tuple[tuple[str, str], ...], rows: int = 30) -> str:
    """Returns of some countries and reasons."""
    listed = ", ".join(f"({_text(country)}, {_text(reason)})" for country, reason in places)
    return f"""
        SELECT id AS return_id, id * 7 AS order_id, concat('Rückgabe ', id, ' – ok') AS remark, p.country, p.reason
        FROM range(0, {rows}, 1, 1) CROSS JOIN (VALUES {listed}) AS p (country, reason)"""


def customer_rows(numbers: range) -> str:
    """Customers, in two files."""
    return f"""
        SELECT id AS customer_id, concat('Customer ', id) AS name,
               element_at(array('Köln', 'Łódź', 'Århus', 'Genève'), CAST(1 + pmod(id, 4) AS int)) AS city
        FROM range({numbers.start}, {numbers.stop}, 1, 2)"""


def numbered_rows(columns: Columns, rows: int, salt: int = 0) -> str:
    """Rows for any table without partitions: each column follows from the row's number and the salt."""
    values = ", ".join(f"{_value(kind, name, salt)} AS {name}" for name, kind in columns)
    return f"SELECT {values} FROM range(0, {rows}, 1, 1)"


def _value(kind: str, name: str, salt: int) -> str:
    if name.endswith("_id"):
        return f"CAST({salt} * 1000 + id AS {kind})"
    number = f"pmod(xxhash64(id, {salt}, '{name}'), 1000)"
    return f"concat('{name} ', {number})" if kind == "string" else f"CAST({number} AS {kind})"


def _text(value: str) -> str:
    quoted = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{quoted}'"
