"""What the state and the journal say after an undo that follows another one, that stops in the middle, or that is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from hive_replication.errors import BadRequest, LockLost, Refused, ReplicationError
from hive_replication.load.journal import lane_record
from hive_replication.load.journal.journal import Journal, finished_loads
from hive_replication.load.journal.lane_record import LaneRecord, Step
from hive_replication.load.journal.restored import forgotten
from hive_replication.load.layout import directories
from hive_replication.load.layout.directories import Layout
from hive_replication.load.replica import parameter_lock
from hive_replication.load.replica.state import LAST_ID, SOURCE, ReplicaState, database_with_state, object_id, replica_state
from hive_replication.load.replica.target import Target
from hive_replication.load.undo import undo as undo_module
from hive_replication.load.undo.undo import UndoneStep, release, undo
from hive_replication.metastore.types import Database, FieldSchema, Partition, StorageDescriptor, Table, copy_of
from hive_replication.policy import Policy, Root
from hive_replication.storage import Storage
from tests.bucket import storage_with_bucket
from tests.faults import Killed
from tests.lags import POLICY

OURS = "uuid/db"
#: The parameter that a metastore sets where what it creates has none, and a time that none of the images has.
CHANGED, NOW = "transient_lastDdlTime", "1700000000"


class _NoLock:
    lost = False

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __enter__(self) -> _NoLock:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def check(self) -> None:
        if self.lost:
            raise LockLost("the lock on db was lost")


@dataclass
class _Metastore:
    """Tables in memory; ``dies`` after some changes of them."""

    home: Database
    kept: dict[str, Table] = field(default_factory=dict[str, Table])
    parts: dict[str, dict[str, Partition]] = field(default_factory=dict[str, dict[str, Partition]])
    dies: int = -1
    features: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(major=3))
    calls: list[str] = field(default_factory=list[str])

    def _change(self, call: str) -> None:
        if self.dies == 0:
            raise Killed
        self.dies -= 1
        self.calls.append(call)

    def database(self, _: str) -> Database:
        return copy_of(self.home)

    def alter_database(self, _: str, image: Database, _before: Database) -> None:
        self._change("alter_database")
        self.home = copy_of(image)

    def table(self, _: str, name: str) -> Table | None:
        return copy_of(self.kept[name]) if name in self.kept else None

    def tables(self, _: str, names: list[str]) -> Iterator[Table]:
        return (copy_of(self.kept[name]) for name in names if name in self.kept)

    def drop_table(self, _: str, name: str, *, delete_data: bool) -> None:
        assert not delete_data
        self._change(f"drop {name}")
        del self.kept[name]

    def alter_table(self, _: str, name: str, image: Table) -> None:
        self._change(f"alter {name}")
        created = self.kept.pop(name).createTime  # which a metastore keeps
        self.kept[image.tableName] = copy_of(image)
        self.kept[image.tableName].createTime = created

    def create_table(self, image: Table) -> None:
        self._change(f"create {image.tableName}")
        self.kept[image.tableName] = copy_of(image)

    def partitions(self, _: str, table: str, names: list[str]) -> Iterator[Partition]:
        return (copy_of(self.parts[table][name]) for name in names if name in self.parts.get(table, {}))

    def alter_partitions(self, _: str, table: str, images: list[Partition]) -> None:
        self._change(f"alter partitions of {table}")
        self.parts[table] |= {f"ds={image.values[0]}": copy_of(image) for image in images}

    def add_partitions(self, _: str, table: str, images: list[Partition]) -> None:
        self._change(f"add partitions of {table}")
        self.parts[table] |= {f"ds={image.values[0]}": copy_of(image) for image in images}

    def rename_partitions(self, _: str, table: str, renames: list[tuple[list[str], Partition]]) -> None:
        self._change(f"rename partitions of {table}")
        for (old,), image in renames:
            del self.parts[table][f"ds={old}"]
            self.parts[table][f"ds={image.values[0]}"] = copy_of(image)

    def drop_partitions(self, _: str, table: str, names: list[str], *, delete_data: bool) -> None:
        assert not delete_data
        self._change(f"drop partitions of {table}")
        for name in names:
            del self.parts[table][name]


@dataclass
class _Replica:
    """A replica with a journal."""

    target: Target
    metastore: _Metastore
    journal: Journal
    location: str

    def table(self, name: str, evid: int, *, ours: bool = True, keys: tuple[str, ...] = ()) -> Table:
        parameters = {SOURCE: OURS, LAST_ID: str(evid)} if ours else {"comment": "the users' own"}
        sd = StorageDescriptor(location=f"{self.location}/{name}", cols=[], parameters={})
        found = [FieldSchema(key, "string", "") for key in keys]
        return Table(name, "db", sd=sd, partitionKeys=found, parameters=parameters, tableType="EXTERNAL_TABLE")

    def load(
        self, from_evid: int, to_evid: int, *lanes: tuple[LaneRecord, dict[str, Table | None]], restored: bool = False
    ) -> None:
        """A window that changes tables, and brings all names to its end but held ones that it does not change."""
        writer = self.journal.begin(from_evid, to_evid)
        for record, after in lanes:
            writer.lane(record)
            for name, image in after.items():
                self.metastore.kept.pop(name, None)
                if image is not None:
                    self.metastore.kept[name] = image
        state = self.state.advanced(to_evid, 1, f"h{to_evid}")
        for name in {name for record, _ in lanes for name in record.names} & state.held.keys():
            state = state.at_position(name, to_evid)
        if restored:
            writer.makes_good()
        writer.state(state)
        self.metastore.home = database_with_state(self.metastore.home, state)
        writer.done(state.applied)

    def changed(self, name: str, before: int, after: int) -> tuple[LaneRecord, dict[str, Table | None]]:
        """A lane that alters a table, from a state id to another."""
        record = LaneRecord((name,), (Step("AlterTable", after, name),), {name: self.table(name, before)})
        return record, {name: self.table(name, after)}

    @property
    def state(self) -> ReplicaState:
        return replica_state(self.metastore.home)

    @property
    def stands(self) -> dict[str, int]:
        """State ids of its tables."""
        return {name: object_id(table) for name, table in self.metastore.kept.items()}

    def may_lose(self) -> dict[str, int]:
        """Tables that the state says to stand beyond where they are, of those that :func:`windows` changes."""
        events = {"t": (1400, 1450, 1550), "u": (1400, 1460)}
        lost = {
            name: [one for one in ids if self.stands[name] < one <= self.state.position(name)] for name, ids in events.items()
        }
        return {name: ids[0] for name, ids in lost.items() if ids}


@pytest.fixture
def replica(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Replica:
    for module in (undo_module, parameter_lock):
        monkeypatch.setattr(module, "MetastoreLock", _NoLock)
    location = f"{tmp_path.as_uri()}/db.db"
    metastore = _Metastore(Database("db", locationUri=location, parameters={}))
    metastore.home = database_with_state(metastore.home, ReplicaState(OURS))
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    target = cast("Target", _Target(metastore, storage))
    return _Replica(target, metastore, Journal(storage, location), location)


@dataclass
class _Target:
    metastore: _Metastore
    storage: Storage
    policy: Policy = POLICY
    source_identity: str = ""


@pytest.fixture
def windows(replica: _Replica) -> _Replica:
    """(0,1400], and two windows that change t, of which the first changes u, too."""
    replica.load(0, 1400, replica.changed("t", 0, 1400), replica.changed("u", 0, 1400))
    replica.load(1400, 1500, replica.changed("t", 1400, 1450), replica.changed("u", 1400, 1460))
    replica.load(1500, 1600, replica.changed("t", 1450, 1550))
    return replica


def test_a_table_that_goes_back_a_second_time_stands_where_the_loads_since_began(windows: _Replica) -> None:
    """Of the first undo's loads the catch-up alone is left to be taken back: it leads to where that undo went."""
    for name, last in (("t", 1550), ("u", 1460)):
        undo(windows.target, "db", name, 1400)
        assert release(windows.target, "db", name)
        windows.load(1400, 1600, windows.changed(name, 1400, last))
        undo(windows.target, "db", name, 1500)
        assert (windows.stands[name], windows.state.position(name)) == (1400, 1400)
        assert windows.state.held[name] == "undone to 1400 by request"
    assert windows.may_lose() == {}


