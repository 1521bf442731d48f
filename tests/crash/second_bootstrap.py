"""A bootstrap that is killed and never resumed: the source goes on, and a second bootstrap dump is loaded over what was left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from hive_replication.connect import Connection
from hive_replication.dump.format.record_types import DumpResult
from resources.embedded.hive import HiveDriver
from tests.crash.campaign import Replica, Step
from tests.crash.driver import Job, run
from tests.crash.seams import Point, points_of
from tests.crash.story import Story, create_database
from tests.crash.transactional_names import rename, write
from tests.crash.transactions import unfinished
from tests.ledger import make, partition_of
from tests.warehouse import Warehouse
from tests.writers import create

_TABLES = ("again", "grown", "moved", "p")


class SecondBootstrap(Replica):
    """A replica whose first bootstrap ends where it is struck; the dumps after it are loaded whole."""

    def steps(self) -> Sequence[Step]:
        """The half load, and those of all other dumps."""
        return [self._begin, *(partial(self.load, chapter) for chapter in self.story.chapters[1:])]

    def _begin(self, points: Sequence[Point]) -> dict[str, int]:
        """Loads the first dump once for each point, struck there; without points in the middle of what it does."""
        first, counts = self.story.chapters[0], dict[str, int]()
        if not points:
            whole = Replica(self.campaign, self.story, f"{self.name}_whole")
            counts = whole.load(first, ())
            self.wrong |= whole.wrong
            whole.drop()
            found = [point for point in points_of(counts) if point.key.endswith(":after")]
            points = found[len(found) // 2 :][:1]
        job = Job("load", self.policy, self.story.database, self.name, first.dump.directory)
        strikes, half, broken = 0, list[str](), list[str]()
        for point in points:
            outcome = run(job, point, self.log)
            strikes += outcome.fired
            broken += [outcome.problem] if outcome.broken else []
            half += self.half([{}, *first.states])
        self.wrong |= bool(half or broken)
        self.campaign.tally.add(f"{self.name} left at {' and '.join(map(str, points))}", kills=strikes, lost=broken, half=half)
        return counts


class TwoBootstraps(Story):
    """A story whose first two dumps are bootstraps."""

    def _dump(self, after: int | None) -> DumpResult:
        return super()._dump(after if len(self.chapters) > 1 else None)


def tell_of_second_bootstrap(connection: Connection, hive: HiveDriver, database: str) -> Story:
    """Plain tables: two bootstraps and a window."""
    create_database(hive, database)
    story = TwoBootstraps(Warehouse(connection, hive, database))
    story.sql("CREATE TABLE plain (a INT)", "CREATE TABLE again (a INT)", "CREATE TABLE moved (a INT)")
    story.sql("CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)")
    for into in ("plain", "again", "moved", "parts PARTITION (ds='1')", "parts PARTITION (ds='2')"):
        story.put(into, f"0 {into}\n")
    story.end_chapter()
    story.put("plain", "1 more\n")
    story.put("parts PARTITION (ds='1')", "1 anew\n", overwrite=True)
    story.put("parts PARTITION (ds='3')", "1 new\n")
    story.sql("ALTER TABLE parts DROP PARTITION (ds='2')", "ALTER TABLE moved RENAME TO onwards")
    story.sql("DROP TABLE again", "CREATE TABLE again (b STRING) PARTITIONED BY (ds STRING)")
    story.put("again PARTITION (ds='1')", "1 another\n")
    story.end_chapter()
    for into in ("plain", "onwards", "parts PARTITION (ds='1')", "again PARTITION (ds='1')"):
        story.put(into, f"2 {into}\n")
    story.end_chapter()
    return story


def tell_of_second_bootstrap_of_transactions(connection: Connection, _: HiveDriver | None, database: str) -> Story:
    """Transactional tables: two bootstraps and a window. Write ids go on, begin anew, and move to other names between them."""
    ledger = make(connection, database)
    story, source = TwoBootstraps(ledger), ledger.connection.source
    for table in ("again", "grown", "moved"):
        create(source.metastore, source.storage, database, table)
        write(story, ledger, table, "0 one", "0 two", "0 three")
    source.metastore.add_partitions(database, "p", [partition_of(ledger, "1")])
    story.look()
    story.end_chapter()
    writer = ledger.begin()
    writer.insert("p", "1 part\n", "ds=1")
    writer.insert("grown", "1 with it\n")
    story.look()
    writer.commit()
    story.look()
    write(story, ledger, "grown", "1 four", "1 five")
    source.metastore.drop_table(database, "again", delete_data=True)
    story.look()
    rename(story, ledger, "moved", "again")
    create(source.metastore, source.storage, database, "moved")
    story.look()
    write(story, ledger, "moved", "1 new")
    story.end_chapter()
    for table in ("again", "grown", "moved"):
        write(story, ledger, table, "2 more")
    story.end_chapter()
    for number, chapter in enumerate(story.chapters[:2]):
        begun = [state for end in story.chapters[: number + 1] for state in unfinished(end.states[-1], _TABLES)]
        story.chapters[number] = replace(chapter, states=[*begun, *chapter.states])
    return story
