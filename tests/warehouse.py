"""What tests do to a source warehouse through real Hive 3.1.3, and how they compare it with its replica."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Self

from hive_replication.connect import Connection
from hive_replication.copy.tasks import Copier
from hive_replication.dump.command import repl_dump
from hive_replication.dump.format.record_types import DumpResult
from hive_replication.load.command import repl_load
from hive_replication.load.replica.hive4_translation import is_translated
from hive_replication.load.replica.repl_status import repl_status
from hive_replication.load.replica.state import replica_state
from hive_replication.load.report import LoadReport
from hive_replication.metastore.marked_external import TRANSLATION
from hive_replication.metastore.types import Table
from hive_replication.statements import ReplDump, ReplLoad
from resources.embedded.hive import HiveDriver


@dataclass
class Warehouse:
    """A source database and its replica of the same name on the target."""

    connection: Connection
    hive: HiveDriver
    database: str
    copier: Copier | None = None
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _since: int = field(init=False)

    def __post_init__(self) -> None:
        self._since = self.connection.target.metastore.current_event_id()

    def with_policy(self, **settings: object) -> Self:
        """The same database under a policy with other settings."""
        policy = self.connection.source.policy.model_copy(update={"databases": {self.database: self.database}, **settings})
        sides = {side: replace(getattr(self.connection, side), policy=policy) for side in ("source", "target")}
        return replace(self, connection=replace(self.connection, **sides))

    def sql(self, *statements: str) -> None:
        """Runs statements on real Hive in the source database; ``{db}`` stands for its name."""
        results = self.hive.run([f"USE {self.database}", *(s.format(db=self.database) for s in statements)])
        errors = [f"{result.statement}: {result.error}" for result in results if result.error]
        assert not errors, errors

    def load_data(self, into: str, rows: str, *, overwrite: bool = False, name: str | None = None) -> None:
        """``LOAD DATA`` of a text file: an INSERT event with checksums, as Hive's own INSERT makes it."""
        storage, root = self.connection.source.storage, self.connection.source.policy.source.roots[0].uri
        path = f"{root}tmp/{self.database}/{next(self._numbers)}/{name or f'{self.database}-{next(self._numbers)}'}"
        storage.write(path, rows.encode())
        self.sql(f"LOAD DATA INPATH '{path}' {'OVERWRITE ' if overwrite else ''}INTO TABLE {into}")

    def dump(self, from_evid: int | None = None, **options: object) -> DumpResult:
        """REPL DUMP of the database."""
        statement = ReplDump(self.database, None, from_evid, **options)  # type: ignore[arg-type]
        return repl_dump(self.connection.source, statement, self.connection.store)

    def load(self, directory: str, **options: object) -> LoadReport:
        """REPL LOAD of a dump under its own name."""
        copier = self.copier or self.connection.copier
        return repl_load(self.connection.target, ReplLoad(directory), self.connection.store, copier, **options)  # type: ignore[arg-type]

    def applied(self) -> int | None:
        """Where the replica stands."""
        return replica_state(self.connection.target.metastore.database(self.database)).applied

    def status(self, table: str | None = None) -> int | None:
        """REPL STATUS."""
        return repl_status(self.connection.target.metastore, self.database, table).last_evid

    def replicate(self) -> LoadReport:
        """One step: bootstrap, or the events since the last one."""
        return self.load(self.dump(self.applied()).directory)

    def target_events(self) -> int:
        """Counts the changes of the replica's metadata in the target's log since this object was created."""
        metastore = self.connection.target.metastore
        events = metastore.events(self._since, metastore.current_event_id())
        return sum(event.dbName == self.database for event in events)

    def content(self, *, source: bool, only: str = "") -> dict[str, object]:
        """What must be equal in both databases: schemas, properties, partitions, files with their bytes.

        Args:
            source: of which side.
            only: tables whose names end so.
        """
        side = self.connection.source if source else self.connection.target
        result: dict[str, object] = {}
        names = [name for name in side.metastore.table_names(self.database) if name.endswith(only)]
        for table in side.metastore.tables(self.database, names):
            keys = [(key.name, key.type) for key in table.partitionKeys or []]
            columns = [(column.name, column.type) for column in table.sd.cols]
            shown: dict[str, object] = {
                "columns": columns,
                "keys": keys,
                "type": "MANAGED_TABLE" if is_translated(table) else table.tableType,
                "serde": table.sd.serdeInfo.serializationLib if table.sd.serdeInfo else None,
                "parameters": _properties(table),
                "view": table.viewOriginalText,
            }
            if keys:
                for part in side.metastore.partitions(self.database, table.tableName):
                    location = part.sd.location or ""
                    shown[f"partition {part.values}"] = self._files(side.storage, location), len(part.sd.cols)
            elif table.sd.location:
                shown["files"] = self._files(side.storage, table.sd.location)
            result[table.tableName] = shown
        return result

    @staticmethod
    def _files(storage: object, location: str) -> dict[str, bytes]:
        return {status.uri[len(location) :].strip("/"): storage.read(status.uri) for status in storage.files(location)}  # type: ignore[attr-defined]

    def assert_equal(self, *, only: str = "") -> None:
        """The replica equals the source, and nothing in it points to the source."""
        self.assert_equal_but_paths(only=only)

    def assert_equal_in_policy(self, *, kept: tuple[str, ...] = ()) -> None:
        """The replica has what the policy includes as the source does, and otherwise what was kept."""
        ours, theirs = (self.content(source=source) for source in (True, False))
        includes = self.connection.source.policy.includes
        assert {n: one for n, one in theirs.items() if n not in kept} == {n: one for n, one in ours.items() if includes(n)}
        assert set(kept) <= theirs.keys()

    def assert_equal_but_paths(self, *parameters: str, only: str = "") -> None:
        """The same, where some parameters of tables hold paths, which are other ones on the target."""
        contents = [self.content(source=source, only=only) for source in (False, True)]
        for table in (table for content in contents for table in content.values()):
            for parameter in parameters:
                table["parameters"].pop(parameter, None)  # type: ignore[index]
        assert contents[0] == contents[1]
        root = self.connection.source.policy.source.roots[0].uri
        metastore = self.connection.target.metastore
        for table in metastore.tables(self.database, [name for name in contents[0] if name.endswith(only)]):
            assert root not in repr(table)
            for part in metastore.partitions(self.database, table.tableName) if table.partitionKeys else ():
                assert root not in repr(part)


_VOLATILE = ("repl.", "hive.repl.", "hive_replication.", "transient_lastDdlTime", "numFiles", "totalSize", "last_modified")


def _properties(table: Table) -> dict[str, str]:
    own = (*_VOLATILE, *TRANSLATION) if is_translated(table) else _VOLATILE
    return {key: value for key, value in (table.parameters or {}).items() if not key.startswith(own)}