@pytest.mark.parametrize("table", ["t", None])
def test_loads_of_hosts_whose_clocks_differ_go_back_in_the_order_in_which_they_ran(
    replica: _Replica, monkeypatch: pytest.MonkeyPatch, table: str | None
) -> None:
    """The clock of the second host is an hour behind: its load was taken for the first, and that of the first was reversed."""
    for hour, (before, after) in ((9, (0, 100)), (8, (100, 200)), (9, (200, 300))):
        monkeypatch.setattr(directories, "time", SimpleNamespace(time_ns=lambda hour=hour: hour * 3_600_000_000_000))
        replica.load(before, after, replica.changed("t", before, after))
    undo(replica.target, "db", table, 200)
    assert (replica.stands, replica.state.position("t")) == ({"t": 200}, 200)
    undo(replica.target, "db", table, 100)
    assert (replica.stands, replica.state.position("t")) == ({"t": 100}, 100)


def test_a_database_goes_back_to_a_load_that_a_table_is_behind(windows: _Replica) -> None:
    undo(windows.target, "db", "t", 1400)
    undo(windows.target, "db", None, 1500)
    assert (windows.state.undone, windows.state.applied, dict(windows.state.at)) == (1500, 1500, {"t": 1400})
    assert release(windows.target, "db")
    assert (windows.state.undone, windows.may_lose(), windows.state.released_names()) == (None, {}, ["t"])
    windows.load(1400, 1600, windows.changed("t", 1400, 1550))
    undo(windows.target, "db", None, 1500)  # the trace of the first undo outlives this one
    assert (windows.stands["t"], windows.state.position("t"), windows.state.position("u")) == (1400, 1400, 1500)


@pytest.mark.parametrize("table", ["t", None])
def test_a_target_that_was_restored_from_an_older_state_is_recovered_first(windows: _Replica, table: str | None) -> None:
    """An undo to a load that its metastore does not have changed nothing but the state, and the events up to there never came."""
    windows.metastore.home = database_with_state(windows.metastore.home, ReplicaState(OURS, 1400, 1, "h1400"))
    windows.metastore.kept = {name: windows.table(name, 1400) for name in "tu"}
    for evid in (1400, 1600):
        _refused(windows, "its storage was loaded up to 1600: .* restored from an older state: hive-repl recover db", evid, table)
        with pytest.raises(Refused, match="restored from an older state"):
            undo(windows.target, "db", table, evid, dry_run=True)


@pytest.mark.parametrize("table", ["t", None])
def test_no_undo_leads_to_before_a_recovery_of_a_restored_target_that_was_killed_at_its_end(
    windows: _Replica, table: str | None
) -> None:
    """It had said that it was one, and written the state, but had not yet taken the loads before for what they were."""
    windows.load(1600, 1700, windows.changed("t", 1550, 1650), restored=True)
    windows.load(1700, 1800, windows.changed("t", 1650, 1750))
    for dry in (True, False):
        with pytest.raises(BadRequest, match="the nearest that can be undone to: 1700, 1800"):
            undo(windows.target, "db", table, 1600, dry_run=dry)
    undo(windows.target, "db", table, 1700)
    assert windows.stands["t"] == 1650


@pytest.mark.parametrize("table", ["t", None])
def test_no_undo_leads_to_a_load_whose_journal_is_deleted_in_part(windows: _Replica, table: str | None) -> None:
    """Object stores delete file by file, and may be killed. The state of now was taken for the one of then: events were lost."""
    first, second, _ = windows.journal.entries()
    windows.target.storage.delete(f"{first.directory}/state")
    near = "that is still kept ended at event 1400 .*; the nearest that can be undone to: 1500, 1600$"
    _refused(windows, near, 1400, table, BadRequest)
    windows.target.storage.delete(f"{second.directory}/state")
    for evid in (1400, 1500):
        _refused(windows, "the nearest that can be undone to: 1600$", evid, table, BadRequest)
    undo(windows.target, "db", table, 1600)
    assert windows.stands == {"t": 1550, "u": 1460}


@pytest.mark.parametrize("table", ["t", None])
def test_a_recovery_that_compared_tables_before_an_undo_is_not_loaded(windows: _Replica, table: str | None) -> None:
    """What was equal then is not now."""
    windows.metastore.home = database_with_state(windows.metastore.home, replace(windows.state, recovery="token"))
    undo(windows.target, "db", table, 1400, dry_run=True)
    assert windows.state.recovery == "token"
    undo(windows.target, "db", table, 1400)
    assert windows.state.recovery == ""


