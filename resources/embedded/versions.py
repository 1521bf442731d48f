"""The versions of Hive that an embedded metastore may have: how its side is named, what it runs with, how its tables are made."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hive_replication.errors import BadRequest
from resources.embedded import java
from resources.embedded.jars import Group
from resources.embedded.patches import HIVE2, HIVE3, HIVE40, patched

_SIDE = re.compile(r"(?P<hdfs>[a-z]+)(?:-[a-z]+)?(?P<version>\d*)")


@dataclass(frozen=True, slots=True)
class Version:
    """A version of Hive.

    Args:
        number: e.g. ``4.2.0``.
        groups: of the lock file; the first has the schema scripts.
        schema: the scripts that make its tables, in order.
        complete: whether these are all of its tables; else the metastore adds what is missing at its start.
    """

    number: str
    groups: tuple[str, ...]
    schema: tuple[str, ...]
    complete: bool = True

    @property
    def major(self) -> int:
        """Major version of Hive."""
        return int(self.number.partition(".")[0])


_TO_2_3 = ("1.2.0-to-2.0.0", "2.0.0-to-2.1.0", "2.1.0-to-2.2.0", "2.2.0-to-2.3.0")
_OF_4_0 = ("hive-schema-4.0.0",)  # no later script is published
#: By what a side's name ends with.
VERSIONS: Mapping[str, Version] = {
    "2": Version("2.3.10", ("hms2",), ("hive-schema-1.2.0", *(f"upgrade-{step}" for step in _TO_2_3))),
    "": Version("3.1.3", ("hms3",), ("hive-schema-3.1.0",)),
    "40": Version("4.0.1", ("hive4", "hms40"), _OF_4_0),
    "41": Version("4.1.0", ("hive4", "hms41"), _OF_4_0, complete=False),
    "4": Version("4.2.0", ("hive4",), _OF_4_0, complete=False),
}


@dataclass(frozen=True, slots=True)
class Software:
    """What a metastore runs with.

    Args:
        version: of Hive.
        java: the ``java`` program.
        jars: class path of the metastore.
        schema: the scripts of Hive's schema tool for PostgreSQL, in order.
    """

    version: Version
    java: Path
    jars: tuple[Path, ...]
    schema: tuple[Path, ...]


def parsed(name: str) -> tuple[str, Version]:
    """The HDFS of a side, and the version of its metastore.

    Raises:
        BadRequest: it is no name of a side.
    """
    found = _SIDE.fullmatch(name)
    version = VERSIONS.get(found["version"]) if found else None
    if not found or not version:
        known = ", ".join(f"source{end} ({one.number})" for end, one in VERSIONS.items())
        raise BadRequest(f"{name!r} is not the name of a side, such as {known}, or target with such an end")
    return found["hdfs"], version


def software(version: Version, groups: Mapping[str, Group]) -> Software:
    """Puts the class paths together.

    Args:
        version: of Hive.
        groups: ``hadoop``, and those of the version.
    """
    first, *more = (groups[name] for name in version.groups)
    if first.distribution is None:
        raise ValueError("the first group of a version has a distribution with its schema scripts")
    scripts = first.distribution / "scripts" / "metastore" / "upgrade" / "postgres"
    schema = tuple(scripts / f"{name}.postgres.sql" for name in version.schema)
    lib, hadoop = sorted((first.distribution / "lib").glob("*.jar")), groups["hadoop"]
    client = hadoop.without("slf4j-simple", "hadoop-client-minicluster")
    match version.number:
        case "4.2.0" | "4.1.0":
            http = [path for path in lib if path.name.startswith("pac4j-core-")]  # needed where it speaks over HTTP
            own = [jar for group in more for jar in group.jars]
            others = first.without("hive-") if more else first.jars
            return Software(version, java.newer_java(), (*hadoop.without("slf4j"), *own, *others, *http), schema)
        case "4.0.1":
            shipped = [path for path in lib if not path.name.startswith(("derby-", "postgresql-"))]
            own = more[0].without("hive-exec")
            # What a Hadoop installation would bring; and last, for its many copies of other libraries' classes, the driver.
            others = first.without("hive-", "datanucleus-", "javax.jdo", "log4j-", "slf4j-")
            path = (*own, *shipped, *hadoop.without("slf4j-simple"), *others, *_only(more[0], "hive-exec"))
            return Software(version, java.newer_java(), (patched(path, HIVE40), *path), schema)
        case "3.1.3":
            shipped = [path for path in lib if not path.name.startswith("derby")]
            path = (*shipped, *first.without("hive-exec"), *client, *_only(first, "hive-exec"))
            return Software(version, java.java(), (patched(path, HIVE3), *path), schema)
        case _:
            shipped = [path for path in lib if not path.name.startswith(("derby-", "hive-", "orc-", "guava-", "libthrift-"))]
            path = (*first.jars, *shipped, *client)
            return Software(version, java.java(), (patched(path, HIVE2), *path), schema)


def _only(group: Group, prefix: str) -> list[Path]:
    """Jars whose names begin so; partition expressions of Hive clients need the driver's."""
    return [path for path in group.jars if path.name.startswith(prefix)]
