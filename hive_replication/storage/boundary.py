"""Which directories of a side may be read or written (pure).

Storage roots say which stores there are; a boundary says which directories on them belong to one database. The ``.repl``
directory of a database is replication's own: no object of the source lies there, and nothing of the source is mapped into it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from hive_replication.errors import Refused
from hive_replication.storage import paths

#: Name of the directory in which replication keeps its own files.
RESERVED = ".repl"
#: Names of the directories below it that loads stage data in (``load/layout/directories.py`` gives them).
STAGED = r"\d+-\d+(-\d+)?"
#: Names that loads are told apart by (``load/layout/directories.py`` makes them): milliseconds since the epoch and a random part.
LOAD_ID = r"\d{13}[0-9a-f]{8}"
# What Hive takes for a path of its default file system; "file:" has no stores.
_NO_STORE = re.compile(r"((?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(//)?(?=/(?!/)))?(?P<path>/.*)", re.DOTALL)
# Where replicas keep data below it: a replica may itself be the source of another one. An undo points at what loads retired.
_REPLICA_DATA = re.compile(rf"\.repl/(({STAGED}|external|functions)(/.*)?|retired/{LOAD_ID}/.+)")


def is_reserved(path: str) -> bool:
    """Whether a URI or path has a segment that is replication's own."""
    return RESERVED in path.split("/")


def is_archive(uri: str) -> bool:
    """Whether a URI leads into an archive of Hadoop, as those of partitions do after ALTER TABLE .. ARCHIVE PARTITION."""
    return uri.lower().startswith("har:")


def qualified(directory: str, beside: str) -> str:
    """A path as a full URI: without a scheme, or with that of ``beside`` and no store (``hdfs:///x``), it lies on that store."""
    found = _NO_STORE.fullmatch(directory)
    if found is None or not beside:
        return directory
    scheme, authority, _ = paths.split(beside)
    if found["scheme"] and (found["scheme"].lower() != scheme or not authority):
        return directory
    return f"{scheme}://{authority}{found['path']}"


@dataclass(frozen=True)
class Boundary:
    """The directories of one database.

    Args:
        setting: setting of the policy that allows further ones.
        allowed: URIs of directories.
        further: more of them, asked for only where the first ones do not suffice.
        shared: those of ``allowed`` and ``further`` that also hold directories ``<name>.db`` of other databases.
        replica: directory of a database that is itself a replica, "" of any other: its data may lie below ``.repl``.
        everywhere: whether no directory is allowed in particular; ``.repl`` is reserved all the same.
    """

    setting: str
    allowed: tuple[str, ...]
    further: Callable[[], tuple[str, ...]] = tuple
    shared: tuple[str, ...] = ()
    replica: str = ""
    everywhere: bool = False

    def __reduce__(self) -> tuple[type[Boundary], tuple[object, ...]]:
        """With the further directories: who gets it elsewhere, as Spark executors do, cannot ask for them."""
        return type(self), (self.setting, (*self.allowed, *self.further()), tuple, self.shared, self.replica, self.everywhere)

    def why_outside(self, uri: str) -> str:
        """Why a file or directory may not be used, or "" where it may."""
        try:
            plain = comparable(uri)
        except Refused as error:
            return f"it lies at a path that may lead anywhere: {error}"
        if is_reserved(plain) and not self._is_replicas_data(plain):
            return (
                f"{uri} lies in a directory {RESERVED}, which is replication's own on every side: no data is read from it or "
                "written to it; move the object to another directory"
            )
        if self.everywhere or self._any(self.allowed, plain) or self._any(self.further(), plain):
            return ""
        if is_archive(plain):
            return (
                f"{uri} is an archive of Hadoop: archived partitions are not replicated; UNARCHIVE the partition at the source, "
                "then repair it"
            )
        return (
            f"{uri} lies outside the directories that the policy allows for its database; if it is to be replicated, add its "
            f"directory to {self.setting} of the policy"
        )

    def holds(self, uri: str) -> bool:
        """Whether a file or directory may be used."""
        return not self.why_outside(uri)

    def _is_replicas_data(self, plain: str) -> bool:
        if not self.replica:
            return False
        below = plain.removeprefix(comparable(self.replica) + "/")
        return bool(_REPLICA_DATA.fullmatch(below)) and not is_reserved(below.partition("/")[2])

    def _any(self, directories: tuple[str, ...], plain: str) -> bool:
        return any(self._under(plain, directory) for directory in directories)

    def _under(self, plain: str, directory: str) -> bool:
        root = comparable(directory)
        if not paths.is_under(plain, root):
            return False
        first = plain[len(root) :].lstrip("/").partition("/")[0]
        return not (directory in self.shared and first.endswith(".db"))


#: Lets everything pass but what is reserved: of loads and dumps that replicate no data.
EVERYWHERE = Boundary("", (), everywhere=True)


def comparable(uri: str) -> str:
    """The spelling of a URI that is compared: stores are the same whatever the case of their names.

    Raises:
        Refused: it is no full URI, or may lead anywhere.
    """
    scheme, authority, path = paths.split(uri)
    return f"{scheme}://{authority.lower()}{path}"