def test_no_table_is_undone_that_an_interrupted_load_would_bring_back(windows: _Replica) -> None:
    """It ended the undo, with whatever was loaded next. The state of an undone database names no such load."""
    windows.metastore.home = database_with_state(windows.metastore.home, replace(windows.state, checkpoint="dumps/killed"))
    _refused(windows, "the load of dumps/killed into 'db' was interrupted, and is done before whatever is loaded next", 1400, "t")
    undo(windows.target, "db", None, 1400)
    assert (windows.state.checkpoint, windows.state.undone) == ("", 1400)


def test_the_replica_of_another_policy_is_neither_taken_back_nor_released(windows: _Replica) -> None:
    """Its own loads waited then, for an undo of which its operators knew nothing."""
    undo(windows.target, "db", "t", 1400)
    windows.metastore.home = database_with_state(windows.metastore.home, replace(windows.state, policy="b"))
    before, calls = windows.state, list(windows.metastore.calls)
    changes = (
        lambda: undo(windows.target, "db", None, 1400),
        lambda: undo(windows.target, "db", "u", 1400, dry_run=True),
        lambda: release(windows.target, "db", "t"),
    )
    for change in changes:
        with pytest.raises(Refused, match="'db' is written by the policy 'b', and this one is 'default'"):
            change()
    assert (windows.state, windows.metastore.calls) == (before, calls)


def test_nor_is_one_of_another_source_whose_policy_has_the_same_name(windows: _Replica) -> None:
    cast("_Target", windows.target).source_identity = "another"
    before = windows.state
    for change in (lambda: undo(windows.target, "db", None, 1400), lambda: release(windows.target, "db")):
        with pytest.raises(Refused, match="'db' is a replica of uuid/db, and the source of this policy 'default' is another"):
            change()
    assert windows.state == before


def test_loads_since_that_began_lower_for_another_table_do_not_matter(windows: _Replica) -> None:
    """A window that begins where a held table stands has lanes of others, which stand at what was applied."""
    windows.load(1300, 1700, windows.changed("t", 1550, 1650))
    undo(windows.target, "db", "t", 1600)
    assert (windows.stands["t"], windows.state.position("t")) == (1550, 1600)
    release(windows.target, "db", "t")
    undo(windows.target, "db", None, 1600)
    assert (windows.state.applied, windows.state.at) == (1600, {})


def _left_unfinished(replica: _Replica, survived: int) -> bool:
    replica.metastore.dies = survived
    try:
        undo(replica.target, "db", None, 1400)
    except Killed:
        return True
    finally:
        replica.metastore.dies = -1
    return False


@pytest.mark.parametrize("survived", range(5))
def test_an_undo_that_is_left_unfinished_and_released_loses_nothing(windows: _Replica, survived: int) -> None:
    """Its loads are done no longer, so that their events come again, and the target is not taken for a restored one."""
    before = windows.stands
    if not _left_unfinished(windows, survived):
        assert survived == 4, "the state, and three changes of tables"
    released = release(windows.target, "db")
    assert released == (survived > 0)
    assert windows.may_lose() == {}
    assert (windows.state.applied, windows.stands) == (1400, windows.stands) if released else (1600, before)
    assert forgotten(windows.target.storage, windows.location, windows.state.applied or 0) is None
    windows.load(1400, 1600, windows.changed("t", windows.stands["t"], 1550), windows.changed("u", windows.stands["u"], 1460))
    with pytest.raises(BadRequest, match="that is still kept ended at event 1500"):
        undo(windows.target, "db", None, 1500)  # the database may have stood anywhere in that load
    undo(windows.target, "db", None, 1400)
    assert (windows.stands, windows.state.applied) == ({"t": 1400, "u": 1400}, 1400)
    assert [one.to_evid for one in finished_loads(windows.target.storage, windows.location)] == [1400]


@pytest.mark.parametrize("survived", range(5))
def test_an_undo_that_is_left_unfinished_goes_on_where_it_is_run_again(windows: _Replica, survived: int) -> None:
    _left_unfinished(windows, survived)
    undo(windows.target, "db", None, 1400)
    assert (windows.stands, windows.state.applied, windows.state.undone) == ({"t": 1400, "u": 1400}, 1400, 1400)
    assert {entry.status for entry in windows.journal.entries()[1:]} == {"undone"}


@pytest.mark.parametrize("table", ["u", None])
def test_an_undo_of_a_table_that_is_gone_is_refused_before_it_changes_anything(windows: _Replica, table: str | None) -> None:
    """It had taken back the loads since by then, and the state."""
    del windows.metastore.kept["u"]
    _refused(windows, "the target table db.u went away without a load: repair it instead", 1400, table)
    with pytest.raises(Refused, match="went away without a load"):
        undo(windows.target, "db", table, 1400, dry_run=True)
    undo(windows.target, "db", "t", 1400)
    assert windows.stands == {"t": 1400}


def test_a_table_that_is_gone_under_a_name_that_renames_led_to_is_found(windows: _Replica) -> None:
    """The names of the lanes are others than that of today; where all is there, nothing is missing."""
    steps = (Step("RenameTable", 1650, "t", new_name="w"), Step("CreateTable", 1660, "t", directory="d"))
    after = {"t": windows.table("t", 1660), "w": windows.table("w", 1650)}
    windows.load(1600, 1700, (LaneRecord(("t", "w"), steps, {"t": windows.table("t", 1550)}), dict(after)))
    del windows.metastore.kept["w"]
    _refused(windows, r"the target table db\.t went away", 1400)
    windows.metastore.kept["w"] = after["w"]  # type: ignore[assignment]
    undo(windows.target, "db", None, 1400)
    assert windows.stands == {"t": 1400, "u": 1400}


