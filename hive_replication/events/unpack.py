"""Messages as the log has them to JSON text, and JSON text to values; both bounded, since whoever writes a message is unknown."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any, cast

from hive_replication.bounded_json import value_of

#: Bytes that a message may have once it is unpacked, unless the policy says otherwise (``max_message_bytes``).
MOST_BYTES = 64 * 2**20
_PACKED = "H4sI"  # Base64 of the first three bytes of every gzip file
#: In place of a message that is too large: what none can be unpacked from.
UNREADABLE = _PACKED


def unpacked(text: str, most: int) -> str:
    """The text of a ``gzip(json-2.0)`` message, which is Base64 of its gzip.

    Args:
        text: as the log has it.
        most: bytes that it may unpack to; a megabyte of gzip can hold a gigabyte.

    Raises:
        ValueError: it is damaged, or larger.
    """
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        found = inflater.decompress(base64.b64decode(text), most + 1)
    except zlib.error as error:
        raise ValueError(f"damaged: {error}") from error
    if len(found) > most:
        raise ValueError(f"larger than {most} bytes")
    if not inflater.eof or inflater.unused_data:
        raise ValueError("cut off, or something follows its end")
    return found.decode()


def unpacked_size(text: str) -> int:
    """Bytes that a message has once it is unpacked: what a gzip says of itself is believed, up to 64 times its own size."""
    if not text.startswith(_PACKED):
        return len(text)
    try:
        return min(int.from_bytes(base64.b64decode(text[-8:])[-4:], "little"), 64 * len(text))
    except ValueError:
        return len(text)


def fields(text: str) -> Mapping[str, Any]:
    """The fields of a message.

    Raises:
        ValueError: it is no JSON object of valid Unicode text, nests too deep, or is still packed.
    """
    if text.startswith(_PACKED):
        raise ValueError(
            "it cannot be unpacked: it is damaged, or larger than max_message_bytes of the policy or than a dump takes"
        )
    value = value_of(text)
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - the text is at fault, not the caller
    return cast("Mapping[str, Any]", value)


def whole(value: Any) -> int:
    """A whole number of a message, which Hive writes as a number or as text.

    Raises:
        ValueError: it is none of 64 bits.
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"{value!r} is no whole number")  # noqa: TRY004 - the message is at fault, not the caller
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise ValueError("a number has more than 64 bits")
    return number


def text_of(value: Any) -> str:
    """A text of a message, "" where it has none.

    Raises:
        ValueError: it is something else.
    """
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{str(value)[:80]!r} is no text")
    return value or ""


def texts_of(value: Any) -> list[str]:
    """A list of texts of a message, empty where it has none.

    Raises:
        ValueError: it is something else.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"{str(value)[:80]!r} is no list")  # noqa: TRY004 - the message is at fault, not the caller
    return [text_of(one) for one in cast("list[object]", value)]
