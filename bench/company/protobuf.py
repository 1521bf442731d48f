"""As much of Protocol Buffers as Hadoop's RPC needs: fields that are numbers or bytes, by their numbers."""

from __future__ import annotations

from collections.abc import Iterable

_FIXED = {1: 8, 5: 4}  # bytes of a number by its wire type

#: Values of a message by field number; of a repeated field the last one.
Message = dict[int, int | bytes]


def varint(value: int) -> bytes:
    """A number in seven bits a byte."""
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and the position after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def encoded(fields: Iterable[tuple[int, int | bytes]]) -> bytes:
    """A message of fields, numbers as varints."""
    made = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            made += varint(number << 3) + varint(value)
        else:
            made += varint(number << 3 | 2) + varint(len(value)) + value
    return bytes(made)


def decoded(data: bytes) -> Message:
    """The fields of a message.

    Raises:
        ValueError: a field of a kind that Hadoop's RPC does not use.
    """
    found: Message = {}
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            found[key >> 3], at = read_varint(data, at)
        elif key & 7 == 2:
            length, at = read_varint(data, at)
            found[key >> 3] = data[at : at + length]
            at += length
        elif key & 7 in _FIXED:
            length = _FIXED[key & 7]
            found[key >> 3] = int.from_bytes(data[at : at + length], "little", signed=True)
            at += length
        else:
            raise ValueError(f"a field of wire type {key & 7}")
    return found


def delimited(message: bytes) -> bytes:
    """A message after its length."""
    return varint(len(message)) + message


def read_delimited(data: bytes, at: int) -> tuple[bytes, int]:
    """A message after its length, and the position after it."""
    length, at = read_varint(data, at)
    return data[at : at + length], at + length


def signed(value: int) -> int:
    """A ``sint32`` from its varint (zigzag)."""
    return value >> 1 ^ -(value & 1)


def zigzag(value: int) -> int:
    """The varint of a signed number, the inverse of :func:`signed`."""
    return value << 1 if value >= 0 else -value * 2 - 1
