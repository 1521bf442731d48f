"""What happened to a source database, by real Hive 3.1.3: dumps of its windows, and its true state after each statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hive_replication.connect import Connection
from hive_replication.dump.format.record_types import DumpResult
from hive_replication.metastore.types import copy_of
from resources.embedded.hive import HiveDriver
from tests.crash.states import Known, State, read_state
from tests.warehouse import Warehouse

#: What is struck beside dumps and loads.
REPAIRS = ("undo", "repair", "recover")


@dataclass(frozen=True)
class Chapter:
    """A dump, and the states that its objects had from its begin to its end.

    Args:
        dump: a bootstrap or a window.
        states: of the source, ascending; the last is that of the dump's end. One only for a bootstrap.
        policy: settings of the policy that it is loaded with.
        before: tables of the policy of the chapter before, as ``PolicyScope``; "" where nobody is told.
    """

    dump: DumpResult
    states: Sequence[State]
    policy: Mapping[str, object] = field(default_factory=dict[str, object])
    before: str = ""


@dataclass
class Story:
    """A source database whose states are recorded.

    Args:
        warehouse: what writes to it.
        repairs: kinds of :data:`REPAIRS` that its replicas allow; none with transactions allows an undo (docs/acid.md).
        damaged: table whose files are damaged for a repair and a recovery.
    """

    warehouse: Warehouse
    repairs: Sequence[str] = ()
    damaged: str = ""
    chapters: list[Chapter] = field(default_factory=list[Chapter])
    _states: list[State] = field(default_factory=list[State])
    _known: Known = field(default_factory=Known)

    @property
    def database(self) -> str:
        """The database's name."""
        return self.warehouse.database

    def sql(self, *statements: str) -> None:
        """Runs statements, and records the state after each."""
        for statement in statements:
            self.warehouse.sql(statement)
            self.look()

    def put(self, into: str, rows: str, *, overwrite: bool = False) -> None:
        """Inserts a file, and records the state after it."""
        self.warehouse.load_data(into, rows, overwrite=overwrite)
        self.look()

    def look(self) -> None:
        """Records the present state."""
        source = self.warehouse.connection.source
        self._states.append(read_state(source.metastore, source.storage, self.database, self._known))

    def end_chapter(self) -> None:
        """Dumps what happened since the last chapter, or the database in the first."""
        last = self.chapters[-1].dump.last_evid if self.chapters else None
        dump = self._dump(last)
        states = self._states if self.chapters else self._states[-1:]
        self.chapters.append(self._chapter(dump, states))
        self._states = self._states[-1:]

    def _dump(self, after: int | None) -> DumpResult:
        return self.warehouse.dump(after)

    def _chapter(self, dump: DumpResult, states: list[State]) -> Chapter:
        return Chapter(dump, states)


def tell(connection: Connection, hive: HiveDriver, database: str) -> Story:
    """All kinds of events: a bootstrap and three windows."""
    create_database(hive, database)
    story = Story(Warehouse(connection, hive, database), REPAIRS, "days")
    for chapter in (_before, _data, _names, _rest):
        chapter(story)
        story.end_chapter()
    return story


def tell_of_drop(connection: Connection, hive: HiveDriver, database: str) -> Story:
    """A database that is dropped and created again, and then tables and a partition: a bootstrap and two windows."""
    create_database(hive, database)
    story = Story(Warehouse(connection, hive, database), REPAIRS, "many")
    story.sql("CREATE TABLE one (a INT)", "CREATE TABLE many (a INT) PARTITIONED BY (ds STRING)")
    story.put("one", "1\n")
    story.put("many PARTITION (ds='1')", "1\n")
    story.end_chapter()
    story.put("one", "2\n")
    story.sql("DROP TABLE many", "DROP TABLE one")  # while Hive keeps the files of deleted tables
    metastore = connection.source.metastore
    unmarked = copy_of(metastore.database(database))
    assert unmarked is not None
    unmarked.parameters = {}  # Hive drops no database that is a source of replication
    metastore.alter_database(database, unmarked)
    hive.execute(f"DROP DATABASE {database}")
    story.look()
    hive.execute(f"CREATE DATABASE {database} COMMENT 'the second'")
    story.look()
    again = [f"CREATE TABLE {table} (other STRING)" for table in ("one", "gone")]
    story.sql(*again, "CREATE TABLE many (a INT) PARTITIONED BY (ds STRING)")
    for into in ("one", "gone", "many PARTITION (ds='1')", "many PARTITION (ds='2')"):
        story.put(into, f"again {into}\n")
    story.end_chapter()
    story.sql("DROP TABLE gone", "DROP TABLE one", "CREATE TABLE one (a INT)", "ALTER TABLE many DROP PARTITION (ds='1')")
    for into in ("one", "many PARTITION (ds='1')"):
        story.put(into, f"anew {into}\n")
    story.end_chapter()
    return story


def create_database(hive: HiveDriver, database: str) -> None:
    """Makes an empty source database."""
    hive.execute(f"CREATE DATABASE {database} COMMENT 'first'", f"ALTER DATABASE {database} SET OWNER USER hive")


