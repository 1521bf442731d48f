"""Windows whose lanes fail anywhere, and the loads that catch up: at the end nothing is held, and all is as at the source."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.dump.format.record_types import GONE, DumpHeader, EventRecord, Scope
from hive_replication.load import newly_included_tables, parts_of_window
from hive_replication.load.operations.kinds import DropTable
from hive_replication.load.plan.load_plan import LanePlan, SegmentPlan, Stop
from hive_replication.load.plan.superseded import Move, ending, moves_after, superseding
from hive_replication.load.replica.held_reasons import UNDONE_REASON
from hive_replication.load.replica.state import ReplicaState, database_with_state
from hive_replication.load.report import Held
from hive_replication.load.session import Session
from hive_replication.load.window import load_window
from hive_replication.metastore.types import Database, Partition
from hive_replication.progress import Silent
from hive_replication.storage import FileStatus
from tests.bootstraps import Tables
from tests.model import KINDS, NAMES, OUTSIDE, ROOT, Source, includes, partition_image, table_image
from tests.moving import POLICY
from tests.replica import MAPPING, TARGET, Target

MOVES = (*("rename out", "rename in", "rename", "drop", "insert") * 3, "create", "alter", "add many", "drop part")
Fails = Callable[[LanePlan], int | None]
"""Event id at which the target refuses an operation of a lane, None where it takes all."""


@dataclass
class TargetTables(Tables):
    """The metastore of a target in memory."""

    target: Target

    def partitions(self, *of: Any) -> Iterator[Partition]:
        _, name, wanted = of
        return (part for (table, key), part in self.target.partitions.items() if table == name and key in (wanted or [key]))


@dataclass
class TargetDatabase:
    """The target's database, as a load sees it."""

    tables: Target
    state: ReplicaState
    name: str = "db"
    location: str = TARGET
    there: bool = True
    exists: bool = True

    @property
    def target(self) -> Any:
        storage = SimpleNamespace(ls=no_files)
        return SimpleNamespace(
            policy=POLICY, metastore=TargetTables(self.tables.tables, self.tables), identity="t", storage=storage
        )

    def check(self) -> None:
        """The load's lock is always held."""

    @property
    def image(self) -> Database:
        return database_with_state(Database("db", locationUri=TARGET, parameters={}), self.state)

    def write_state(self, state: ReplicaState) -> None:
        self.state = state


def no_files(_: str) -> list[FileStatus]:
    return []


def no_interrupted_load(*_: object) -> int:
    return 0


@dataclass
class Loading(Session):
    """A load whose lanes are carried out on a target in memory, and fail where they are told to."""

    fails: Fails = lambda _: None

    @property
    def dry(self) -> bool:
        return False

    def carry_out(self, plan: SegmentPlan, *_: Any, **__: Any) -> None:
        for lane in plan.lanes:
            evid, stop = self.fails(lane) if lane.operations else None, lane.stop
            operations = lane.operations
            if evid is not None and (stop is None or evid < stop.evid):
                operations, stop = lane.uncollapsed or operations, Stop(evid, "failed")
            due = [one for one in operations if stop is None or one.evid < stop.evid]
            for one in due:
                cast("Any", self.replica).tables.apply(one)
            if stop is not None:
                first = min([stop.evid, *(evid for one in operations if one not in due for evid in one.evids)])
                passed = [evid for one in operations for evid in one.evids if evid < first]
                after = max([lane.base, *passed])
                self.held.append(Held(lane.names, after, stop.evid, stop.reason, stop.refused, table=stop.table))


