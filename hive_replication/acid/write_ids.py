"""Valid write ids of a table: which writes a reader sees (Hive's ``ValidReaderWriteIdList``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_NONE_OPEN = 2**63 - 1  # Java's Long.MAX_VALUE


@dataclass(frozen=True, slots=True)
class WriteIds:
    """What a reader sees of one table at one moment.

    Args:
        high: greatest write id that was given out; 0 where none was.
        open: write ids of transactions that are neither committed nor aborted.
        aborted: write ids of aborted transactions.
    """

    high: int = 0
    open: frozenset[int] = frozenset()
    aborted: frozenset[int] = frozenset()

    @classmethod
    def of(cls, high: int, invalid: Sequence[int], aborted_bits: bytes) -> WriteIds:
        """From the metastore's answer: bit ``n`` of ``aborted_bits`` (lowest first) tells whether ``invalid[n]`` is aborted."""
        aborted = {one for n, one in enumerate(invalid) if _bit(aborted_bits, n)}
        return cls(high, frozenset(invalid) - aborted, frozenset(aborted))

    @classmethod
    def parsed(cls, text: str) -> WriteIds:
        """Reads what :meth:`encode` wrote.

        Raises:
            ValueError: it is no such text.
        """
        _, high, _, opened, aborted = text.rsplit(":", 4)
        return cls(int(high), _numbers(opened), _numbers(aborted))

    def encode(self, table: str) -> str:
        """Hive's text: ``db.table:high:lowest open:open,..:aborted,..``."""
        lowest = min(self.open, default=_NONE_OPEN)
        return f"{table}:{self.high}:{lowest}:{_text(self.open)}:{_text(self.aborted)}"

    def sees(self, write_id: int) -> bool:
        """Whether the write is committed."""
        return write_id <= self.high and write_id not in self.open and write_id not in self.aborted

    def sees_any(self, first: int, last: int) -> bool:
        """Whether any write of ``first`` to ``last`` is committed, as of a directory that compaction made of several."""
        return any(self.sees(one) for one in range(first, min(last, self.high) + 1))

    def sees_base(self, write_id: int) -> bool:
        """Whether a base that holds all writes up to an id can be read: none of them may be open."""
        return write_id <= self.high and all(one > write_id for one in self.open)


@dataclass(frozen=True, slots=True)
class Hidden:
    """Transactions whose compactions a reader does not see: those that had not ended well when it began, and all later ones.

    Args:
        high: greatest transaction id at that moment.
        unfinished: those that were open or aborted then.
    """

    high: int
    unfinished: frozenset[int] = frozenset()

    def __contains__(self, transaction: object) -> bool:
        """Whether what a compaction made is hidden (``ValidReadTxnList.isTxnValid``)."""
        return isinstance(transaction, int) and (transaction > self.high or transaction in self.unfinished)


def _bit(bits: bytes, number: int) -> bool:
    return number // 8 < len(bits) and bool(bits[number // 8] >> number % 8 & 1)


def _numbers(text: str) -> frozenset[int]:
    return frozenset(int(one) for one in text.split(",") if one)


def _text(numbers: Iterable[int]) -> str:
    return ",".join(map(str, sorted(numbers)))