def _before(story: Story) -> None:
    external = f"{story.warehouse.connection.source.policy.source.roots[0].uri}outside/{story.database}"
    story.warehouse.sql(
        "CREATE TABLE plain (a INT, b STRING)",
        "CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)",
        "CREATE TABLE two (a INT) PARTITIONED BY (y INT, m INT)",
        f"CREATE EXTERNAL TABLE ext (a INT) PARTITIONED BY (ds STRING) LOCATION '{external}'",
        "CREATE TABLE left_one (a INT)",
        "CREATE TABLE right_one (a INT)",
        "CREATE TABLE gone (a INT)",
        "CREATE VIEW seen AS SELECT a FROM plain",
    )
    for table in ("plain", "plain", "left_one", "right_one", "gone"):
        story.warehouse.load_data(table, f"0 {table}\n")
    for part in ("parts PARTITION (ds='1')", "parts PARTITION (ds='2')", "parts PARTITION (ds='3')", "ext PARTITION (ds='1')"):
        story.warehouse.load_data(part, f"0 {part}\n")
    for month in (1, 2):
        story.warehouse.load_data(f"two PARTITION (y=2026, m={month})", f"0 {month}\n")
    story.look()


def _data(story: Story) -> None:
    """Inserts, overwrites, truncates, additions and changes of properties."""
    story.put("plain", "1 more\n")
    story.put("plain", "1 anew\n", overwrite=True)
    story.put("plain", "1 and more\n")
    for day in "12":
        story.put(f"parts PARTITION (ds='{day}')", f"1 more of {day}\n")
    story.put("parts PARTITION (ds='2')", "1 anew\n", overwrite=True)
    story.sql("TRUNCATE TABLE parts PARTITION (ds='3')")
    story.put("parts PARTITION (ds='4')", "1 new\n")
    story.sql("ALTER TABLE parts ADD PARTITION (ds='5') PARTITION (ds='6')")
    story.put("parts PARTITION (ds='6')", "1 first\n")
    story.put("ext PARTITION (ds='2')", "1 outside\n")
    story.put("ext PARTITION (ds='1')", "1 more outside\n")
    story.sql(
        "ALTER TABLE plain SET TBLPROPERTIES ('note'='one')",
        "ALTER DATABASE {db} SET DBPROPERTIES ('note'='one')",
        "ALTER TABLE two ADD COLUMNS (b STRING)",
        "CREATE TABLE late (a INT)",
    )
    story.put("late", "1 late\n")
    story.put("two PARTITION (y=2026, m=1)", "1 month\n", overwrite=True)
    story.sql("TRUNCATE TABLE gone")


def _names(story: Story) -> None:
    """Renames, a swap, drops, and names that are used again."""
    story.put("plain", "2 before\n")
    story.sql("ALTER TABLE plain RENAME TO renamed")
    story.put("renamed", "2 after\n")
    story.sql(
        "ALTER TABLE left_one RENAME TO middle",
        "ALTER TABLE right_one RENAME TO left_one",
        "ALTER TABLE middle RENAME TO right_one",
    )
    story.put("left_one", "2 of the right one\n")
    story.put("right_one", "2 of the left one\n", overwrite=True)
    story.sql("ALTER TABLE parts PARTITION (ds='4') RENAME TO PARTITION (ds='40')")
    story.put("parts PARTITION (ds='40')", "2 forty\n")
    story.sql("ALTER TABLE parts RENAME TO days")
    story.put("days PARTITION (ds='1')", "2 day\n", overwrite=True)
    story.sql("ALTER TABLE days DROP PARTITION (ds='2')")
    story.put("days PARTITION (ds='2')", "2 again\n")
    # Of an empty one the plain directory looks free until it is dropped, of a renamed one until it is renamed.
    story.sql("ALTER TABLE days DROP PARTITION (ds='5')")
    story.put("days PARTITION (ds='5')", "2 no longer empty\n")
    story.sql("ALTER TABLE two PARTITION (y=2026, m=2) RENAME TO PARTITION (y=2026, m=3)")
    story.sql("ALTER TABLE two DROP PARTITION (y=2026, m=3)")
    story.put("two PARTITION (y=2026, m=3)", "2 third\n")
    story.sql("DROP TABLE gone", "CREATE TABLE gone (other STRING) PARTITIONED BY (ds STRING)")
    story.put("gone PARTITION (ds='1')", "2 another\n")
    story.sql("CREATE TABLE plain (c STRING)")
    story.put("plain", "2 another plain\n")
    story.sql("DROP TABLE late")


def _rest(story: Story) -> None:
    """An exchange, views, places, external drops."""
    story.sql("CREATE TABLE archive (a INT) PARTITIONED BY (ds STRING)", "ALTER TABLE days ADD PARTITION (ds='7')")
    story.put("days PARTITION (ds='7')", "3 exchanged\n")
    story.sql("ALTER TABLE archive EXCHANGE PARTITION (ds='7') WITH TABLE days")
    story.put("archive PARTITION (ds='7')", "3 after\n")
    story.sql("ALTER VIEW seen AS SELECT c FROM plain", "CREATE VIEW brief AS SELECT a FROM days", "DROP VIEW brief")
    storage, root = story.warehouse.connection.source.storage, story.warehouse.connection.source.policy.source.roots[0].uri
    place = f"{root}elsewhere/{story.database}"
    storage.write(f"{place}/moved", b"3 elsewhere\n")
    story.sql(f"ALTER TABLE days PARTITION (ds='1') SET LOCATION '{place}'")
    story.sql("ALTER TABLE ext DROP PARTITION (ds='2')")
    story.put("ext PARTITION (ds='3')", "3 outside\n")
    for day in "3356":
        story.put(f"days PARTITION (ds='{day}')", f"3 more of {day}\n", overwrite=day == "5")
    story.sql("ALTER TABLE days DROP PARTITION (ds>='40')", "TRUNCATE TABLE renamed", "DROP TABLE right_one")
    story.put("renamed", "3 last\n")