class Lookahead:
    """What becomes of objects of a source in memory."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def superseded(self, table: str, partition: str, evid: int) -> int | None:
        ends = (found for event in self._source.events if event.evid > evid and (found := ending(event)))
        return superseding(ends, table, partition)

    def moves(self, table: str, partition: str, evid: int) -> tuple[Move, ...]:
        ends = (found for event in self._source.events if event.evid > evid and (found := ending(event)))
        return moves_after(ends, table, partition)


@dataclass
class Replica:
    """A replica with the state of its database."""

    source: Source
    target: Target
    state: ReplicaState
    parts: int = 0

    @classmethod
    def of(cls, source: Source) -> Replica:
        return cls(source, Target.replica(source, lambda: source.evid), ReplicaState("uuid/db", source.evid))

    def window(self, after: int, fails: Fails = lambda _: None, only: str | None = None, *, parts: bool = False) -> list[Held]:
        """Loads all that the source did after an event, or the lane of one table of that; then the tables that come whole.

        In parts, each of as few events as there may be, where nobody is awaited.
        """
        end = self.source.evid
        joined = {name: f"{name}'s dump" if name in self.source.tables else GONE for name in NAMES}
        joined = {} if parts and not self.state.coming else joined
        home = Database("db", locationUri=ROOT, parameters={})
        head = DumpHeader("incremental", Scope("db", None), "uuid", home, after, end, 5, f"h{end}", 0.0, joined=joined)
        events = {one.evid: one for one in self.source.window(after, end) if any(map(includes, one.names))}
        records = [EventRecord(replace(one.row, message="{}")) for one in events.values()]
        reader: Any = SimpleNamespace(header=head, directory="hdfs://dst/dumps/db/1", events=lambda: iter(records))
        database = TargetDatabase(self.target, self.state)
        session = Loading(cast("Any", database), reader, None, None, Silent(), Lookahead(self.source))
        session.fails = fails
        held: list[Held] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(newly_included_tables, "load_beside", self._load_beside)
            patch.setattr(parts_of_window, "PART", 1)
            patch.setattr(parts_of_window, "interrupted_until", no_interrupted_load)
            for part in parts_of_window.parts_of_window(session) if parts else [session]:
                load_window(part, only, [events[one.notification.evid] for one in part.reader.events()])
                self.state = database.state
                if only is None:
                    newly_included_tables.with_joined_tables(part, cast("Any", None))
                held = parts_of_window.held_after(part, held)
                self.parts += 1
        return held

    def _load_beside(self, _session: Session, _store: object, name: str, *_: object) -> bool:
        self.load_whole(name)
        return True

    def load_whole(self, name: str) -> None:
        """Loads a table as it is now, whatever was there."""
        for objects in (self.target.partitions, self.target.files):
            for key in [key for key in objects if key[0] == name]:
                del objects[key]
        self.target.tables.pop(name, None)
        if name in self.source.tables:
            made = Target.replica(self.source, lambda: self.source.evid)
            self.target.tables[name] = made.tables[name]
            self.target.files |= {key: found for key, found in made.files.items() if key[0] == name}
            self.target.partitions |= {key: found for key, found in made.partitions.items() if key[0] == name}
        self.state = self.state.at_position(name, self.source.evid)

    def repair(self, name: str, fails: Fails = lambda _: None) -> None:
        """Repairs a table, as :mod:`hive_replication.repair` does: its lane comes first, as far as it goes."""
        position = min(self.state.applied or 0, self.state.position(name))
        while position < self.source.evid:
            held = self.window(position, fails, only=name)
            lane = next((one for one in held if name in one.tables and not one.tried), None)
            if lane is None or not 0 < lane.after < position:
                break
            position = lane.after
        self.load_whole(name)

    def caught_up(self, *, repairs: bool = False) -> None:
        """Loads what follows until nothing is held, which takes a few loads at most.

        Where repairs took a table out of the way of others, these are repaired, too.
        """
        for number in range(6):
            if not self.state.held and self.state.applied == self.source.evid:
                break
            self.window(self.state.last_id or 0)
            for name in sorted(self.state.held.keys() & self.source.tables.keys()) if repairs and number == 3 else ():
                self.repair(name)
        assert (dict(self.state.held), self.target.state()) == ({}, self.source.state())


def failing(ids: random.Random) -> Fails:
    """Two lanes of five fail, at any of their operations."""

    def fails(lane: LanePlan) -> int | None:
        return ids.choice(lane.uncollapsed or lane.operations).evid if ids.random() < 0.4 else None

    return fails


def act(source: Source, ids: random.Random, moves: tuple[str, ...], most: int) -> None:
    for _ in range(ids.randint(1, most)):
        source.act(ids.choice(moves), ids.randrange(3), ids.randrange(3), ids.randrange(3))


def at(evid: int) -> Fails:
    """The target refuses what this event does to a table, but its drop."""

    def fails(lane: LanePlan) -> int | None:
        due = [one for one in lane.uncollapsed or lane.operations if not isinstance(one, DropTable)]
        return evid if any(evid in one.evids for one in due) else None

    return fails


def done(source: Source, *moves: tuple[str, int, int]) -> None:
    """Changes of tables: what, the table's number, and that of its new name among the free ones."""
    for kind, table, extra in moves:
        source.act(kind, table, 0, extra)


def replicated(*moves: tuple[str, int, int]) -> Replica:
    source = Source(unique=True)
    done(source, *moves)
    return Replica.of(source)


