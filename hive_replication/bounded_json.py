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
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


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
        text = data.decode()
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite)
        require_unicode(text, value)
    except RecursionError:
        raise ValueError("it nests too deep") from None
    return value


def require_unicode(text: str, value: object) -> None:
    """Makes sure that the strings of JSON text can be written: JSON can escape half of a surrogate pair, UTF-8 cannot hold it.

    Args:
        text: the JSON text.
        value: what it was read to.

    Raises:
        ValueError: one of its strings is no Unicode text.
    """
    if _SURROGATE.search(text):
        json.dumps(value, ensure_ascii=False).encode()  # raises UnicodeEncodeError, a ValueError


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
