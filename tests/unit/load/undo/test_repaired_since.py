"""What an undo does with tables that were repaired since the event to which it goes back."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from hive_replication.dump.format.interface import DumpReader
from hive_replication.dump.format.record_types import DumpHeader
from hive_replication.errors import Refused
from hive_replication.load.apply.database import TargetDatabase
from hive_replication.load.command import _repairs  # pyright: ignore[reportPrivateUsage]
from hive_replication.load.journal.journal import Journal, Repairs
from hive_replication.load.journal.lane_record import LaneRecord, Step
from hive_replication.load.layout.directories import Layout
from hive_replication.load.replica.state import ReplicaState, database_with_state
from hive_replication.load.undo.repaired_since import RepairedTable
from hive_replication.load.undo.undo import Undo, release, undo
from hive_replication.metastore.types import Table
from tests.bootstraps import header
from tests.faults import Killed
from tests.unit.load.undo.test_undo import (
    OURS,
    _left_unfinished,  # pyright: ignore[reportPrivateUsage]
    _Replica,  # pyright: ignore[reportPrivateUsage]
    replica,
    windows,
)

__all__ = ["replica", "windows"]


def _repair(
    replica: _Replica,
    evid: int,
    lane: tuple[LaneRecord, dict[str, Table | None]],
    *,
    held: bool = False,
    repairs: Repairs = "level",
) -> None:
    """A repair of the lane's tables at an event, as ``hive-repl repair`` leaves it in the journal."""
    record, after = lane
    writer = replica.journal.begin(evid, evid, repairs=repairs)
    writer.lane(record)
    replica.metastore.kept |= {name: image for name, image in after.items() if image is not None}
    state = replica.state
    for name in record.names:
        state = state.quarantine(name, 0, "no space") if held else state.at_position(name, evid)
    writer.state(state)
    replica.metastore.home = database_with_state(replica.metastore.home, state)
    writer.done(None)


@pytest.mark.parametrize("table", ["t", None])
def test_a_table_that_was_repaired_since_stands_nowhere(windows: _Replica, table: str | None) -> None:
    """What the repair replaced came back as if it were the state at the event, and the next events were applied to it."""
    _repair(windows, 1650, windows.changed("t", 1550, 1650))
    done = [undo(windows.target, "db", table, 1400, dry_run=dry) for dry in (True, False)]
    assert [one.repaired for one in done] == [(RepairedTable("t", 1650, stays=False),)] * 2
    assert windows.stands["t"] == 1400
    assert (windows.state.lost, windows.state.held) == (["t"], {"t": "undone to 1400 by request"})
    assert windows.state.position("u") == (1600 if table else 1400)
    assert windows.state.unfinished == []
    release(windows.target, "db")
    assert windows.state.unfinished == ["t"], "the recovery brings it"


def test_it_stands_nowhere_after_another_undo_either(windows: _Replica) -> None:
    """Also where the repair is taken back by then, and where the second one goes less far."""
    _repair(windows, 1650, windows.changed("t", 1550, 1650))
    for table in ("t", "t", None):
        undo(windows.target, "db", table, 1500)
        assert (windows.stands["t"], windows.state.lost) == (1450, ["t"])
    undo(windows.target, "db", None, 1400)
    assert (windows.stands["t"], windows.state.lost) == (1400, ["t"])


def test_a_table_that_a_recovery_passed_over_since_an_undo_still_stands_nowhere(windows: _Replica) -> None:
    """Its events from there on were applied to what an earlier undo had left."""
    undo(windows.target, "db", "t", 1400)
    passed = windows.state.quarantine("t", 0, windows.state.held["t"])
    windows.metastore.home = database_with_state(windows.metastore.home, passed)
    undo(windows.target, "db", None, 1500)
    assert (windows.stands["t"], windows.state.lost, windows.state.position("u")) == (1400, ["t"], 1500)


@pytest.mark.parametrize("survived", range(1, 6))
def test_an_undo_over_a_repair_that_is_left_unfinished_still_says_so(windows: _Replica, survived: int) -> None:
    """Where it is run again, and where it is released."""
    _repair(windows, 1650, windows.changed("t", 1550, 1650))
    _left_unfinished(windows, survived)
    assert windows.state.lost == ["t"]
    undo(windows.target, "db", None, 1400)
    assert (windows.stands, windows.state.lost) == ({"t": 1400, "u": 1400}, ["t"])
    release(windows.target, "db")
    assert windows.state.unfinished == ["t"]