def test_a_users_table_that_a_load_adopted_under_the_name_of_a_replica_that_was_dropped_is_found(windows: _Replica) -> None:
    """The undo came to it once the later load was taken back."""
    windows.load(1600, 1700, _dropped(windows))
    theirs = windows.table("t", 0, ours=False)
    windows.load(1700, 1800, (LaneRecord(("t",), (Step("Adopt", 1750, "t"),), {"t": theirs}), {"t": windows.table("t", 1750)}))
    _refused(windows, r"the target's db\.t exists and is not a replica of this source", 1600)
    undo(windows.target, "db", None, 1700)


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("name", ["nosuch", "theirs"])
def test_a_name_that_is_no_replica_is_refused(windows: _Replica, name: str, *, dry_run: bool) -> None:
    """It said that the table was back at the event, and held the name, so that the events of a later table of it waited."""
    windows.metastore.kept["theirs"] = windows.table("theirs", 0, ours=False)
    calls, state, entries = list(windows.metastore.calls), windows.state, windows.journal.entries()
    with pytest.raises(BadRequest, match=rf"the target has no replica db\.{name}, and no load since has changed one"):
        undo(windows.target, "db", name, 1400, dry_run=dry_run)
    assert (windows.metastore.calls, windows.state, windows.journal.entries()) == (calls, state, entries)


def test_a_replica_that_a_load_has_dropped_or_that_no_load_has_changed_since_is_known(windows: _Replica) -> None:
    windows.load(1600, 1700, _dropped(windows))
    windows.load(1700, 1800)
    undo(windows.target, "db", "u", 1700)
    assert windows.state.held == {"u": "undone to 1700 by request"}
    undo(windows.target, "db", "t", 1600)
    assert windows.stands["t"] == 1550


def test_a_table_that_its_undo_has_dropped_is_known_to_the_next_one(windows: _Replica) -> None:
    """Also to the same one, which is run again after a kill."""
    made = LaneRecord(("v",), (Step("CreateTable", 1650, "v", directory="d"),))
    windows.load(1600, 1700, (made, {"v": windows.table("v", 1650)}))
    for _ in range(2):
        undo(windows.target, "db", "v", 1600)
        assert "v" not in windows.stands


def _dropped(replica: _Replica) -> tuple[LaneRecord, dict[str, Table | None]]:
    step = Step("DropTable", 1650, "t", origin="t")
    return LaneRecord(("t",), (step,), {"t": replica.table("t", 1550)}), {"t": None}


def test_a_users_table_that_has_a_dropped_replicas_name_is_not_taken(windows: _Replica) -> None:
    windows.load(1600, 1700, _dropped(windows))
    windows.metastore.kept["t"] = theirs = windows.table("t", 0, ours=False)
    _refused(windows, "the target's db.t exists and is not a replica of this source: rename or drop it there", 1600)
    assert windows.metastore.kept["t"] == theirs
    del windows.metastore.kept["t"]
    undo(windows.target, "db", None, 1600)
    assert windows.stands["t"] == 1550


def test_a_users_table_that_has_a_renamed_replicas_name_is_not_taken(windows: _Replica) -> None:
    """Also one in the middle of a lane, whose name no table has before or after it."""
    steps = (Step("RenameTable", 1650, "t", new_name="v"), Step("RenameTable", 1660, "v", new_name="w"))
    moved = windows.table("w", 1660)
    windows.load(1600, 1700, (LaneRecord(("t", "v", "w"), steps, {"t": windows.table("t", 1550)}), {"t": None, "w": moved}))
    for name in ("t", "v"):
        windows.metastore.kept[name] = windows.table(name, 0, ours=False)
        _refused(windows, f"the target's db.{name} exists and is not a replica", 1600)
        del windows.metastore.kept[name]
    undo(windows.target, "db", None, 1600)
    assert windows.stands == {"t": 1550, "u": 1460}


@pytest.mark.parametrize("made", [False, True], ids=["from before", "made in the window"])
@pytest.mark.parametrize("kind", ["RenameTable", "RenamePartition"])
def test_no_rename_is_undone_with_which_the_metastore_moved_the_data(windows: _Replica, kind: str, *, made: bool) -> None:
    """What was at the former place may be gone or taken: the table would be empty, or the undo would stop half-way."""
    before, after = (windows.table("a", evid, keys=("ds",)) for evid in (1400, 1650))
    if kind == "RenameTable":
        after.tableName, step = "b", Step(kind, 1650, "a", new_name="b")
    else:
        step = Step(kind, 1650, "a", partitions=("ds=1", "ds=2"))
    for image in (before, after):
        image.tableType, image.parameters["transactional"] = "MANAGED_TABLE", "true"
    steps = (Step("CreateTable", 1640, "a", directory=f"{windows.location}/a"), step) if made else (step,)
    images = {} if made else {"a": before}
    windows.load(1600, 1700, (LaneRecord(("a", "b"), steps, images), {"a": None, after.tableName: after}))
    _refused(windows, rf"db\.\{{{after.tableName}\}} had .* data of transactions dropped or renamed, since", 1600)


def _refused(
    replica: _Replica, message: str, evid: int, table: str | None = None, error: type[ReplicationError] = Refused
) -> None:
    calls, state = list(replica.metastore.calls), replica.state
    statuses = [entry.status for entry in replica.journal.entries()]
    with pytest.raises(error, match=message):
        undo(replica.target, "db", table, evid)
    assert (replica.metastore.calls, replica.state) == (calls, state)
    assert [entry.status for entry in replica.journal.entries()] == statuses


def test_a_foreign_table_that_a_load_adopted_or_replaced_comes_back(windows: _Replica) -> None:
    """Undo runs again after a kill: what it restored is no stranger then."""
    record = LaneRecord(("f",), (Step("Adopt", 1650, "f"),), {"f": windows.table("f", 0, ours=False)})
    windows.load(1600, 1700, (record, {"f": windows.table("f", 1650)}))
    windows.metastore.kept["f"] = windows.table("f", 0, ours=False)
    undo(windows.target, "db", None, 1600)
    assert SOURCE not in windows.metastore.kept["f"].parameters


@pytest.mark.parametrize("kinds", [("Adopt",), ("DropStranger", "CreateTable")])
def test_what_the_users_made_in_the_place_of_a_replica_that_had_their_tables_name_stays(
    windows: _Replica, kinds: tuple[str, ...]
) -> None:
    """Their new table got the columns, properties, location and partitions of the one that they had before the load."""
    old = windows.table("f", 0, ours=False, keys=("ds",))
    parts = {"f": {"ds=1": _partition(windows, "1", 0, ours=False)}} if kinds == ("Adopt",) else {}
    record = LaneRecord(("f",), tuple(Step(kind, 1650, "f", directory="d") for kind in kinds), {"f": old}, parts)
    windows.load(1600, 1700, (record, {"f": windows.table("f", 1650, keys=("ds",))}))
    theirs = copy_of(old)
    theirs.parameters, theirs.sd.location, theirs.createTime = {CHANGED: NOW}, "file:///elsewhere/f", int(NOW)
    windows.metastore.kept["f"], windows.metastore.parts["f"] = theirs, {}
    undo(windows.target, "db", None, 1600)
    assert (windows.metastore.kept["f"], windows.metastore.parts["f"]) == (theirs, {})


