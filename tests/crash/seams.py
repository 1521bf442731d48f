"""The places where a process of replication can be killed or loses its metastore, taken from what it does.

All effects go through few seams: calls of a metastore, what storage is asked to write, rename, make and delete, and the copy of a
file. :meth:`Trap.arm` wraps them **in the child process that calls it**, and gives each effect a name with its moment::

    target.metastore.alter_partitions:before      killed before the call is sent
    target.metastore.alter_partitions:after       killed after the answer
    target.metastore.alter_partitions:cut         the connection is closed under the call before it is sent
    target.metastore.alter_partitions:unanswered  the connection is closed after the server has done it, before its answer is read
    target.metastore.alter_partitions:forgotten   the server answers well, and has rolled it back
    target.storage.create[copy]:during            killed with a part of the file written
    target.storage.rename[copy>staged]:before     killed with the file written and proven, not named yet
    dump.storage.create[ack]:before

What is not in a run has no name: new effects are covered by themselves.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thrift.transport.TTransport import TTransportException

from hive_replication.copy import copy_file, thread_copier
from hive_replication.copy.tasks import CopyFailure, CopyResult, CopyTask
from hive_replication.metastore.connection import Connections
from hive_replication.policy import Policy
from hive_replication.storage import Storage, paths
from hive_replication.storage.hdfs_access import HdfsAccess

_READS = ("get_", "show_", "heartbeat")
#: Changes whose answer a metastore may give although its database has taken them back.
_FORGOTTEN = tuple(
    f"{verb}_{thing}"
    for verb, things in {
        "create": ("database", "table", "function"),
        "alter": ("database", "table", "partitions"),
        "drop": ("database", "table", "partitions", "function"),
        "add": ("partitions",),
        "rename": ("partition",),
    }.items()
    for thing in things
)


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """A moment of a run: the ``nth`` time that an effect is at the moment that the name says."""

    key: str
    nth: int

    def __str__(self) -> str:
        return f"{self.key} #{self.nth}"


def points_of(counts: dict[str, int]) -> list[Point]:
    """Points that stand for a run: of each effect and moment the first, the middle and the last; of reads the first."""
    found: set[Point] = set()
    for key, number in counts.items():
        reads = key.split(".metastore.")[-1].startswith(_READS)
        found |= {Point(key, nth) for nth in ((1,) if reads else (1, (number + 1) // 2, number))}
    return sorted(found)


@dataclass
class Trap:
    """Counts the moments of this process, and strikes at one of them.

    Args:
        policy: tells source, target and dumps apart.
        point: where to strike; None to count only.
        log: file to which each named (so proven) replica is appended, a JSON list a line.
    """

    policy: Policy
    point: Point | None
    log: Path
    counts: Counter[str] = field(default_factory=Counter[str])
    fired: bool = False

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._task = threading.local()

    def arm(self) -> None:
        """Wraps the seams of this process."""
        attempt = Connections._attempt
        Connections._attempt = lambda owner, what, do, repeatable: self._call(attempt, owner, what, do, repeatable)
        create, write, rename, delete, mkdirs = (
            Storage.create,
            Storage.write,
            Storage.rename,
            Storage.delete,
            Storage.mkdirs,
        )
        Storage.create = lambda owner, uri, chunks, **options: self._create(create, owner, uri, chunks, options)
        Storage.write = lambda owner, uri, data, **options: self._write(create, write, owner, uri, data, options)
        Storage.rename = lambda owner, old, new: self._rename(rename, owner, old, new)
        Storage.delete = lambda owner, uri, **options: self._effect(
            f"{self._side(uri)}.storage.delete[{kind(uri)}]", lambda: delete(owner, uri, **options)
        )
        Storage.mkdirs = lambda owner, uri, mode=None: self._effect(
            f"{self._side(uri)}.storage.mkdirs[{kind(uri)}]", lambda: mkdirs(owner, uri, mode)
        )
        for name in ("set_mode", "set_owner", "set_acl"):
            self._arm_access(name, getattr(HdfsAccess, name))
        copy = copy_file.copy_file
        thread_copier.copy_file = lambda task, *args, **options: self._copy(copy, task, args, options)

    def _arm_access(self, name: str, change: Callable[..., None]) -> None:
        def struck(owner: HdfsAccess, path: str, *args: Any, **options: Any) -> None:
            self._effect(f"target.storage.{name}", lambda: change(owner, path, *args, **options))

        setattr(HdfsAccess, name, struck)

    def strikes(self, key: str) -> bool:
        """Counts a moment; returns whether the process is struck there."""
        with self._lock:
            self.counts[key] += 1
            here = self.point is not None and self.point.key == key and self.point.nth == self.counts[key]
        self.fired = self.fired or here
        return here

    def kill_at(self, key: str) -> None:
        """Ends the process if it is to end here."""
        if self.strikes(key):
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)  # the signal comes between two instructions

    def _effect(self, key: str, do: Callable[[], Any]) -> Any:
        self.kill_at(f"{key}:before")
        result = do()
        self.kill_at(f"{key}:after")
        return result

    def _call(
        self, attempt: Callable[..., Any], owner: Connections, what: str, do: Callable[[Any], Any], repeatable: bool
    ) -> Any:
        verb = what.split()[0]
        key = f"{'target' if owner.uri == self.policy.target.metastore else 'source'}.metastore.{verb}"
        if verb == "heartbeat":
            return attempt(owner, what, do, repeatable)

        def cut(client: Any) -> Any:
            wire = client._iprot.trans._TBufferedTransport__trans
            if self.strikes(f"{key}:cut"):
                wire.handle.shutdown(socket.SHUT_RDWR)
            if self.strikes(f"{key}:unanswered"):
                read = wire.read

                def lost(size: int) -> bytes:
                    read(size)  # the server has done it
                    wire.close()
                    raise TTransportException(TTransportException.END_OF_FILE, "cut by a test")

                wire.read = lost
            return do(client)

        def sent() -> Any:
            if verb in _FORGOTTEN and self.strikes(f"{key}:forgotten"):
                return None
            return attempt(owner, what, cut, repeatable)

        return sent() if verb.startswith(_READS) else self._effect(key, sent)

    def _create(self, create: Callable[..., int], owner: Storage, uri: str, chunks: Iterable[bytes], options: Any) -> int:
        key = f"{self._side(uri)}.storage.create[{kind(uri)}]"

        def passing() -> Iterator[bytes]:
            for number, chunk in enumerate(chunks):
                yield chunk
                if number == 0:
                    self.kill_at(f"{key}:during")

        return self._effect(key, lambda: create(owner, uri, passing(), **options))

    def _write(
        self, create: Callable[..., int], write: Callable[..., None], owner: Storage, uri: str, data: bytes, options: Any
    ) -> None:
        key = f"{self._side(uri)}.storage.create[{kind(uri)}]"

        def written() -> None:
            if self.strikes(f"{key}:during"):
                create(owner, uri, [data[: len(data) // 2]], **options)
                os.kill(os.getpid(), signal.SIGKILL)
            write(owner, uri, data, **options)

        self._effect(key, written)

    def _rename(self, rename: Callable[..., None], owner: Storage, old: str, new: str) -> None:
        def named() -> None:
            rename(owner, old, new)
            task: CopyTask | None = getattr(self._task, "now", None)
            if task is not None and new == task.target:
                self._append([task.object_name, task.file.uri, task.evid])

        self._effect(f"{self._side(new)}.storage.rename[{kind(old)}>{kind(new)}]", named)

    def _copy(
        self, copy: Callable[..., CopyResult | CopyFailure], task: CopyTask, args: tuple[Any, ...], options: dict[str, Any]
    ) -> CopyResult | CopyFailure:
        self._task.now = task
        answer: CopyResult | CopyFailure = self._effect("copy.file", lambda: copy(task, *args, **options))
        self._task.now = None
        return answer

    def _append(self, fields: list[object]) -> None:
        line = (json.dumps(fields) + "\n").encode()
        number = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(number, line)
        os.close(number)

    def _side(self, uri: str) -> str:
        if uri.startswith(self.policy.dump_root):
            return "dump"
        return "source" if uri.startswith(tuple(root.uri for root in self.policy.source.roots)) else "target"


def kind(uri: str) -> str:
    """The kind of a path, by its name and place."""
    name = paths.name(uri)
    if name.startswith(".") and name.endswith(".new"):
        name = name[1:-4].rpartition(".")[0]
    known = {"_finished_dump": "ack", "_dumpmetadata": "header", "_metadata": "record", "_files": "record"}
    if name in known:
        return known[name]
    if name.startswith(".") and name.endswith(".tmp"):
        return "copy"
    _, hidden, rest = uri.partition("/.repl/")
    if not hidden:
        return "plain"
    first = rest.split("/")[0]
    return "staged" if first[:1].isdigit() else first
