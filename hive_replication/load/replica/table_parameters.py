"""Database parameters with one entry for each table, ``<prefix><table>``: to parameters and back (pure)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from hive_replication.load.replica.parameters import as_latin

#: Prefix of parameters that hold the table names that cannot be a part of a key.
_NAME = "hive_replication.name."
#: Characters of a parameter's key that a metastore keeps; the name of a table may have more.
_KEY_LIMIT = 180


def by_table(prefix: str, values: Mapping[str, str]) -> dict[str, str]:
    """Values of tables as parameters. A name that a key cannot hold is a parameter's value itself."""
    found: dict[str, str] = {}
    for name, value in values.items():
        key = name
        if len(prefix) + len(name) > _KEY_LIMIT or as_latin(name) != name:
            key = f"~{hashlib.sha256(name.encode()).hexdigest()[:32]}"
            found[_NAME + key] = as_latin(name.replace("\\", r"\\"))
        found[prefix + key] = value
    return found


def of_tables(prefix: str, found: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What :func:`by_table` wrote, by table."""
    keys = (key.removeprefix(prefix) for key in found if key.startswith(prefix))
    return ((_name(found, key), found[prefix + key] or "") for key in keys)


def _name(found: Mapping[str, str], key: str) -> str:
    text = found.get(_NAME + key, key)
    try:
        return as_latin(text).encode("latin-1").decode("unicode_escape") if text != key else key
    except ValueError:
        return text  # edited
