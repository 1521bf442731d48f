"""What happens to a source database, by calls of its metastore and writes to its storage, whatever its version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hive_metastore import ttypes as t

from hive_replication.connect import Connection
from hive_replication.metastore.types import copy_of
from tests.fixtures.record import Recorder
from tests.origin import Origin
from tests.writers import Writer, create


class _Recorder2(Recorder):
    """Hive 2 truncates without its metastore, whose log has nothing of it: left out here."""

    def _truncate(self, table: str, names: list[str] | None) -> None:
        pass


@dataclass
class Work:
    """A database with some of everything, and what is done to it, window by window.

    Args:
        connection: both sides.
        database: name of the source database.
        transactional: whether there are transactional tables, too.
    """

    connection: Connection
    database: str
    transactional: bool
    origin: Origin = field(init=False)
    recorder: Recorder = field(init=False)

    def __post_init__(self) -> None:
        self.origin = Origin(self.connection, self.database)
        self.metastore, self.storage = self.connection.source.metastore, self.connection.source.storage
        self.hive2 = self.metastore.features.major == 2
        self.recorder = (_Recorder2 if self.hive2 else Recorder)(self.metastore, self.storage, self.database)

    def windows(self) -> Mapping[str, Callable[[], None]]:
        """What is done in each window, by its name."""
        found = {
            "tables": self.recorder.tables,
            "partitions": self.recorder.partitions,
            "changes": self.changes,
            "names": self.names,
            "functions": self.recorder.functions,
        }
        if not self.hive2:  # whose log does not tell of them
            found["constraints"] = self.recorder.constraints
        if self.metastore.features.major >= 4:
            found["statistics"] = self.recorder.statistics
        if self.transactional:
            found |= {"transactions": self.transactions}
        return found

    def begin(self) -> None:
        """Makes what a bootstrap finds."""
        self.recorder.databases()
        for name in ("base", "goes", "moves", "keyed"):
            self.origin.create(name)
            self.origin.insert(name, f"1 {name}\n")
        self.origin.create("days", "1", "2", "3")
        for day in "123":
            self.origin.insert("days", f"{day}\n", day)
        self._external()
        view = self.recorder._image("shown")
        view.tableType, view.sd.location = "VIRTUAL_VIEW", None
        view.viewOriginalText = view.viewExpandedText = f"select a from {self.database}.base"
        self.metastore.create_table(view)
        jar = t.ResourceUri(resourceType=t.ResourceType.JAR, uri=f"{self.storage.roots[0].uri}jars/{self.database}.jar")
        self.storage.write(jar.uri, b"not really a jar")
        kept = t.Function("kept", self.database, "org.example.F", "hive", t.PrincipalType.USER, 0, t.FunctionType.JAVA, [jar])
        self.metastore.create_function(kept)
        key = t.SQLPrimaryKey(self.database, "keyed", "a", 1, f"key_{self.database}", False, False, True, "hive")
        self.metastore.call("primary key", lambda client: client.add_primary_key(t.AddPrimaryKeyRequest([key])))
        if self.transactional:
            create(self.metastore, self.storage, self.database, "ledger")
            self._write("ledger", "1\n")

    def changes(self) -> None:
        """Data and columns of tables that stay."""
        self.origin.insert("base", "2\n")
        self._overwrite("moves")
        self.origin.insert("days", "1 more\n", "1")
        self._overwrite("days", "2")
        self.origin.add("days", "4", "5")
        self.metastore.drop_partitions(self.database, "days", ["ds=3"], delete_data=True)
        table = self.recorder._table("base")
        table.sd.cols.append(t.FieldSchema(name="added", type="double", comment="é"))
        self.metastore.alter_table(self.database, "base", table)
        found = self.metastore.database(self.database)
        assert found is not None
        found.parameters["team"] = "sales"
        self.metastore.alter_database(self.database, found)

    def names(self) -> None:
        """Tables and partitions that are renamed, just written to or not, dropped, and made again."""
        self.origin.create("goes_too")
        self.metastore.drop_table(self.database, "goes", delete_data=True)
        self.metastore.drop_table(self.database, "goes_too", delete_data=True)
        self.origin.create("goes", "1")
        self.origin.create("made")
        self.origin.insert("made", "1\n")
        self._overwrite("moves")
        for before, after in (("moves", "moved"), ("made", "last")):
            table = self.recorder._table(before)
            table.tableName = after
            self.metastore.alter_table(self.database, before, table)
        (day,) = self.metastore.partitions(self.database, "days", ["ds=1"])
        day.values = ["one"]
        self.metastore.rename_partition(self.database, "days", ["1"], day)

    def transactions(self) -> None:
        """Transactions that commit, also one in two tables, and one that is aborted."""
        create(self.metastore, self.storage, self.database, "ledgers", ("ds",))
        image = self.recorder._partition(self.recorder._table("ledgers"), ["1"])
        self.metastore.add_partitions(self.database, "ledgers", [image])
        writer = self._begin()
        writer.insert("ledger", "2\n")
        writer.insert("ledgers", "2\n", "ds=1")
        aborted = self._begin()
        # Hive forgets an aborted write id once its cleaner has seen it, and would read the file then.
        self.storage.delete(aborted.insert("ledger", "never\n"))
        aborted.abort()
        writer.commit()
        self._write("ledger", "3\n")

    def _begin(self) -> Writer:
        return Writer.begin(self.metastore, self.storage, self.database)

    def _write(self, table: str, rows: str) -> None:
        writer = self._begin()
        writer.insert(table, rows)
        writer.commit()

    def _overwrite(self, table: str, day: str = "") -> None:
        """INSERT OVERWRITE, as Hive tells its metastore of it: before Hive 3 by an ALTER alone."""
        if not self.hive2:
            self.origin.insert(table, "anew\n", day, overwrite=True)
            return
        location = self.origin.location(table, day)
        for old in self.storage.files(location):
            self.storage.delete(old.uri)
        self.storage.write(f"{location}/anew", b"anew\n")
        thing = next(self.metastore.partitions(self.database, table, [f"ds={day}"])) if day else self.recorder._table(table)
        thing.parameters = {**thing.parameters, "numFiles": "1", "transient_lastDdlTime": "1700000000"}
        if isinstance(thing, t.Partition):
            self.metastore.alter_partitions(self.database, table, [thing])
        else:
            self.metastore.alter_table(self.database, table, thing)

    def _external(self) -> None:
        outside = self.recorder._image("outside")
        location = f"{self.storage.roots[0].uri}outside/{self.database}"
        outside.tableType, outside.parameters, outside.sd = "EXTERNAL_TABLE", {"EXTERNAL": "TRUE"}, copy_of(outside.sd)
        outside.sd.location = location
        self.storage.write(f"{location}/rows", b"1\n")
        self.metastore.create_table(outside)