@pytest.mark.parametrize("survived", [-1, 1, 2, 3])
@pytest.mark.parametrize("later", [False, True], ids=["by its lane", "by a later load"])
def test_an_adopted_table_that_was_dropped_has_its_partitions_again(
    windows: _Replica, monkeypatch: pytest.MonkeyPatch, survived: int, *, later: bool
) -> None:
    """The metastore gives it another time of creation."""
    old, parts = windows.table("f", 0, ours=False, keys=("ds",)), {"ds=1": _partition(windows, "1", 0, ours=False)}
    steps = Step("Adopt", 1650, "f"), Step("DropTable", 1660, "f", origin="f")
    if later:
        ours, taken = windows.table("f", 1650, keys=("ds",)), {"f": {"ds=1": _partition(windows, "1", 1650)}}
        windows.load(1600, 1700, (LaneRecord(("f",), steps[:1], {"f": old}, {"f": parts}), {"f": ours}))
        windows.load(1700, 1800, (LaneRecord(("f",), steps[1:], {"f": ours}, taken), {"f": None}))
    else:
        windows.load(1600, 1700, (LaneRecord(("f",), steps, {"f": old}, {"f": parts}), {"f": None}))
    create, windows.metastore.parts["f"] = _Metastore.create_table, {}

    def made(metastore: _Metastore, image: Table) -> None:
        create(metastore, image)
        metastore.kept[image.tableName].createTime = int(NOW)

    monkeypatch.setattr(_Metastore, "create_table", made)
    windows.metastore.dies = survived
    with suppress(Killed):
        undo(windows.target, "db", None, 1600)
    windows.metastore.dies = -1
    undo(windows.target, "db", None, 1600)
    assert windows.metastore.parts["f"] == parts


