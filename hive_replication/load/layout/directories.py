"""Names of the directories that replication keeps in the directory of a target database, and beside it for dropped databases."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from dataclasses import dataclass

from hive_replication.storage import paths
from hive_replication.storage.boundary import LOAD_ID, RESERVED, STAGED

#: Directory of a database that no reader looks into.
HIDDEN = RESERVED
#: Prefix of directories with data of transactional tables; no table name can begin with it.
_OPEN = "repl-"
_STAGED_BASE = f"{HIDDEN}-base_"
_STAGED = re.compile(STAGED)
_TOKEN = re.compile(LOAD_ID)
_DROPPED = re.compile(r"-(?P<evid>\d+)-(?:[0-9a-f]{8}|(?P<token>" + LOAD_ID + "))")
_OF_DROPPED = re.compile(".+" + _DROPPED.pattern)
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.(tmp|new)")


@dataclass(frozen=True, slots=True)
class DroppedDatabase:
    """What the directory name of a dropped database says.

    Args:
        evid: event id of the drop.
        since: when it was retired, seconds since the epoch; None if an earlier version retired it, which did not record the time.
    """

    evid: int
    since: float | None


class Layout:
    """The directories of one target database.

    Args:
        location: the database's directory.
    """

    def __init__(self, location: str) -> None:
        self.location = location.rstrip("/")
        self._root = f"{self.location}/{HIDDEN}"

    @property
    def journal(self) -> str:
        """The journal: what each load was about to change."""
        return f"{self._root}/journal"

    @property
    def listing(self) -> str:
        """Listings of the source's directories from when their replicas were last known to be equal."""
        return f"{self._root}/listing"

    @property
    def rates(self) -> str:
        """The file that says how fast the last load was."""
        return f"{self._root}/rates.json"

    @property
    def privileges(self) -> str:
        """The file that says when all grants were compared."""
        return f"{self._root}/privileges.json"

    @property
    def functions(self) -> str:
        """Resources of functions, unless the policy names a directory for them."""
        return f"{self._root}/functions"

    @property
    def external(self) -> str:
        """Paths of the source outside its database's directory, unless the policy names a directory for them."""
        return f"{self._root}/external"

    @property
    def staging_roots(self) -> tuple[str, str]:
        """The directories that hold staging directories; see :func:`is_staging`."""
        return self._root, self.location

    @property
    def retired_root(self) -> str:
        """Old data that no location points at, by the load that replaced or dropped it."""
        return f"{self._root}/retired"

    @property
    def dropped_databases(self) -> str:
        """Where dropped databases' directories go: beside the database's own directory."""
        return f"{paths.parent(self.location).rstrip('/')}/{HIDDEN}/retired"

    def staging(self, name: str, partition: str = "") -> str:
        """A staging directory.

        Args:
            name: of :func:`staging_name`.
            partition: name of a partition, "" for a table.
        """
        root = self.location if name.startswith(_OPEN) else self._root
        return "/".join(filter(None, (root, name, partition)))

    def holds(self, uri: str) -> bool:
        """Whether a directory or file lies below the database's directory, as both are spelled."""
        return paths.is_under(uri, f"{self.location}/")

    def retired(self, token: str, directory: str) -> str:
        """The place of an old directory or file.

        Args:
            token: of the load that replaced or dropped it.
            directory: below the database's directory.
        """
        if not self.holds(directory):  # what is cut off of another path can be the place of other tables' data
            raise AssertionError(f"{directory} does not lie in {self.location}")
        return f"{self.retired_root}/{token}/{directory[len(self.location) + 1 :].removeprefix(f'{HIDDEN}/')}"

    def half_retired(self, token: str, directory: str = "") -> str:
        """What the names of files begin with that name directories of which only a part is moved or deleted yet; that of one."""
        mark = hashlib.sha256(directory.encode()).hexdigest()[:16] if directory else ""
        return f"{self.retired_root}/{token}/.unfinished-{mark}"

    def retired_from_outside(self, token: str, file: str) -> str:
        """The place of an old file from outside the database's directory; nothing else is retired for that token."""
        return f"{self.retired_root}/{token}/external{paths.split(file)[2]}"

    def dropped_database(self, evid: int) -> str:
        """A new name for the directory of this database after its drop; it says when it was retired."""
        return f"{self.dropped_databases}/{paths.name(self.location)}-{evid}-{new_token()}"

    def dropped(self, directory: str) -> DroppedDatabase | None:
        """What the name of a directory says; None if it is not a directory of this database from before a drop."""
        name, own = paths.name(directory), paths.name(self.location)
        found = _DROPPED.fullmatch(name.removeprefix(own)) if name.startswith(own) else None
        if found is None:
            return None
        return DroppedDatabase(int(found["evid"]), token_time(found["token"]) if found["token"] else None)


def is_dropped_database(name: str) -> bool:
    """Whether a name is one of :meth:`Layout.dropped_database`, of whatever database, which keeps it by its own policy's times.

    Those in the warehouse lie where the old data of ``default`` does, whose directory it is.
    """
    return bool(_OF_DROPPED.fullmatch(name))


def staging_name(evid: int, number: int, *, transactional: bool) -> str:
    """Name of a directory for data that cannot take Hive's plain path: ``<evid>-<n>`` below ``.repl``.

    Of a transactional table Hive reads nothing below a hidden directory (``HIDDEN_FILES_FULL_PATH_FILTER``): of such a table it
    is ``repl-<evid>-<n>``, beside the tables.
    """
    return f"{_OPEN if transactional else ''}{evid}-{number}"


def staged_base(name: str) -> str:
    """Under which name a base of a transactional table lies beside its place, which no reader looks at (``base_0000005``)."""
    return f"{HIDDEN}-{name}"


def as_committed(path: str) -> str:
    """A path with the names that staged bases get in it."""
    return path.replace(f"/{_STAGED_BASE}", "/base_")


def owner_mark(external_root: str, directory: str) -> str:
    """The file that says which database a directory below ``external_root`` was given to, where several have one root.

    Args:
        external_root: of the policy.
        directory: of a table, or that above partitions with places of their own.
    """
    name = hashlib.sha256(directory.encode()).hexdigest()[:32]
    return f"{external_root.rstrip('/')}/{HIDDEN}/owners/{name}"


def is_staging(directory: str) -> bool:
    """Whether a directory is a staging directory of a table (:meth:`Layout.staging`)."""
    name = paths.name(directory)
    hidden = paths.name(paths.parent(directory)) == HIDDEN
    return bool(_STAGED.fullmatch(name.removeprefix(_OPEN))) and name.startswith(_OPEN) != hidden


def may_be_staged(directory: str) -> bool:
    """Whether a directory, however it is spelled, may be a staging directory or lie in one."""
    return any(f"/{name}" in directory for name in (HIDDEN, _OPEN))


def is_temporary(path: str) -> bool:
    """Whether a file has the temporary name under which files are written."""
    return paths.is_usable(path) and bool(_TEMPORARY.fullmatch(paths.name(path)))


def new_token(after: str = "") -> str:
    """A unique name that sorts by time: milliseconds since the epoch and a random part.

    Args:
        after: a token that it sorts after, though the clock of the host that made that one may be ahead of this host's.
    """
    least = int(after[:13]) + 1 if after else 0
    return f"{max(time.time_ns() // 1_000_000, least):013d}{secrets.token_hex(4)}"


def is_token(name: str) -> bool:
    """Whether a name is one of :func:`new_token`."""
    return bool(_TOKEN.fullmatch(name))


def token_time(token: str) -> float:
    """When a token was made, seconds since the epoch."""
    return int(token[:13]) / 1000
