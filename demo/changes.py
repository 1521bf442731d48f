"""What happens at the source while the sensor runs, in waves. Each round continues from what the last one left."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from demo import tables as t
from demo.filling import Step
from demo.source import SourceDatabase


@dataclass(frozen=True, slots=True)
class Wave:
    """Changes made at once; the demo waits for the replica after each wave."""

    title: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Round:
    """One round of changes.

    Args:
        source: the source.
        first: number of the first new day of orders.
        oldest: name of the oldest partition of orders.
        number: 1 for the first round after the filling.
    """

    source: SourceDatabase
    first: int
    oldest: str
    number: int

    @classmethod
    def of(cls, source: SourceDatabase) -> Round:
        """The next round, by the days that orders has."""
        names = source.partition_names(t.ORDERS.name)
        newest = date.fromisoformat(names[-1].partition("=")[2])
        first = (newest - t.FIRST_DAY).days + 1
        return cls(source, first, names[0], 1 + (first - t.DAYS) // 2)

    def waves(self) -> tuple[Wave, ...]:
        """The waves in their order."""
        source, column = self.source, f"segment_{self.number}"
        return (
            Wave(
                "New data",
                (
                    ("orders: two new partitions", self._new_orders),
                    ("orders: late rows for two partitions", self._late_orders),
                    ("orders: INSERT OVERWRITE of a partition", self._overwrite),
                    ("returns: a new partition, rows for an old one", self._returns),
                    (f"customers: column {column} added, rows inserted", lambda: self._customers(column)),
                    ("web_logs: files for an external table", lambda: self._append(t.WEB_LOGS)),
                    ("clicks, flash_sale: rows inserted", self._inserts),
                ),
            ),
            Wave(
                "Tables come and go",
                (
                    ("orders: the oldest partition dropped", lambda: source.drop_partition(t.ORDERS.name, self.oldest)),
                    ("campaigns: rows inserted, and the table renamed at once", self._campaigns),
                    ("prices: the daily swap with prices_new", self._swap),
                    ("clicks: truncated", lambda: source.truncate(t.CLICKS.name)),
                    ("stock: dropped, and created again with other columns", self._stock),
                ),
            ),
            Wave(
                "Gone before it is copied",
                (
                    (
                        "flash_sale: rows inserted, and the table dropped before the window: its files need not be copied",
                        self._flash_sale,
                    ),
                ),
            ),
        )

    def _days(self, start: int, stop: int) -> range:
        return range(self.first + start, self.first + stop)

    def _append(self, design: t.Design) -> None:
        self.source.insert(design, t.numbered_rows(design.columns, 20, self.number))

    def _new_orders(self) -> None:
        self.source.insert(t.ORDERS, t.order_rows(self._days(0, 2)))

    def _late_orders(self) -> None:
        self.source.insert(t.ORDERS, t.order_rows(self._days(-2, 0), files=1, salt=self.number))

    def _overwrite(self) -> None:
        self.source.insert(t.ORDERS, t.order_rows(self._days(-3, -2), 1, 500 + self.number), overwrite=True)

    def _returns(self) -> None:
        new = (t.NEW_RETURN_PLACE[0], f"{t.NEW_RETURN_PLACE[1]} {self.number}")
        self.source.insert(t.RETURNS, t.return_rows((new, t.RETURN_PLACES[1]), 10))

    def _customers(self, column: str) -> None:
        if column not in dict(self.source.columns(t.CUSTOMERS.name)):
            self.source.add_column(t.CUSTOMERS.name, column, "string")
        columns = self.source.columns(t.CUSTOMERS.name)
        design = t.Design(t.CUSTOMERS.name, columns, format="orc")
        self.source.insert(design, t.numbered_rows(columns, 20, self.number))

    def _inserts(self) -> None:
        self._append(t.CLICKS)
        if t.FLASH_SALE.name not in self.source.names():  # the round before dropped it
            self.source.create(t.FLASH_SALE)
        self._append(t.FLASH_SALE)

    def _campaigns(self) -> None:
        name = next(name for name in self.source.names() if name.startswith("campaigns_"))
        number = int(name.removeprefix("campaigns_"))
        self._append(t.campaigns(number))
        self.source.rename(name, t.campaigns(number + 1).name)

    def _swap(self) -> None:
        new = t.Design("prices_new", t.PRICES.columns)
        for name in ("prices_new", "prices_old"):
            self.source.drop(name)
        self.source.create(new, t.numbered_rows(new.columns, 100, self.number))
        if t.PRICES.name in self.source.names():  # an interrupted round may have left off between the two renames
            self.source.rename("prices", "prices_old")
        self.source.rename("prices_new", "prices")

    def _stock(self) -> None:
        design = t.STOCK_BY_PLACE if self.number % 2 else t.STOCK
        self.source.drop(design.name)
        self.source.create(design, t.numbered_rows(design.columns, 50, self.number))

    def _flash_sale(self) -> None:
        self._append(t.FLASH_SALE)
        self.source.drop(t.FLASH_SALE.name)