@pytest.mark.parametrize("later", [(), (("insert", 0, 0),), (("insert", 1, 0),), (("nothing", 0, 0),)])
def test_a_table_that_is_renamed_into_the_policy_does_not_end_the_hold_of_the_one_that_had_its_name(later: Any) -> None:
    """The catch-up took the events of the old one for applied: rows were lost, and nothing told of it."""
    replica = replicated(("create", 1, 0), ("rename out", 1, 0), ("create", 0, 0))
    source = replica.source
    done(source, ("insert", 0, 0), ("rename", 0, 0), ("rename in", 0, 0))
    assert [event.names for event in source.events[3:]] == [("a",), ("a", "b"), (OUTSIDE, "a")]
    replica.window(3, at(4))
    assert (replica.state.at, replica.state.coming) == ({"a": 3, "b": 3}, {"a"})
    if later:
        done(source, *later)
        replica.window(6)
        assert (replica.state.at, replica.state.coming) == ({"a": 3, "b": 3}, {"a"})
    replica.caught_up()


def test_the_repair_of_a_table_does_not_pass_over_the_events_of_one_that_is_awaited() -> None:
    """Its name was taken for level with the events before the repair: it never came, and what had it before stayed."""
    replica = replicated(("create", 0, 0), ("create", 1, 0))
    source = replica.source
    done(source, ("insert", 1, 0), ("insert", 0, 0), ("rename out", 0, 0), ("rename in", 0, 0))
    replica.window(2, lambda lane: 3 if lane.names == ("b",) else 4)
    assert (replica.state.at, replica.state.coming) == ({"a": 2, "b": 2}, {"a"})
    replica.repair("b")
    assert (replica.state.at, replica.state.coming) == ({"a": 2}, {"a"})
    done(source, ("nothing", 0, 0))
    replica.window(6)
    replica.caught_up()


@pytest.mark.parametrize("end", ["drop", "rename out"])
def test_names_that_a_window_joins_to_a_held_table_are_held_also_where_it_does_nothing(end: str) -> None:
    """The catch-up took the drop for applied: a table that the source did not have any more stayed."""
    replica = replicated(("create", 0, 0))
    for moves in ([("insert", 0, 0)], [("rename", 0, 0)], [("rename", 1, 1), (end, 2, 0)]):
        begin = replica.source.evid
        done(replica.source, *moves)
        replica.window(begin, at(2))
    assert [event.names[0] for event in replica.source.events] == ["a", "a", "a", "b", "c"]
    assert replica.state.at == dict.fromkeys(NAMES, 1)
    replica.caught_up()


@pytest.mark.parametrize("later", [(), (("insert", 1, 0),), (("drop", 1, 0),), (("rename out", 1, 0),), (("rename", 1, 1),)])
def test_a_held_table_that_is_repaired_under_its_new_name_is_gone_from_the_old_one(later: Any) -> None:
    """Both stayed, and nothing was held; where the new one was dropped, the catch-up brought it back."""
    replica = replicated(("create", 0, 0))
    source = replica.source
    done(source, ("insert", 0, 0), ("rename", 0, 0))
    replica.window(1, at(2))
    replica.repair("b", at(2))
    assert (set(replica.target.tables), replica.state.at) == ({"a", "b"}, {"a": 1})
    done(source, *later)
    replica.window(3)
    replica.caught_up()


@pytest.mark.parametrize("later", ["drop", "overwrite"])
def test_a_table_that_the_target_lacks_is_missed_by_its_new_name(later: str) -> None:
    """Somebody dropped it there; the name that it left was another one's, whose end seemed to be its own."""
    replica = replicated(("create", 0, 0), ("insert", 0, 0))
    del replica.target.tables["a"], replica.target.files["a", ""]
    done(replica.source, ("rename", 0, 0), ("create", 0, 0), (later, 0, 0))
    replica.window(2)
    assert "the target lacks db.a, which event 3" in replica.state.held["b"]


@pytest.mark.parametrize("later", ["drop part", "overwrite"])
def test_a_partition_that_the_target_lacks_is_missed_by_its_new_name(later: str) -> None:
    replica = replicated(("create", 0, 1), ("insert", 0, 0))
    del replica.target.partitions["a", "p=0"], replica.target.files["a", "p=0"]
    done(replica.source, ("rename part", 0, 0), ("insert", 0, 0), (later, 0, 0))
    assert [event.type for event in replica.source.events[2:4]] == ["ALTER_PARTITION", "ADD_PARTITION"]
    replica.window(2)
    assert "the target lacks db.a/p=0, which event 3" in replica.state.held["a"]


@pytest.mark.parametrize("again", [False, True])
def test_a_partition_that_an_unfinished_load_made_under_its_new_name_is_gone_from_the_old_one(*, again: bool) -> None:
    """It was there twice, and nothing was held: the rename counted as applied, and nobody asked what was left."""
    replica = replicated(("create", 0, 1), ("insert", 0, 0))
    source, target = replica.source, replica.target
    done(source, ("rename part", 0, 0))
    if again:
        done(source, ("insert", 0, 0))
    assert set(source.tables["a"].parts) == ({"p=1", "p=0"} if again else {"p=1"})
    made, table = source.tables["a"].parts["p=1"], table_image("a", source.tables["a"])
    target.partitions["a", "p=1"] = MAPPING.new_partition(partition_image("a", "p=1", made), table, "a", source.evid)
    target.files["a", "p=1"] = dict(source.storage[made.location])
    replica.window(2)
    assert (dict(replica.state.held), target.state()) == ({}, source.state())


