"""JSON from outside: its size, depth, the number of its values, and its numbers are checked before anything uses it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from itertools import accumulate
from typing import Annotated, Any, NoReturn

from pydantic import Field

MIB = 1 << 20
#: Fields of pydantic's models: times since the epoch and spans in seconds that a calendar has, and numbers of things and events.
Seconds = Annotated[float, Field(ge=0, lt=1e11, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, lt=2**63)]
#: Values of one text. A value takes up to 24 times the memory of its text (``[]``), so the size of a text alone is no limit.
MOST_VALUES = 1_000_000

#: Objects and lists in one another. Python itself refuses them near its recursion limit, where what it frees just then
#: fails as well.
_DEEPEST = 200

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)  # one without an end reaches to that of the text
_BRACKET = re.compile(r"[\[{\]}]")
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
    return value_of(require_bounded(data, most=most, values=values), parse_constant=_no_number, parse_float=_finite)


def require_bounded(data: bytes, *, most: int, values: int) -> str:
    """The text of JSON in UTF-8, for which :func:`parsed` allows this many bytes and values.

    Args:
        data: the text.
        most: bytes that it may have.
        values: values that it may have.

    Raises:
        ValueError: it has more, or is not UTF-8.
    """
    if len(data) > most:
        raise ValueError(f"it has {len(data):,} bytes, more than the {most:,} that are read")
    text = data.decode()
    _limit(text, values)
    return text


def value_of(
    text: str, *, parse_constant: Callable[[str], Any] | None = None, parse_float: Callable[[str], Any] | None = None
) -> Any:
    """Reads JSON text whose size is bounded already.

    Args:
        text: the JSON text.
        parse_constant: of ``json.loads``.
        parse_float: likewise.

    Raises:
        ValueError: it is not JSON, has half a character, or nests too deep.
    """
    require_shallow(text)
    value = json.loads(text, parse_constant=parse_constant, parse_float=parse_float)
    require_unicode(text, value)
    return value


def require_shallow(text: str) -> None:
    """Makes sure that JSON text can be read without coming near Python's recursion limit.

    Args:
        text: the JSON text.

    Raises:
        ValueError: it nests too deep.
    """
    if text.count("[") + text.count("{") <= _DEEPEST:
        return
    steps = (1 if bracket in "[{" else -1 for bracket in _BRACKET.findall(_STRING.sub("", text)))
    if any(depth > _DEEPEST for depth in accumulate(steps)):
        raise ValueError("it nests too deep")


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


def _limit(text: str, values: int) -> None:
    """Counts the values before they are made; commas and brackets in strings do not count, where they make a difference."""
    if _values(text) > values and _values(_STRING.sub("", text)) > values:
        raise ValueError(f"it has more than the {values:,} values that are read")


def _values(text: str) -> int:
    return sum(map(text.count, ",[{"))


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too great a number")
    return number
