"""Chains of three: a replica is replicated again, to the metastore that the first source stands in."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from zlib import crc32

from hive_replication.connect import Connection, connect
from hive_replication.dump.format.record_types import DumpResult
from hive_replication.load.replica.state import replica_state
from hive_replication.metastore.types import copy_of
from hive_replication.policy import Policy
from resources.embedded.hive import HiveDriver
from tests.crash.campaign import ATTEMPTS, Campaign, Replica, Step
from tests.crash.driver import Job, Outcome, run
from tests.crash.seams import Point
from tests.crash.states import State
from tests.crash.story import Chapter, Story, create_database
from tests.warehouse import Warehouse


class Chain(Replica):
    """A replica and the replica of it. Each chapter is loaded to the first, which is dumped and loaded to the second.

    After every other kill of a load to the first, what was left is replicated to the second before the load goes on.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        campaign = self.campaign
        onwards = connect(_onwards(campaign.connection, self.policy.external_root or ""))
        self._second = Replica(Campaign(onwards, campaign.folder, tally=campaign.tally), self.story, f"{self.name}c")
        self._second.policy = self._second.policy.model_copy(update={"databases": {self.name: self._second.name}})

    def steps(self) -> Sequence[Step]:
        """For each chapter a load, a dump of what it made, and a load of this."""
        found: list[Step] = []
        for number, chapter in enumerate(self.story.chapters):
            past = chapter.states if number else [{}, *chapter.states]
            found += [partial(self.load, chapter), self._dump, partial(self._on, past)]
        return found

    def drop(self) -> None:
        """Deletes both with all their data."""
        self._second.drop()
        metastore = self.campaign.connection.target.metastore
        unmarked = copy_of(metastore.database(self.name))
        if unmarked is not None:
            unmarked.parameters = {}  # a metastore drops no source of replication
            metastore.alter_database(self.name, unmarked)
        super().drop()

    def _dump(self, points: Sequence[Point]) -> dict[str, int]:
        """Dumps what the second lacks, struck at each point in turn."""
        second = self._second
        applied = replica_state(second.campaign.connection.target.metastore.database(second.name)).applied
        window = None if applied is None else (applied, None)
        job = Job("dump", second.policy, self.name, second.name, window=window)
        strikes, broken, outcome = 0, list[str](), Outcome(killed=False, fired=False)
        for point in (*points, *[None] * ATTEMPTS):
            outcome = run(job, point, second.log)
            strikes += outcome.fired
            broken += [outcome.problem] if outcome.broken else []
            if not outcome.killed and not outcome.problem:
                break
        lost = [*broken, *([] if outcome.directory else [outcome.problem or "no dump is made"])]
        self.wrong |= bool(lost)
        struck = " and ".join(map(str, points)) or "no point"
        self.campaign.tally.add(f"{self.name} dumped after {applied}, struck at {struck}", kills=strikes, lost=lost)
        self._directory = outcome.directory
        return outcome.counts or {}

    def _on(self, past: Sequence[State], points: Sequence[Point]) -> dict[str, int]:
        """Loads the dump to the second, which then equals the source."""
        counts = self._second.load(Chapter(self._dumped(), past), points)
        self.wrong |= self._second.wrong
        return counts

    def _left_so(self, point: Point | None, past: Sequence[State]) -> None:
        first = self.campaign.connection.target.metastore.database(self.name)
        if crc32(str(point).encode()) % 2 or first is None:
            return
        self._dump(())
        second, dumped = self._second, self._dumped()
        outcome = run(Job("load", second.policy, self.name, second.name, dumped.directory), None, second.log)
        lost = [outcome.problem] if outcome.problem else []
        half = second.half(past)
        self.wrong |= bool(lost or half)
        self.campaign.tally.add(f"{second.name} of what {point} left", kills=0, lost=lost, half=half)

    def _dumped(self) -> DumpResult:
        header = self._second.campaign.connection.store.open(self._directory).header
        return DumpResult(self._directory, header.to_evid, header, 0, 0, 0, 0)


def _onwards(connection: Connection, external: str) -> Policy:
    """From the target back to the source; a replica's external tables may be read."""
    policy = connection.target.policy
    root = policy.source.roots[0].uri
    reads = policy.target.model_copy(update={"paths": (*policy.target.paths, external)})
    places = {"dump_root": f"{root}repl/dumps", "external_root": f"{root}external"}
    return policy.model_copy(update={"source": reads, "target": policy.source, **places})


def tell_of_chain(connection: Connection, hive: HiveDriver, database: str) -> Story:
    """Managed and external tables: a bootstrap and two windows."""
    create_database(hive, database)
    story = Story(Warehouse(connection, hive, database))
    story.sql("CREATE TABLE t (a INT)", "CREATE TABLE p (a INT) PARTITIONED BY (d STRING)", "CREATE TABLE gone (a INT)")
    story.sql("CREATE EXTERNAL TABLE e (a INT)", "CREATE EXTERNAL TABLE ep (a INT) PARTITIONED BY (d STRING)")
    for into in ("t", "p PARTITION (d='1')", "p PARTITION (d='2')", "gone", "e", "ep PARTITION (d='1')"):
        story.put(into, f"0 {into}\n")
    story.end_chapter()
    story.put("t", "1 more\n")
    story.put("p PARTITION (d='1')", "1 more\n")
    story.put("p PARTITION (d='2')", "1 anew\n", overwrite=True)
    story.put("p PARTITION (d='3')", "1 new\n")
    story.put("e", "1 more\n")
    story.put("ep PARTITION (d='2')", "1 new\n")
    story.sql("ALTER TABLE p ADD COLUMNS (b STRING)")
    story.end_chapter()
    story.put("t", "2 anew\n", overwrite=True)
    story.sql("ALTER TABLE t RENAME TO renamed", "DROP TABLE gone", "CREATE TABLE gone (b STRING)")
    story.put("renamed", "2 more\n")
    story.put("gone", "2 another\n")
    story.sql("ALTER TABLE p DROP PARTITION (d='1')", "ALTER TABLE p PARTITION (d='2') RENAME TO PARTITION (d='4')")
    story.put("p PARTITION (d='1')", "2 again\n")
    story.put("p PARTITION (d='4')", "2 more\n")
    story.put("e", "2 more\n")  # an overwrite would delete files of the first dumps, since cmroot keeps none of external tables
    story.sql("ALTER TABLE ep RENAME TO epr", "ALTER TABLE epr DROP PARTITION (d='1')")
    story.put("epr PARTITION (d='2')", "2 more\n")
    story.end_chapter()
    return story
