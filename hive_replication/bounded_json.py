"""JSON from outside: its size, the number of its values, and its numbers are checked before anything uses it."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

MIB = 1 << 20
#: Values of one text. A value takes up to 24 times the memory of its text (``[]``), so the size of a text alone is no limit.
MOST_VALUES = 1_000_000

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89abAB]|\\u[dD][c-fC-F]")


def parsed(data: bytes, *, most: int = 16 * MIB, values: int = MOST_VALUES) -> Any:
    """Reads JSON in UTF-8.

    Args:
        data: the text.
        most: bytes that it may have.
        values: values that it may have.

    Raises:
        ValueError: it is not JSON, has a number that is none (``NaN``, ``1e999``) or half a character, nests too deep, or is
            larger than allowed.
    """
    if len(data) > most:
        raise ValueError(f"it has {len(data):,} bytes, more than the {most:,} that are read")
    _limit(data, values)
    try:
        value = json.loads(data.decode(), parse_constant=_no_number, parse_float=_finite)
        if _SURROGATE.search(data):
            json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair is no character, and cannot be written
    except RecursionError:
        raise ValueError("it nests too deep") from None
    return value


def _limit(data: bytes, values: int) -> None:
    """Counts the values before they are made; commas and brackets in strings do not count, where they make a difference."""
    if _values(data) > values and _values(_STRING.sub(b"", data)) > values:
        raise ValueError(f"it has more than the {values:,} values that are read")


def _values(data: bytes) -> int:
    return sum(map(data.count, (b",", b"[", b"{")))


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too great a number")
    return number