@pytest.mark.parametrize("survived", range(-1, 7))
@pytest.mark.parametrize("dropped", ["table", "table later", "partition", "partition later"])
def test_what_was_appended_to_an_adopted_table_goes_where_it_was_dropped_and_the_undo_is_killed(
    windows: _Replica, monkeypatch: pytest.MonkeyPatch, dropped: str, survived: int
) -> None:
    """The metastore gives what is put back another time of creation: it was taken for the users' own, and its files stayed."""
    old, part, storage = windows.table("f", 0, ours=False, keys=("ds",)), "ds=1", windows.target.storage
    old.parameters, places = {CHANGED: "5"}, (old.sd.location, f"{windows.location}/t/ds=1")
    theirs = _partition(windows, "1", 0, ours=False)
    theirs.parameters = {CHANGED: "5"}
    drop = (
        Step("DropTable", 1660, "f", origin="f") if "table" in dropped else Step("DropPartitions", 1660, "f", partitions=(part,))
    )
    ours, taken, left = windows.table("f", 1650, keys=("ds",)), _partition(windows, "1", 1650), None if "table" in dropped else ""
    steps, files = (Step("Adopt", 1650, "f"), Step("AppendData", 1655, "f", partitions=(part,))), dict.fromkeys(places, ("a",))
    after = None if left is None else ours
    if "later" in dropped:
        windows.load(1600, 1700, (LaneRecord(("f",), steps, {"f": old}, {"f": {part: theirs}}, files), {"f": ours}))
        windows.load(1700, 1800, (LaneRecord(("f",), (drop,), {"f": ours}, {"f": {part: taken}}), {"f": after}))
    else:
        windows.load(1600, 1700, (LaneRecord(("f",), (*steps, drop), {"f": old}, {"f": {part: theirs}}, files), {"f": after}))
    windows.metastore.parts["f"] = {}
    for place in places:
        for name in "ab":
            storage.write(f"{place}/{name}", b"1")
    create, add, retire = _Metastore.create_table, _Metastore.add_partitions, undo_module.OldDataLocator.retire

    def created(metastore: _Metastore, image: Table) -> None:
        create(metastore, image)
        metastore.kept[image.tableName].createTime = int(NOW)

    def added(metastore: _Metastore, database: str, table: str, images: list[Partition]) -> None:
        add(metastore, database, table, images)
        for image in images:
            metastore.parts[table][f"ds={image.values[0]}"].createTime = int(NOW)

    def retired(*given: object) -> None:
        windows.metastore._change("retire")  # pyright: ignore[reportPrivateUsage]
        retire(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(_Metastore, "create_table", created)
    monkeypatch.setattr(_Metastore, "add_partitions", added)
    monkeypatch.setattr(undo_module.OldDataLocator, "retire", retired)
    windows.metastore.dies = survived
    with suppress(Killed):
        undo(windows.target, "db", None, 1600)
    windows.metastore.dies = -1
    undo(windows.target, "db", None, 1600)
    found = windows.metastore.parts["f"][part]
    assert (windows.metastore.kept["f"].parameters, found.parameters, found.sd) == (old.parameters, theirs.parameters, theirs.sd)
    assert [list(storage.named_files(place)) for place in places] == [["a"], ["a"]]


@pytest.mark.parametrize("made", [True, False])
def test_a_record_in_several_files_knows_of_a_table_that_the_users_made_since(
    windows: _Replica, monkeypatch: pytest.MonkeyPatch, *, made: bool
) -> None:
    """Their table got the partitions of the one that was adopted, and files in directories of these were retired."""
    monkeypatch.setattr(lane_record, "PART", 4_000)
    storage, old = windows.target.storage, windows.table("f", 0, ours=False, keys=("ds",))
    old.parameters = {CHANGED: "5"}
    images = {f"ds={day}": _partition(windows, str(day), 0, ours=False) for day in range(30)}
    places = [old.sd.location, *(part.sd.location for part in images.values())]
    steps = Step("Adopt", 1650, "f"), Step("AppendData", 1660, "f", partitions=tuple(images))
    record = LaneRecord(("f",), steps, {"f": old}, {"f": images}, dict.fromkeys(places, ("a",)))
    windows.load(1600, 1700, (record, {"f": windows.table("f", 1660, keys=("ds",))}))
    assert len(windows.journal.lanes(windows.journal.entries()[-1])) > 4
    for place in places:
        for name in "ab":
            storage.write(f"{place}/{name}", b"1")
    if made:
        theirs = copy_of(old)
        theirs.parameters, theirs.sd.location, theirs.createTime = {CHANGED: NOW}, "file:///elsewhere/f", int(NOW)
        windows.metastore.kept["f"] = theirs
        windows.metastore.parts["f"] = {}
    else:
        windows.metastore.parts["f"] = {f"ds={day}": _partition(windows, str(day), 1660) for day in range(30)}
    undo(windows.target, "db", None, 1600)
    assert windows.metastore.parts["f"] == ({} if made else images)
    assert [sorted(storage.named_files(place)) for place in places] == [["a", "b"] if made else ["a"]] * 31


@pytest.mark.parametrize("made", [True, False])
def test_files_of_a_table_that_the_users_made_in_the_place_of_one_that_was_adopted_stay(windows: _Replica, *, made: bool) -> None:
    """They were retired, and deleted later, as what the load had added to the table that it adopted."""
    storage, old = windows.target.storage, windows.table("f", 0, ours=False)
    steps = Step("Adopt", 1650, "f"), Step("AppendData", 1660, "f")
    record = LaneRecord(("f",), steps, {"f": old}, files={old.sd.location: ("a",)})
    windows.load(1600, 1700, (record, {"f": windows.table("f", 1660)}))
    for name in "ab":
        storage.write(f"{old.sd.location}/{name}", b"1")
    if made:
        windows.metastore.kept["f"] = copy_of(old)
        windows.metastore.kept["f"].createTime, windows.metastore.kept["f"].parameters = int(NOW), {CHANGED: NOW}
    undo(windows.target, "db", None, 1600)
    assert sorted(storage.named_files(old.sd.location)) == (["a", "b"] if made else ["a"])


def test_a_partition_that_the_users_made_in_the_place_of_one_that_a_load_took_stays(windows: _Replica) -> None:
    """It pointed at the directory of the one that they had before the load."""
    table = windows.table("t", 1550, keys=("ds",))
    images = {f"ds={day}": _partition(windows, day, 0, ours=False) for day in "12"}
    steps = (Step("ReplaceData", 1650, "t", partitions=("ds=1", "ds=2")),)
    windows.load(1600, 1700, (LaneRecord(("t",), steps, {"t": table}, {"t": images}), {"t": table}))
    theirs = copy_of(images["ds=1"])
    theirs.sd.location = "file:///elsewhere/ds=1"
    windows.metastore.parts["t"] = {"ds=1": theirs, "ds=2": _partition(windows, "2", 1650)}
    undo(windows.target, "db", None, 1600)
    assert windows.metastore.parts["t"] == {"ds=1": theirs, "ds=2": images["ds=2"]}


@pytest.mark.parametrize("survived", range(1, 5))
def test_an_adopted_table_with_partitions_comes_back_where_the_undo_is_killed_and_run_again(
    windows: _Replica, survived: int
) -> None:
    old, parts = windows.table("f", 0, ours=False, keys=("ds",)), {"ds=1": _partition(windows, "1", 0, ours=False), "ds=2": None}
    steps = Step("Adopt", 1650, "f"), Step("AddPartitions", 1660, "f", partitions=("ds=2",))
    windows.load(1600, 1700, (LaneRecord(("f",), steps, {"f": old}, {"f": parts}), {"f": windows.table("f", 1650, keys=("ds",))}))
    windows.metastore.parts["f"] = {f"ds={day}": _partition(windows, day, 1660) for day in "12"}
    windows.metastore.dies = survived
    with suppress(Killed):
        undo(windows.target, "db", None, 1600)
    windows.metastore.dies = -1
    undo(windows.target, "db", None, 1600)
    assert (windows.metastore.kept["f"], windows.metastore.parts["f"]) == (old, {"ds=1": parts["ds=1"]})


@pytest.mark.parametrize(
    "kind", ["CreateFunction", "SetConstraints", "SetStatistics", "KeepAside", "KeepPartitionsAside", "CopySchemas"]
)
def test_what_is_not_taken_back_is_told(windows: _Replica, kind: str) -> None:
    """It was listed as undone, and stayed."""
    _, changed = windows.changed("t", 1550, 1660)
    steps = Step(kind, 1650, "f"), Step("AlterTable", 1660, "t")
    windows.load(1600, 1700, (LaneRecord(("t", "f"), steps, {"t": windows.table("t", 1550)}), changed))
    for dry_run in (True, False):
        done = undo(windows.target, "db", None, 1600, dry_run=dry_run)
        assert ([one.kind for one in done.steps], done.left) == (["AlterTable"], (UndoneStep(1650, kind, "db.f"),))


def _partition(replica: _Replica, day: str, evid: int, *, ours: bool = True) -> Partition:
    parameters = {SOURCE: OURS, LAST_ID: str(evid)} if ours else {}
    return Partition(
        [day], "db", "t", sd=StorageDescriptor(location=f"{replica.location}/t/ds={day}", parameters={}), parameters=parameters
    )


def test_files_that_joined_a_table_elsewhere_are_taken_back(replica: _Replica) -> None:
    """Their names in retention were cut out of their paths as if they lay in the database's directory, and were none at times."""
    storage, place = replica.target.storage, f"{replica.location.removesuffix('/db.db')}/lakes1/t"
    before, after = replica.table("t", 1400), replica.table("t", 1450)
    before.sd.location = after.sd.location = place
    storage.write(f"{place}/a", b"1")
    replica.load(0, 1400, (LaneRecord(("t",), (Step("CreateTable", 1400, "t", directory=place),)), {"t": before}))
    storage.write(f"{place}/b", b"1")
    record = LaneRecord(("t",), (Step("AppendData", 1450, "t"),), {"t": before}, files={place: ("a",)})
    replica.load(1400, 1500, (record, {"t": after}))
    undo(replica.target, "db", None, 1400)
    assert (replica.stands, list(storage.named_files(place))) == ({"t": 1400}, ["a"])


@pytest.mark.parametrize("survived", [-1, 1, 2, 3])
def test_a_dropped_table_with_more_partitions_than_a_file_of_the_journal_holds_comes_back(
    replica: _Replica, monkeypatch: pytest.MonkeyPatch, survived: int
) -> None:
    """Also where the undo is killed between its files, and run again."""
    monkeypatch.setattr(lane_record, "PART", 4_000)
    table, parts = replica.table("t", 1400, keys=("ds",)), [_partition(replica, str(day), 1400) for day in range(40)]
    replica.load(0, 1400, (LaneRecord(("t",), (Step("CreateTable", 1400, "t"),)), {"t": table}))
    images = {f"ds={part.values[0]}": part for part in parts}
    replica.metastore.parts["t"] = {}
    step = Step("DropTable", 1450, "t", origin="t")
    record = LaneRecord(("t",), (step,), {"t": table}, {"t": images}, {}, (f"{replica.location}/t",))
    replica.target.storage.mkdirs(f"{replica.location}/t")
    replica.load(1400, 1500, (record, {"t": None}))
    assert len(replica.journal.lanes(replica.journal.entries()[-1])) > 4
    if survived > 0:
        assert _left_unfinished(replica, survived)
    undo(replica.target, "db", None, 1400)
    assert (replica.stands, replica.metastore.parts["t"]) == ({"t": 1400}, images)


@pytest.mark.parametrize("lost", [False, True])
def test_files_that_joined_a_table_on_another_store_are_taken_back(
    replica: _Replica, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, lost: bool
) -> None:
    """They are copied, and stay where the lock is lost meanwhile: another load may have begun, which has them."""
    place, storage = "memory://bucket/ext/t", storage_with_bucket(monkeypatch, tmp_path.as_uri())
    replica.target.storage, replica.journal = storage, Journal(storage, replica.location)  # type: ignore[misc]
    before, after = replica.table("t", 1400), replica.table("t", 1450)
    before.sd.location = after.sd.location = place
    for name in "ab":
        storage.write(f"{place}/{name}", name.encode())
    replica.load(0, 1400, (LaneRecord(("t",), (Step("CreateTable", 1400, "t", directory=place),)), {"t": before}))
    record = LaneRecord(("t",), (Step("AppendData", 1450, "t"),), {"t": before}, files={place: ("a",)})
    replica.load(1400, 1500, (record, {"t": after}))
    if lost:
        with monkeypatch.context() as patch:
            # Of a file that is copied it is asked just before.
            patch.setattr(Storage, "checksum", lambda *_: patch.setattr(_NoLock, "lost", True))
            with pytest.raises(LockLost):
                undo(replica.target, "db", None, 1400)
        assert sorted(storage.named_files(place)) == ["a", "b"]
    undo(replica.target, "db", None, 1400)
    assert (replica.stands, list(storage.named_files(place))) == ({"t": 1400}, ["a"])
    assert [storage.read(one.uri) for one in storage.files(Layout(replica.location).retired_root, hidden=True)] == [b"b"]


def test_partitions_of_users_are_neither_changed_nor_dropped(windows: _Replica) -> None:
    """One has the name of a partition that the load dropped, the other that of one that it added."""
    table = windows.table("t", 1550, keys=("ds",))
    steps = (Step("DropPartitions", 1650, "t", partitions=("ds=1",)), Step("AddPartitions", 1660, "t", partitions=("ds=2",)))
    images = {"ds=1": _partition(windows, "1", 1500), "ds=2": None}
    windows.load(1600, 1700, (LaneRecord(("t",), steps, {"t": table}, {"t": images}), {"t": table}))
    theirs = {f"ds={day}": _partition(windows, day, 0, ours=False) for day in "12"}
    windows.metastore.parts["t"] = {"ds=1": theirs["ds=1"]}
    _refused(windows, r"the target's db\.t/ds=1 exists and is not a replica of this source: drop it there", 1600)
    assert windows.metastore.parts["t"] == {"ds=1": theirs["ds=1"]}
    windows.metastore.parts["t"] = {"ds=1": _partition(windows, "1", 1500), "ds=2": theirs["ds=2"]}
    undo(windows.target, "db", None, 1600)
    assert windows.metastore.parts["t"]["ds=2"] == theirs["ds=2"]


@pytest.mark.parametrize("survived", range(6))
def test_a_partition_that_goes_back_to_its_name_has_one_at_any_time(windows: _Replica, survived: int) -> None:
    """Under both names a load that continues from there would take the rename for done, and leave the old one."""
    table = windows.table("t", 1550, keys=("ds",))
    steps = (
        Step("RenamePartition", 1650, "t", partitions=("ds=1", "ds=2")),
        Step("AddPartitions", 1660, "t", partitions=("ds=3",)),
    )
    images = {"ds=1": _partition(windows, "1", 1500), "ds=2": None, "ds=3": None}
    windows.load(1600, 1700, (LaneRecord(("t",), steps, {"t": table}, {"t": images}), {"t": table}))
    windows.metastore.parts["t"] = {f"ds={day}": _partition(windows, day, evid) for day, evid in (("2", 1650), ("3", 1660))}
    windows.metastore.dies = survived
    try:
        undo(windows.target, "db", "t", 1600)
    except Killed:
        parts = windows.metastore.parts["t"]
        assert len(parts.keys() & {"ds=1", "ds=2"}) == 1
        assert "ds=1" not in parts or object_id(parts["ds=1"]) < 1650
    else:
        assert survived >= 3
    windows.metastore.dies = -1
    undo(windows.target, "db", "t", 1600)
    assert {name: object_id(part) for name, part in windows.metastore.parts["t"].items()} == {"ds=1": 1500}


@dataclass
class _Outside:
    """A managed table m and an external one x at ``place``, outside the database's directory; B appended two files to x.

    Args:
        replica: has loaded both, and B.
        place: the directory of x.
    """

    replica: _Replica
    place: str

    def table(self, name: str, evid: int, place: str) -> Table:
        table = self.replica.table(name, evid)
        table.sd.location = place
        return table

    def written(self, *files: str) -> None:
        for file in files:
            self.replica.target.storage.write(file, file.encode())

    def below(self, place: str) -> list[str]:
        return sorted(self.replica.target.storage.named_files(place))

    @property
    def x(self) -> str:
        return str(self.replica.metastore.kept["x"].sd.location)

    def overwrite(self, *, swept: bool) -> None:
        """W: new data for both; retention has moved the old one of m, after which ``.repl/retired/<W>`` exists."""
        lanes: list[tuple[LaneRecord, dict[str, Table | None]]] = []
        places = {"m": f"{self.replica.location}/m", "x": self.place}
        for evid, (name, old) in enumerate(places.items(), 1550):
            new = f"{self.replica.location}/.repl/{evid}-0"
            self.written(f"{new}/f")
            record = LaneRecord(
                (name,),
                (Step("ReplaceData", evid, name),),
                {name: self.table(name, 1450, old)},
                left=(old,),
                placed=(new,),
            )
            lanes.append((record, {name: self.table(name, evid, new)}))
        self.replica.load(1500, 1600, *lanes)
        if swept:
            token = self.replica.journal.entries()[-1].token
            self.replica.target.storage.rename(places["m"], Layout(self.replica.location).retired(token, places["m"]))


@pytest.fixture(params=["e/x", "ext/ab/x", "ext/landing/x"])
def outside(replica: _Replica, request: pytest.FixtureRequest, tmp_path: Path) -> _Outside:
    """Cut to the length of the database's, the first place is nothing, and the second begins with a slash."""
    found = _Outside(replica, f"{tmp_path.as_uri()}/{request.param}")
    rest = found.place[len(replica.location) + 1 :]
    assert {"e/x": rest == "", "ext/ab/x": rest == "/x", "ext/landing/x": rest == "nding/x"}[request.param]
    m, x = found.table("m", 1400, f"{replica.location}/m"), found.table("x", 1400, found.place)
    found.written(f"{replica.location}/m/f", f"{found.place}/f")
    records = [LaneRecord((name,), (Step("CreateTable", 1400, name, directory=name),)) for name in "mx"]
    replica.load(0, 1400, (records[0], {"m": m}), (records[1], {"x": x}))
    appended = LaneRecord(("x",), (Step("AppendData", 1450, "x"),), {"x": x}, files={found.place: ("f",)})
    altered = LaneRecord(("m",), (Step("AlterTable", 1450, "m"),), {"m": m})
    found.written(f"{found.place}/g", f"{found.place}/h")
    replica.load(
        1400,
        1500,
        (appended, {"x": found.table("x", 1450, found.place)}),
        (altered, {"m": found.table("m", 1450, f"{replica.location}/m")}),
    )
    return found


@pytest.mark.parametrize("swept", [False, True])
def test_an_external_table_outside_goes_back_to_its_own_data(outside: _Outside, *, swept: bool) -> None:
    """Retention moves nothing that lies there: what it has moved is another table's."""
    outside.overwrite(swept=swept)
    undo(outside.replica.target, "db", None, 1500)
    assert (outside.x, outside.below(outside.place)) == (outside.place, ["f", "g", "h"])
    assert outside.below(str(outside.replica.metastore.kept["m"].sd.location)) == ["f"]


def test_data_that_retention_has_moved_in_part_is_not_gone_back_to(outside: _Outside) -> None:
    """An undo that came between two batches of an object store pointed the table at the files that were moved by then."""
    outside.overwrite(swept=True)
    replica, place = outside.replica, f"{outside.replica.location}/m"
    mark = Layout(replica.location).half_retired(replica.journal.entries()[-1].token, place)
    outside.written(f"{place}/g")
    replica.target.storage.write(mark, place.encode())
    before = replica.stands
    with pytest.raises(Refused, match="m, which event 1600 replaced or dropped, is in part moved or deleted: let retention end"):
        undo(replica.target, "db", None, 1500)
    assert replica.stands == before
    replica.target.storage.delete(f"{place}/g")
    replica.target.storage.delete(mark)
    undo(replica.target, "db", None, 1500)


@pytest.mark.parametrize("damaged", [b"\xff\xfe", b"x" * 100_000], ids=["no text", "too large"])
def test_where_retention_is_at_cannot_be_read(outside: _Outside, damaged: bytes) -> None:
    """Users of the target can write there; what is no text ended an undo with a traceback."""
    outside.overwrite(swept=True)
    replica, place = outside.replica, f"{outside.replica.location}/m"
    mark = Layout(replica.location).half_retired(replica.journal.entries()[-1].token, place)
    replica.target.storage.write(mark, damaged)
    before = replica.stands
    with pytest.raises(Refused, match=r"/\.unfinished-\w+, which names old data .* cannot be read .*: let retention end, then"):
        undo(replica.target, "db", None, 1500)
    assert replica.stands == before


@pytest.mark.parametrize("overwritten", [False, True])
def test_what_was_added_to_an_external_table_outside_is_put_aside_and_nothing_else(
    outside: _Outside, *, overwritten: bool
) -> None:
    if overwritten:
        outside.overwrite(swept=True)
    undo(outside.replica.target, "db", None, 1400)
    assert (outside.x, outside.below(outside.place)) == (outside.place, ["f"])
    assert outside.below(str(outside.replica.metastore.kept["m"].sd.location)) == ["f"]
    retired = Layout(outside.replica.location).retired_root
    aside = {one for one in outside.below(retired) if "/external/" in one}
    path = outside.place.removeprefix("file://")
    assert {one.partition("/")[2] for one in aside} == {f"external{path}/{name}" for name in "gh"}
    assert len({one.partition("/")[0] for one in aside}) == 1


def test_a_view_that_was_dropped_or_made_since_goes_back_alone(windows: _Replica) -> None:
    """It has no directory."""
    old, made = windows.table("v", 1500), windows.table("new", 1660)
    for view in (old, made):
        view.sd.location, view.tableType = None, "VIRTUAL_VIEW"
    dropped = LaneRecord(("v",), (Step("DropTable", 1650, "v", origin="v"),), {"v": old})
    created = LaneRecord(("new",), (Step("CreateTable", 1660, "new"),))
    windows.load(1600, 1700, (dropped, {"v": None}), (created, {"new": made}), windows.changed("t", 1550, 1670))
    undo(windows.target, "db", "v", 1600)
    assert windows.stands == {"t": 1670, "u": 1460, "v": 1500, "new": 1660}
    assert windows.metastore.kept["v"] == old
    undo(windows.target, "db", None, 1600)
    assert windows.stands == {"t": 1550, "u": 1460, "v": 1500}