@pytest.mark.parametrize("kind", ["alter", "insert", "truncate"])
def test_a_held_table_that_was_renamed_is_dropped_whatever_the_target_refuses_of_it(kind: str) -> None:
    """It was tried, and failed, for ever: the source has no table that could be repaired."""
    replica = replicated(("create", 0, 0))
    done(replica.source, (kind, 0, 0))
    replica.window(1, at(2))
    done(replica.source, ("rename", 0, 0), ("drop", 1, 0))
    assert [event.names[0] for event in replica.source.events] == ["a", "a", "a", "b"]
    replica.window(1, at(2))
    assert (dict(replica.state.held), replica.target.tables) == ({}, {})


def test_a_held_table_that_gives_its_name_to_another_one_is_there_until_that_one_comes() -> None:
    """It was dropped with its first event: where the other one failed, readers had neither for as long as the hold lasted."""
    replica = replicated(("create", 1, 0))
    source = replica.source
    done(source, ("insert", 1, 0))
    replica.window(1, at(2))
    done(source, ("create", 0, 0), ("insert", 0, 0), ("drop", 1, 0), ("rename", 0, 0))
    assert [event.names for event in source.events[2:]] == [("a",), ("a",), ("b",), ("a", "b")]
    replica.window(1, lambda lane: at(2)(lane) or at(4)(lane))
    assert (replica.state.at, set(replica.state.held)) == ({"a": 3, "b": 3}, {"a", "b"})
    assert set(replica.target.tables) == {"a", "b"}
    replica.caught_up()


def test_a_table_that_was_undone_waits_also_where_its_name_is_joined_to_one_that_is_held() -> None:
    """Why the other one is held became its own reason: the next catch-up loaded what was taken back."""
    replica = replicated(("create", 0, 0), ("create", 1, 0))
    source, undone = replica.source, f"{UNDONE_REASON}1 by request"
    done(source, ("insert", 0, 0), ("insert", 1, 0))
    replica.window(2, at(3))
    replica.state = replica.state.quarantine("b", 2, undone)
    begin = source.evid
    done(source, ("rename", 0, 0), ("rename", 1, 0))
    assert [event.names for event in source.events[begin:]] == [("a", "c"), ("b", "a")]
    replica.window(begin)
    assert dict(replica.state.held) == {"a": f"held with b: {undone}", "b": undone, "c": f"held with b: {undone}"}
    assert (replica.state.waits("b"), replica.state.tried) == (True, [])
    replica.window(2)
    assert (replica.state.waits("b"), dict(replica.state.at)) == (True, dict.fromkeys("abc", 2))
    replica.state = replica.state.released("b")
    assert replica.state.tried == ["a", "b", "c"]
    replica.caught_up()


def one(seed: int, *, repairs: bool, parts: bool = False) -> int:
    """A few windows, and then as many loads as it takes; returns how many parts they had."""
    ids = random.Random(seed)
    source = Source(unique=ids.random() < 0.5)
    act(source, ids, KINDS, 6)
    replica = Replica.of(source)
    for _ in range(ids.randint(1, 3)):
        act(source, ids, MOVES, 6)
        begin = replica.state.applied if ids.random() < 0.5 else replica.state.last_id
        replica.window(begin or 0, failing(ids), parts=parts)
        if repairs and ids.random() < 0.5 and source.tables:
            replica.repair(ids.choice(sorted(source.tables)), failing(ids))
    replica.caught_up(repairs=repairs)
    return replica.parts


@pytest.mark.no_cover
@pytest.mark.parametrize("repairs", [False, True])
@pytest.mark.parametrize("first", range(0, 600, 100))
def test_whatever_fails_the_end_is_the_source(first: int, *, repairs: bool) -> None:
    for seed in range(first, first + 100):
        print(f"seed {seed}")
        one(seed, repairs=repairs)


@pytest.mark.no_cover
@pytest.mark.parametrize("repairs", [False, True])
@pytest.mark.parametrize("first", range(0, 300, 100))
def test_whatever_fails_in_windows_that_are_loaded_in_parts_the_end_is_the_source(first: int, *, repairs: bool) -> None:
    parts = whole = 0
    for seed in range(first, first + 100):
        print(f"seed {seed}")
        whole += one(seed, repairs=repairs)
        parts += one(seed, repairs=repairs, parts=True)
    assert parts > whole * 1.5