def test_what_was_repaired_before_the_event_goes_back_as_others_do(windows: _Replica) -> None:
    _repair(windows, 1600, windows.changed("t", 1550, 1600))
    windows.load(1600, 1700, windows.changed("u", 1460, 1660))
    windows.load(1700, 1800, windows.changed("t", 1600, 1750))
    assert undo(windows.target, "db", None, 1700).repaired == ()
    assert (windows.stands["t"], windows.state.lost) == (1600, [])


@pytest.mark.parametrize("repairs", ["level", "behind"])
@pytest.mark.parametrize("table", ["t", None])
def test_a_table_that_no_event_has_changed_until_its_repair_stays_as_that_left_it(
    windows: _Replica, table: str | None, repairs: Repairs
) -> None:
    """Two repairs, and a window since; but not where a repair brought what events would have, as of a table that was held."""
    damaged = windows.stands["t"]
    _repair(windows, 1620, windows.changed("t", 1550, 1620), repairs=repairs)
    _repair(windows, 1650, windows.changed("t", 1620, 1650))
    windows.load(1600, 1700, windows.changed("t", 1650, 1660), windows.changed("u", 1460, 1670))
    stays = repairs == "level"
    done = undo(windows.target, "db", table, 1600)
    assert done.repaired == (RepairedTable("t", 1650, stays=stays),)
    assert windows.stands == {"t": 1650 if stays else damaged, "u": 1670 if table else 1460}
    assert (windows.state.position("t"), windows.state.lost) == ((1650, []) if stays else (0, ["t"]))
    again = undo(windows.target, "db", None, 1500)
    assert [one.stays for one in again.repaired] == ([False] if stays else []), "a window had changed it before"
    assert (windows.stands, windows.state.lost) == ({"t": 1450, "u": 1460}, ["t"])


def _repaired_twice(windows: _Replica) -> None:
    """A level repair at 1620, two windows, and another level repair of what somebody had damaged since."""
    _repair(windows, 1620, windows.changed("t", 1550, 1620))
    windows.load(1600, 1700, windows.changed("t", 1620, 1660))
    windows.load(1700, 1740, windows.changed("t", 1660, 1730))
    _repair(windows, 1750, windows.changed("t", 1730, 1750))


@pytest.mark.parametrize("table", ["t", None])
def test_a_second_undo_goes_beyond_an_earlier_repair_too_where_the_first_has_reversed_a_later_one(
    windows: _Replica, table: str | None
) -> None:
    """It said that the table stays as the earlier repair left it, and the damage stayed for good."""
    _repaired_twice(windows)
    for evid, repaired, stands in ((1700, 1750, 1660), (1600, 1620, 1550)):
        assert undo(windows.target, "db", table, evid).repaired == (RepairedTable("t", repaired, stays=False),)
        assert (windows.stands["t"], windows.state.lost) == (stands, ["t"])
    release(windows.target, "db")
    assert windows.state.unfinished == ["t"], "the recovery brings it"


@pytest.mark.parametrize("passed", ["undone to 1700 by request", "a recovery could not dump it"])
def test_nor_does_it_stay_where_a_recovery_could_not_bring_it_in_between(windows: _Replica, passed: str) -> None:
    _repaired_twice(windows)
    undo(windows.target, "db", "t", 1700)
    windows.metastore.home = database_with_state(windows.metastore.home, windows.state.quarantine("t", 0, passed))
    assert undo(windows.target, "db", None, 1600).repaired == (RepairedTable("t", 1620, stays=False),)
    assert (windows.stands["t"], windows.state.lost) == (1550, ["t"])


@pytest.mark.parametrize("survived", range(1, 9))
def test_an_undo_over_two_repairs_that_is_killed_and_run_again_says_the_same(windows: _Replica, survived: int) -> None:
    _repaired_twice(windows)
    windows.metastore.dies = survived
    with suppress(Killed):
        undo(windows.target, "db", None, 1600)
    windows.metastore.dies = -1
    assert windows.state.lost == ["t"]
    undo(windows.target, "db", None, 1600)
    assert (windows.stands["t"], windows.state.lost) == (1550, ["t"])


