"""A dump directory is untrusted input: nothing in it may lead outside the policy's storage roots, or to odd names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hive_replication.errors import Refused
from hive_replication.events.files import FileRef
from hive_replication.load.target import Target
from hive_replication.storage import paths

_NAME = re.compile(r"[A-Za-z0-9_]+")


def screen_files(target: Target, files: Iterable[FileRef], what: str) -> None:
    """Checks the paths of files.

    Raises:
        Refused: one leads outside the source's roots, or its subdirectory out of the replica's directory.
    """
    for file in files:
        for uri in filter(None, (file.uri, file.cm_root)):
            _check(target, uri, what)
        if any(part in ("", ".", "..") for part in file.relative.split("/")):
            raise Refused(
                f"the dump names the file {file.relative!r} for {what}, which would lead out of its directory: dump again"
            )


def screen_name(name: str, what: str) -> None:
    """Checks a database's or table's name.

    Raises:
        Refused: it is none of Hive's.
    """
    if not _NAME.fullmatch(name):
        raise Refused(f"the dump has the name {name!r} for {what}, which is none of Hive's: dump again")


def screen_location(location: str | None, what: str) -> None:
    """Checks the location of a table or partition, from which its place on the target follows.

    Raises:
        Refused: it has segments such as ``..``, with which that place could lie outside the target database's directory.
    """
    try:
        paths.split(location or "file:///")
    except Refused as error:
        raise Refused(f"the dump names a location for {what} that may lead anywhere: {error}") from error


def screen_partition(name: str) -> None:
    """Checks a partition's name, which becomes a path.

    Raises:
        Refused: it would lead out of its table's directory.
    """
    if any("=" not in part for part in name.split("/")):
        raise Refused(f"the dump has the partition name {name!r}, which is none of Hive's: dump again")


def _check(target: Target, uri: str, what: str) -> None:
    try:
        target.source_storage.check(uri)
    except Refused as error:
        raise Refused(f"the dump names {uri} for {what}, which lies outside the source's storage roots: {error}") from error
