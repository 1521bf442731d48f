"""Removals of old data: prepared without the database's lock, and carried out under it if nothing uses the data by then."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Literal

from hive_replication.copy.proof import Crc32c
from hive_replication.errors import Refused, ReplicationError
from hive_replication.load.layout.live_locations import Locations
from hive_replication.load.layout.protected_moves import ProtectedMoves
from hive_replication.load.replica.state import ReplicaState
from hive_replication.storage import AlreadyExists, Denied, Storage, paths

What = Literal["old data", "retired", "journal", "staging", "temporary file", "dropped database", "dump", "report"]

_BATCH = 256  # files between two looks at the time for which the lock is held


@dataclass(frozen=True, slots=True)
class Swept:
    """Something that retention moved or deleted.

    Args:
        what: its kind.
        path: where it was.
        moved_to: where it is now, "" if it is deleted.
        size: bytes.
        problem: why it could not be moved or deleted, "" where it was.
    """

    what: What
    path: str
    moved_to: str
    size: int
    problem: str = ""


@dataclass(frozen=True, slots=True)
class InUse:
    """What is in use, read under the lock.

    Args:
        live: locations of tables and partitions.
        state: replication state of the database.
        planned: dumps of windows that wait for approval; None where they are not known, and any may be one.
    """

    live: Locations
    state: ReplicaState
    planned: frozenset[str] | None = frozenset()

    def is_free(self, path: str) -> bool:
        """Whether no location is at, above or below a path."""
        return not self.live.touches(path)

    def is_unplanned(self, dump: str) -> bool:
        """Whether no window waits with a dump."""
        return self.planned is not None and dump not in self.planned


@dataclass(frozen=True, slots=True)
class Removal:
    """A file or directory to move or delete.

    Args:
        swept: its report.
        is_due: whether it may still be removed; called under the lock, before each call of ``carry_out``.
        carry_out: removes it and returns its bytes; None as long as there is more to do, by further calls.
    """

    swept: Swept
    is_due: Callable[[InUse], bool]
    carry_out: Callable[[], int | None]


class Removals:
    """Prepares removals.

    Args:
        storage: the target's.
        expiry: staging directories with files younger than this are kept, seconds since the epoch.
    """

    def __init__(self, storage: Storage, expiry: float) -> None:
        self._storage, self._expiry, self._moves = storage, expiry, ProtectedMoves(storage)

    def move(self, what: What, path: str, retired: str, mark: str = "") -> Removal:
        """Moves a file or directory that no location points at.

        Args:
            what: its kind.
            path: where it is.
            retired: where it goes.
            mark: a file that says, while a part of it is where it was and a part is not, that this is so.
        """
        size = self._size(path)
        step = (
            None
            if self._storage.has_directories(path)
            else self._by_file(path, lambda uri: self._retire(uri, path, retired), to=retired)
        )

        def carry_out() -> int | None:
            if step:
                return size if self._marked(step, path, mark) else None
            try:
                self._moves.move(path, retired)
            except AlreadyExists:  # parts of it were retired before
                self._merge(path, retired)
            return size

        return Removal(
            Swept(what, path, retired, size), lambda in_use: in_use.is_free(path) and self._storage.exists(path), carry_out
        )

    def deletion(
        self, what: What, path: str, *, unused: bool = False, idle: bool = False, known: int | None = None, mark: str = ""
    ) -> Removal:
        """Deletes a file or directory.

        Args:
            what: its kind.
            path: where it is.
            unused: whether only while no location points at it.
            idle: whether only while nothing in it was written since the expiry, until a part of it is deleted.
            known: its bytes, where a listing told them already.
            mark: see :meth:`move`.
        """
        size, begun = self._size(path) if known is None else known, False

        def is_due(in_use: InUse) -> bool:
            return (not unused or in_use.is_free(path)) and (not idle or begun or self.is_idle(path))

        whole = known is not None or self._storage.has_directories(path)
        step = None if whole else self._by_file(path, self._storage.delete, mark)

        def carry_out() -> int | None:
            nonlocal begun
            begun = True
            if step and not self._marked(step, path, mark):
                return None
            self._storage.delete(path, recursive=True)
            return size

        return Removal(Swept(what, path, "", size), is_due, carry_out)

    @contextmanager
    def told(self, prepared: list[Removal], what: What, path: str) -> Generator[None]:
        """While removals in a directory are prepared: one that is closed to this account, or leads away, ends no sweep.

        Args:
            prepared: the removals; it is told with those that cannot be carried out.
            what: its kind.
            path: the directory.
        """
        try:
            yield
        except (Denied, Refused) as error:
            prepared.append(Removal(Swept(what, path, "", 0, str(error)), lambda _: True, partial(_raise, error)))

    def is_idle(self, directory: str) -> bool:
        """Whether nothing in a directory was written since the expiry; object stores know of files only when they were."""
        status = self._storage.status(directory)
        found = [*filter(None, [status]), *self._storage.files(directory, hidden=True)]
        return max((one.modified for one in found), default=self._expiry) < self._expiry

    def _marked(self, step: Callable[[], bool], path: str, mark: str) -> bool:
        """A step, while a mark names what it is of: others may look at it until the next one, or after a crash."""
        if mark:
            self._storage.write(mark, path.encode())
        done = step()
        if mark and done:
            self._storage.delete(mark)
        return done

    def _by_file(self, path: str, remove: Callable[[str], object], mark: str = "", to: str = "") -> Callable[[], bool]:
        """Removes the next files of a directory with each call, some at a time; whether all are removed.

        A move (``to``) lists it a second time, since others write there: what is left then is told, and known to later sweeps.
        """
        listed: list[deque[str]] = []

        def files() -> deque[str]:
            found = self._storage.files(path, hidden=True)
            return deque(file.uri for file in found if file.uri != mark)

        def step() -> bool:
            if not listed:
                listed.append(files())
            pending = listed[-1]
            batch = [pending.popleft() for _ in range(min(_BATCH, len(pending)))]
            deque(self._storage.threads.unordered(remove, filter(paths.is_usable, batch)), maxlen=0)
            if pending:
                return False
            if not (left := files()):
                self._storage.delete(path, recursive=True)  # objects that stand for directories
            elif to and len(listed) > 1:
                raise ReplicationError(
                    f"{left[0]} is not moved to {to}: if another file has its name there, compare and delete one"
                )
            elif to:
                listed.append(left)
                return False
            return True

        return step

    def _retire(self, file: str, path: str, retired: str) -> None:
        """Moves a file of a directory; one that was copied before, by a sweep that ended in between, is deleted."""
        place = retired + file[len(path) :]
        try:
            self._moves.move(file, place)
        except FileNotFoundError:
            return
        except AlreadyExists:
            if Crc32c.of(self._storage.stream(file)).hex == Crc32c.of(self._storage.stream(place)).hex:
                self._storage.delete(file)

    def _merge(self, directory: str, retired: str) -> None:
        """Moves what is not retired yet; what cannot be moved is left for the next sweep."""
        for child in self._storage.ls(directory):
            name = f"{retired}/{paths.name(child.uri)}"
            if not self._storage.exists(name):
                self._moves.move(child.uri, name)
            elif child.is_dir:
                self._merge(child.uri, name)
        if not self._storage.ls(directory):
            self._storage.delete(directory)

    def _size(self, path: str) -> int:
        """Bytes of a directory, as far as this account may tell; whether it may remove it shows when it does."""
        with suppress(Denied):
            return sum(file.size for file in self._storage.files(path, hidden=True))
        return 0


def _raise(error: ReplicationError) -> int:
    raise error
