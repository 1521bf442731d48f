"""Fills the demo's source: a database as it has grown before anybody thinks of replication."""

from __future__ import annotations

from collections.abc import Callable

from demo import tables as t
from demo.source import SourceDatabase

_FILLED = "demo.filled"

Step = tuple[str, Callable[[], None]]


def is_filled(source: SourceDatabase) -> bool:
    """Whether a demo has filled this source before, completely."""
    database = source.source.metastore.database(t.DATABASE)
    return database is not None and _FILLED in (database.parameters or {})


def filling(source: SourceDatabase) -> list[Step]:
    """The steps, each with what it makes; what an interrupted filling left is dropped first."""
    campaigns = t.campaigns(1)
    return [
        ("the database", lambda: _fresh_database(source)),
        (f"orders: Parquet, {t.DAYS} partitions by date", lambda: source.create(t.ORDERS, t.order_rows(range(t.DAYS)))),
        ("returns: text, two partition keys, values in many scripts", lambda: _returns(source)),
        ("customers: ORC", lambda: source.create(t.CUSTOMERS, t.customer_rows(range(1, 401)))),
        ("complaints: an empty table", lambda: source.create(t.COMPLAINTS)),
        ("big_orders: a view", lambda: _view(source)),
        ("web_logs: an external table", lambda: _numbered(source, t.WEB_LOGS, 200)),
        (
            "suppliers: Spark's USING parquet",
            lambda: source.create_by_spark(t.SUPPLIERS, t.numbered_rows((("supplier_id", "bigint"), ("name", "string")), 50)),
        ),
        ("prices", lambda: _numbered(source, t.PRICES, 100)),
        ("clicks", lambda: _numbered(source, t.CLICKS, 300)),
        ("stock", lambda: _numbered(source, t.STOCK, 100)),
        ("flash_sale", lambda: _numbered(source, t.FLASH_SALE, 10)),
        (campaigns.name, lambda: _numbered(source, campaigns, 20)),
        ("done", lambda: source.set_property(_FILLED, "true")),
    ]


def _fresh_database(source: SourceDatabase) -> None:
    source.source.metastore.drop_database(t.DATABASE, delete_data=True, cascade=True)
    source.create_database()


def _returns(source: SourceDatabase) -> None:
    source.create(t.RETURNS, t.return_rows(t.RETURN_PLACES))


def _numbered(source: SourceDatabase, design: t.Design, rows: int) -> None:
    source.create(design, t.numbered_rows(design.columns, rows))


def _view(source: SourceDatabase) -> None:
    text = "SELECT `orders`.`order_id`, `orders`.`amount`, `orders`.`ds` FROM `sales`.`orders` WHERE `orders`.`amount` > 900"
    source.create_view(t.BIG_ORDERS, (("order_id", "bigint"), ("amount", "decimal(10,2)"), ("ds", "date")), text)