def test_what_stands_nowhere_and_cannot_go_back_is_refused(windows: _Replica) -> None:
    """A repair of it brings it, and an undo after that finds a state to stay in."""
    _gone_and_repaired(windows)
    windows.load(1700, 1740, windows.changed("u", 1660, 1730))
    _repair(windows, 1750, windows.changed("u", 1730, 1750))
    undo(windows.target, "db", "u", 1700)
    assert windows.state.lost == ["u"]
    with pytest.raises(Refused, match=r"the target table db\.u went away without a load: repair it instead"):
        undo(windows.target, "db", None, 1400)
    _repair(windows, 1760, windows.changed("u", 1660, 1760), repairs="behind")
    done = undo(windows.target, "db", None, 1400)
    assert done.repaired[-1:] == (RepairedTable("u", 1760, stays=True),)


def _gone_and_repaired(windows: _Replica) -> None:
    """Somebody dropped u by hand; a repair made it again, and a window has changed it since."""
    del windows.metastore.kept["u"]
    step = Step("CreateTable", 1650, "u", directory=f"{windows.location}/u")
    _repair(windows, 1650, (LaneRecord(("u",), (step,)), {"u": windows.table("u", 1650)}))
    windows.load(1600, 1700, windows.changed("u", 1650, 1660), windows.changed("t", 1550, 1670))


def _stays(windows: _Replica, done: Undo) -> None:
    assert done.repaired == (RepairedTable("u", 1650, stays=True),)
    assert (windows.stands["u"], windows.state.position("u"), windows.state.lost) == (1650, 1650, [])


@pytest.mark.parametrize("table", ["u", None])
def test_a_table_that_cannot_go_back_beyond_its_repair_stays_as_repaired(windows: _Replica, table: str | None) -> None:
    """The undo dropped it, and stopped at its images of before."""
    _gone_and_repaired(windows)
    for evid in (1500, 1400):
        _stays(windows, undo(windows.target, "db", table, evid))
        assert windows.stands["t"] == (1670 if table else {1500: 1450, 1400: 1400}[evid])
    assert ("u" in windows.state.held) == (table is not None)
    release(windows.target, "db")
    assert windows.state.position("u") == 1650


@pytest.mark.parametrize("survived", range(8))
def test_it_stays_also_where_the_undo_is_killed_and_run_again(windows: _Replica, survived: int) -> None:
    _gone_and_repaired(windows)
    windows.metastore.dies = survived
    try:
        undo(windows.target, "db", None, 1400)
    except Killed:
        assert survived == 0 or windows.state.position("u") == 1650
    windows.metastore.dies = -1
    done = undo(windows.target, "db", None, 1400)
    assert done.repaired[-1:] == (RepairedTable("u", 1650, stays=True),)
    _stays(windows, done)
    assert windows.stands["t"] == 1400
    found = [(one.to_evid, one.status) for one in Journal(windows.target.storage, windows.location).entries()]
    assert found == [(1400, "done"), (1500, "part"), (1600, "undone"), (1650, "part"), (1700, "undone")]


@pytest.mark.parametrize("table", ["t", None])
def test_a_table_that_somebody_dropped_since_its_repair_does_not_stay(windows: _Replica, table: str | None) -> None:
    """The undo said that it stays as the repair left it, and nothing brought it."""
    _repair(windows, 1650, windows.changed("t", 1550, 1650))
    windows.load(1600, 1700, windows.changed("t", 1650, 1660))
    repaired = windows.metastore.kept.pop("t")
    for evid in (1600, 1400):
        with pytest.raises(Refused, match=r"the target table db\.t went away without a load: repair it instead"):
            undo(windows.target, "db", table, evid)
    windows.metastore.kept["t"] = repaired
    undo(windows.target, "db", table, 1600)
    windows.metastore.kept["t"] = windows.table("t", 0, ours=False)
    with pytest.raises(Refused, match=r"db\.t exists and is not a replica of this source"):
        undo(windows.target, "db", table, 1600)


