"""Hive's partition names, such as ``ds=2024-01-01/country=de``, from values and back."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hive_replication.policy.partition_conditions import DEFAULT_PARTITION

# Every character that Hive's FileUtils.escapePathName of 3.1.3 and 4.2.0 changes; it is the same set in both.
_ESCAPED = {ord(c): f"%{ord(c):02X}" for c in [*map(chr, range(0x20)), *"\"#%'*/:=?\\\x7f{[]^"]}
_HEX = re.compile("%([0-9A-Fa-f]{2})")


def escape(text: str) -> str:
    """A key or a value as a part of a path (Hive's ``FileUtils.escapePathName``); "" is Hive's default partition."""
    return text.translate(_ESCAPED) or DEFAULT_PARTITION


def table_directory(name: str) -> str:
    """The directory of a table below its database's, as Hive's ``MetaStoreUtils.encodeTableName`` writes it.

    Names may hold characters that mean something in paths: ``a/b`` (Hive 3), ``a.b``, ``x y``, ``..`` (Hive 4).
    """
    return "".join(one if one.isalnum() or one == "_" else f"-{ord(one)}-" for one in name.lower())


def unescape(text: str) -> str:
    """The inverse of :func:`escape`; a ``%`` without two hex digits behind it stays (Hive's ``FileUtils.unescapePathName``)."""
    return _HEX.sub(lambda match: chr(int(match[1], 16)), text)


def partition_name(keys: Sequence[str], values: Sequence[str]) -> str:
    """A partition's name, as Hive's ``Warehouse.makePartName`` writes it: keys in lower case, both sides escaped.

    Args:
        keys: names of the table's partition columns, in order.
        values: the partition's values, in the same order.

    Raises:
        ValueError: there are not as many values as keys.
    """
    return "/".join(f"{escape(key.lower())}={escape(value)}" for key, value in zip(keys, values, strict=True))


def partition_spec(name: str) -> dict[str, str]:
    """The values in a partition's name by column, the keys in lower case.

    Raises:
        ValueError: see :func:`partition_values`.
    """
    keys = (unescape(part.partition("=")[0]).lower() for part in name.split("/"))
    return dict(zip(keys, partition_values(name), strict=True))


def partition_values(name: str) -> tuple[str, ...]:
    """The values in a partition's name. The default partition keeps its name as its value, as in Hive.

    Raises:
        ValueError: a part of the name is not ``key=value``.
    """
    parts = [part.partition("=") for part in name.split("/")]
    if not all(key and equals and value for key, equals, value in parts):
        raise ValueError(f"{name!r} is not a partition name such as ds=2024-01-01/country=de")
    return tuple(unescape(value) for _, _, value in parts)
