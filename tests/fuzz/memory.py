"""Storage and metastore of a target in memory, which note every attempt to change them. No servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from hive_replication.metastore.dialect import Features
from hive_replication.metastore.names import partition_name
from hive_replication.metastore.types import Database, Partition, Table, copy_of
from hive_replication.parallel import Call, Threads
from hive_replication.policy import Root
from hive_replication.storage import AlreadyExists, FileStatus, Storage


class Inline(Threads):
    """No threads: a call is made at once."""

    def __init__(self) -> None:
        super().__init__(1, "inline")

    def begin(self, do: Callable[..., Any], *arguments: object) -> Call[Any]:
        call = Call(lambda: do(*arguments))
        call.run()
        return call

    def map(self, do: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        return map(do, items)


class Blanks:
    """A gigabyte of blanks, of which only the pieces that are read are in memory."""

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, part: slice) -> bytes:
        return b" " * len(range(*part.indices(len(self))))


class MemoryStorage(Storage):
    """Files by URI.

    Args:
        root: URI of its only root.
        files: that it has.
        changes: where changes are noted; None where they are allowed.
    """

    def __init__(self, root: str, files: Mapping[str, Any] | None = None, changes: list[str] | None = None) -> None:
        super().__init__((Root(uri=root),))
        self.content, self.changes, self.threads = dict(files or {}), changes, Inline()

    def status(self, uri: str) -> FileStatus | None:
        uri = self.check(uri)
        if uri in self.content:
            return FileStatus(uri, len(self.content[uri]), False, 1.0)
        below = any(one.startswith(f"{uri.rstrip('/')}/") for one in self.content)
        return FileStatus(uri, 0, True, 1.0) if below else None

    def ls(self, uri: str) -> list[FileStatus]:
        prefix = f"{self.check(uri).rstrip('/')}/"
        names = {one[len(prefix) :].partition("/")[0] for one in self.content if one.startswith(prefix)}
        return [status for name in sorted(names) if (status := self.status(prefix + name)) is not None]

    def files(self, uri: str, *, hidden: bool = False) -> list[FileStatus]:
        prefix = f"{self.check(uri).rstrip('/')}/"
        return [FileStatus(one, len(data), False, 1.0) for one, data in sorted(self.content.items()) if one.startswith(prefix)]

    def stream(self, uri: str, size: int = 1 << 20) -> Iterator[bytes]:
        uri = self.check(uri)
        if uri not in self.content:
            raise FileNotFoundError(uri)
        data = self.content[uri]
        yield from (data[start : start + size] for start in range(0, len(data), size))

    def write(self, uri: str, data: bytes, *, overwrite: bool = True, **_: Any) -> None:
        uri = self.check(uri)
        self._note("write", uri)
        if not overwrite and uri in self.content:
            raise AlreadyExists(uri)
        self.content[uri] = data

    def write_once(self, uri: str, data: bytes) -> None:
        self.write(uri, data, overwrite=False)

    def create(self, uri: str, chunks: Iterable[bytes], **_: Any) -> int:
        self.write(uri, data := b"".join(chunks))
        return len(data)

    def rename(self, source: str, target: str) -> None:
        self._note("rename", source)
        for one in [one for one in self.content if one == source or one.startswith(f"{source}/")]:
            self.content[target + one[len(source) :]] = self.content.pop(one)

    def delete(self, uri: str, *, recursive: bool = False) -> bool:
        self._note("delete", uri)
        found = [one for one in self.content if one == uri or one.startswith(f"{uri}/")]
        for one in found:
            del self.content[one]
        return bool(found)

    def about_access(self, uri: str, call: Callable[[Any, str], Any]) -> None:
        """It has none."""

    def mkdirs(self, uri: str, mode: int | None = None) -> None:
        self._note("mkdirs", uri)

    def has_checksums(self, uri: str) -> bool:
        return False

    def _note(self, what: str, uri: str) -> None:
        if self.changes is not None:
            self.changes.append(f"{what} {uri}")


class MemoryMetastore:
    """One database with its tables; whatever else than reading is asked of it is noted.

    Args:
        database: the database, or None.
        tables: its tables.
        partitions: of them.
        changes: where changes are noted.
        settings: of the metastore.
    """

    uri = "thrift://memory:9083"

    def __init__(
        self,
        database: Database | None,
        tables: Iterable[Table],
        partitions: Iterable[Partition],
        changes: list[str],
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._database, self._changes, self._settings = database, changes, settings or {}
        self._tables = {table.tableName: table for table in tables}
        self._partitions = list(partitions)

    def database(self, name: str) -> Database | None:
        found = self._database
        return copy_of(found) if found is not None and found.name == name else None

    def table(self, database: str, name: str) -> Table | None:
        found = self._tables.get(name)
        return copy_of(found) if found is not None and self.database(database) else None

    def tables(self, database: str, names: Iterable[str]) -> Iterator[Table]:
        return (table for name in names if (table := self.table(database, name)) is not None)

    def databases(self) -> list[str]:
        return [self._database.name] if self._database else []

    def table_names(self, database: str, *_: object) -> list[str]:
        return sorted(self._tables) if self.database(database) else []

    def partition_names(self, database: str, table: str) -> list[str]:
        owner = self.table(database, table)
        keys = [key.name for key in (owner.partitionKeys if owner else None) or []]
        return [partition_name(keys, part.values) for part in self.partitions(database, table)]

    def partitions(self, database: str, table: str, names: Iterable[str] | None = None) -> Iterator[Partition]:
        owner = self.table(database, table)
        keys = [key.name for key in (owner.partitionKeys if owner else None) or []]
        wanted = None if names is None else set(names)
        for part in self._partitions:
            if part.tableName == table and (wanted is None or partition_name(keys, part.values) in wanted):
                yield copy_of(part)

    def functions(self, database: str) -> list[Any]:
        return []

    def at_once(self) -> MemoryMetastore:
        return self

    def config_value(self, name: str, default: str) -> str:
        return self._settings.get(name, default)

    def uuid(self) -> str:
        return "the target"

    @property
    def features(self) -> Features:
        return Features("4.2.0", "the target")

    def unfinished_transactions(self, *_: object) -> list[Any]:
        return []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Whatever else is called is a change, and noted."""
        if name.startswith(("_", "supports", "has_", "is_")):
            raise AttributeError(name)

        def called(*arguments: Any, **_: Any) -> Any:
            self._changes.append(f"{name}{arguments[:2]}")

        return called