def test_a_table_that_a_repair_made_anew_and_somebody_dropped_does_not_stay_either(windows: _Replica) -> None:
    _gone_and_repaired(windows)
    del windows.metastore.kept["u"]
    with pytest.raises(Refused, match=r"the target table db\.u went away without a load: repair it instead"):
        undo(windows.target, "db", None, 1500)


def test_a_repair_that_dropped_and_renamed_tables_is_no_reason_to_refuse(windows: _Replica) -> None:
    """Those are not there, and a repair left them so."""
    steps = (Step("DropTable", 1650, "u", origin="u"), Step("RenameTable", 1650, "t", new_name="w"))
    lane = LaneRecord(("t", "u", "w"), steps, {"t": windows.table("t", 1550), "u": windows.table("u", 1460)})
    _repair(windows, 1650, (lane, {"w": windows.table("w", 1650)}))
    del windows.metastore.kept["t"], windows.metastore.kept["u"]
    done = undo(windows.target, "db", None, 1600)
    assert done.repaired == tuple(RepairedTable(name, 1650, stays=True) for name in "tuw")
    assert windows.stands == {"w": 1650}


@pytest.mark.parametrize("half", [True, False])
def test_data_that_retention_is_at_is_no_reason_to_stay(windows: _Replica, *, half: bool) -> None:
    """Whether the table stayed depended on the moment; what is gone for good is one."""
    storage, place = windows.target.storage, f"{windows.location}/t"
    lane, after = windows.changed("t", 1550, 1650)
    _repair(windows, 1650, (replace(lane, left=(place,)), after), repairs="behind")
    token = windows.journal.entries()[-1].token
    if half:
        layout = Layout(windows.location)
        for directory in (layout.retired(token, place), place):
            storage.write(f"{directory}/f", b"1")
        storage.write(layout.half_retired(token, place), place.encode())
        with pytest.raises(Refused, match="is in part moved or deleted: let retention end, then undo again"):
            undo(windows.target, "db", "t", 1600)
    else:
        assert undo(windows.target, "db", "t", 1600).repaired == (RepairedTable("t", 1650, stays=True),)


def test_a_repair_that_failed_is_no_state_to_stay_in(windows: _Replica) -> None:
    del windows.metastore.kept["u"]
    lane = LaneRecord(("u",), (Step("CreateTable", 1650, "u", directory="d"),))
    _repair(windows, 1650, (lane, {"u": windows.table("u", 1650)}), held=True)
    with pytest.raises(Refused, match="went away without a load"):
        undo(windows.target, "db", None, 1400)


def test_only_a_load_that_repairs_says_so_and_before_it_changes_anything(windows: _Replica) -> None:
    lane = windows.changed("t", 1550, 1650)[0]
    every: tuple[Repairs, ...] = "", "level", "behind"
    for repairs in every:
        writer = windows.journal.begin(1600, 1650, repairs=repairs)
        assert not windows.target.storage.exists(writer.directory), "one that changes nothing leaves no journal"
        for _ in range(2):
            writer.lane(lane)
        found = windows.journal.repairs(one for one in windows.journal.entries() if one.token == writer.token)
        assert found == ({writer.token: repairs} if repairs else {})


@pytest.mark.parametrize("table", ["t", None])
def test_a_repair_says_whether_events_had_brought_its_tables_as_far(table: str | None) -> None:
    level, part = ReplicaState(OURS, 60), header(60, table)
    assert _repairs(_at(level), _reader(part), table, repair=True) == "level"
    assert _repairs(_at(level), _reader(part), table, repair=False) == ""
    for state in (ReplicaState(OURS, 50), level.quarantine("t", 40, "no space"), level.quarantine("t", 60, "no space")):
        assert _repairs(_at(state), _reader(part), table, repair=True) == "behind"
    assert _repairs(_at(level), _reader(header(60, recovery="token")), None, repair=False) == "behind"
    assert _repairs(_at(level), _reader(replace(part, kind="incremental")), table, repair=True) == ""


def _at(state: ReplicaState) -> TargetDatabase:
    return cast("TargetDatabase", SimpleNamespace(state=state))


def _reader(part: DumpHeader) -> DumpReader:
    return cast("DumpReader", SimpleNamespace(header=part))
