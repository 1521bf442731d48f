"""Events of a dump that must not be followed: each holds its own lane, in the plan already; none ends in anything else."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.dump.format.record_types import EventRecord, FileGroup
from hive_replication.errors import Refused
from hive_replication.events import event_records as r
from hive_replication.events.decoders_by_event_type import notification
from hive_replication.events.files import FileRef
from hive_replication.events.transactions import TransactionWrite
from hive_replication.load.plan.lane_planner import LanePlanner, LaneSettings
from hive_replication.load.plan.lanes import WindowEvent, refused, segments, window_event
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica.name_mapping import NameMapping
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.target_view import TargetView
from hive_replication.load.untrusted_dump import validate_event, validate_files, validate_name
from hive_replication.metastore.names import table_directory
from hive_replication.policy import Root
from hive_replication.storage import Storage
from tests.unit.events.test_decoders_by_event_type import VERSIONS, recorded
from tests.unit.events.test_untrusted_messages import first, mutated, text_of, with_message

ROOT = "hdfs://127.0.0.1:25435/"
TARGET = cast("Target", SimpleNamespace(source_storage=Storage((Root(uri=ROOT), Root(uri="hdfs://127.0.0.1:20927/")))))
MAPPING = NameMapping(
    "uuid/recorded", "recorded", "recorded", f"{ROOT}source/warehouse/recorded.db", "hdfs://t/w/recorded.db", (ROOT,)
)


def checked(event: WindowEvent) -> WindowEvent:
    try:
        validate_event(TARGET, event)
    except Refused as error:
        return refused(event, str(error))
    return event


def plans(*events: WindowEvent) -> list[LanePlan]:
    settings = LaneSettings(TargetView(ReplicaState("uuid/recorded", 1)), MAPPING, lambda _: True, acid=True)
    return [LanePlanner(lane, settings).plan()[0] for one in segments(events) for lane in one.lanes]


def test_mutated_messages_are_planned_or_hold_their_lane() -> None:
    chosen = random.Random(243095)
    events = [event for version in VERSIONS for event in recorded(version)]
    for _ in range(3_000):
        event = chosen.choice(events)
        row = notification(with_message(event, mutated(chosen, text_of(event))))
        for plan in plans(checked(window_event(EventRecord(row)))):
            assert plan.stop is None or plan.stop.reason.isprintable()


def created(version: str = "hive4", name: str = "plain") -> r.Notification:
    row = notification(first(version, "CREATE_TABLE"))
    if name == "plain":
        return row
    message = json.loads(row.message)
    message["table"], message["tableObjJson"] = name, message["tableObjJson"].replace('"plain"', json.dumps(name))
    return replace(row, table=name, message=json.dumps(message))


@pytest.mark.parametrize(
    "file",
    [
        FileRef("file:///etc/passwd"),
        FileRef(f"{ROOT}a/../../b"),
        FileRef(f"{ROOT}a", subdir="../../x"),
        FileRef(f"{ROOT}a", checksum="0", cm_root="hdfs://elsewhere/cm"),
    ],
)
def test_a_file_that_must_not_be_read_holds_its_table(file: FileRef) -> None:
    bad = replace(window_event(EventRecord(created(), (FileGroup("", (file,)),))), row=created())
    good = window_event(EventRecord(replace(created(name="other"), evid=9_000)))
    found = {plan.names: plan.stop for plan in plans(checked(bad), checked(good))}
    assert found[("plain",)] is not None
    assert found[("other",)] is None


def test_a_location_that_leads_anywhere_holds_its_table() -> None:
    row = created()
    message = json.loads(row.message)
    image: dict[str, Any] = json.loads(message["tableObjJson"])
    image["7"]["rec"]["2"] = {"str": f"{ROOT}a/../../../b"}
    message["tableObjJson"] = json.dumps(image)
    (plan,) = plans(checked(window_event(EventRecord(replace(row, message=json.dumps(message))))))
    assert plan.stop is not None
    assert "may lead anywhere" in plan.stop.reason


def test_a_commit_of_which_the_dump_could_not_read_what_it_wrote_holds_its_tables() -> None:
    row = replace(notification(first("hive4", "COMMIT_TXN")), database="recorded")
    groups = (FileGroup("", (), table="a"), FileGroup("", (), table="b"))
    writes = (TransactionWrite("a", "", 1), TransactionWrite("b", "", 1))
    validate_event(TARGET, window_event(EventRecord(row, groups, writes=writes)))
    unread = window_event(EventRecord(row, groups))  # as the dump writes it where the metastore's own record is damaged
    with pytest.raises(Refused, match="could not read what the transaction wrote"):
        validate_event(TARGET, unread)
    assert refused(unread, "why").names == ("a", "b")


def test_a_commit_of_what_nobody_noted_holds_its_tables_until_they_are_repaired() -> None:
    row = replace(notification(first("hive4", "COMMIT_TXN")), database="recorded")
    unnoted = FileRef.unnoted_directory(f"{ROOT}b/delta_0000005_0000005_0000")
    groups = (FileGroup("", (), table="a"), FileGroup("", (unnoted,), table="b"))
    for writes in ((), (TransactionWrite("a", "", 1),)):
        event = window_event(EventRecord(row, groups, writes=writes))
        with pytest.raises(Refused, match=r"what lies in \S*/b/delta_0000005_0000005_0000/, of which its writer told .* nothing"):
            validate_event(TARGET, event)
        (plan,) = plans(checked(event))
        assert plan.stop is not None
        assert "repair the table" in plan.stop.reason
        assert (plan.names, plan.operations) == (("a", "b"), ())


def test_rows_that_would_get_other_ids_hold_their_table_until_they_are_compacted() -> None:
    with pytest.raises(
        Refused, match=r"^t has rows without ids, .*: write to it at the source, compact it .*, then repair the table$"
    ):
        validate_files(TARGET, (FileRef.renamed_directory(f"{ROOT}t"),), "t")


@pytest.mark.parametrize("kind", ["CREATE_FUNCTION", "DROP_FUNCTION"])
def test_a_function_whose_name_would_be_a_path_is_held(kind: str) -> None:
    row = notification(first("hive4", kind))
    message = json.loads(row.message)
    message["functionName"] = "../../f"
    if "functionObjJson" in message:
        message["functionObjJson"] = json.dumps(json.loads(message["functionObjJson"]) | {"1": {"str": "../../f"}})
    (plan,) = plans(checked(window_event(EventRecord(replace(row, message=json.dumps(message))))))
    assert plan.stop is not None
    assert "none of Hive's" in plan.stop.reason


def test_a_drop_ends_what_was_wrong_with_a_table() -> None:
    """Also of one that is named like a function; but an ALTER_TABLE that cannot be read may have been a rename of another one."""
    for name, held in (("plain", ("plain",)), ("f()", ("f() (table)",))):
        bad = checked(replace(window_event(EventRecord(created(name=name))), event=None, error="event 1 cannot be read"))
        assert bad.names == held
        drop = replace(created(name=name), type="DROP_TABLE", evid=9_000)
        (plan,) = plans(bad, checked(window_event(EventRecord(drop))))
        assert (plan.names, plan.stop, plan.operations) == (held, None, ())
    for row in (notification(one) for one in recorded("hive4") if one.eventType == "ALTER_TABLE"):
        altered = window_event(EventRecord(row))
        drops = [
            checked(window_event(EventRecord(replace(created(name=name), type="DROP_TABLE", evid=9_000))))
            for name in altered.names
        ]
        assert isinstance(altered.event, r.AlterTable)
        found = plans(refused(altered, "why"), *drops)
        assert any(plan.stop for plan in found) == altered.event.rename
    bad = replace(bad, row=replace(created(), type="ALTER_TABLE"))
    (plan,) = plans(bad, checked(window_event(EventRecord(replace(created(), type="DROP_TABLE", evid=9_000)))))
    assert plan.stop is not None


def test_names_that_metastores_accept_become_directories() -> None:
    for name in ("c/b", "..", "x y", "$x", "a.b"):
        validate_name(name, "a table")
        assert "/" not in table_directory(name)
        assert "." not in table_directory(name)
    assert table_directory("c/b") == "c-47-b"
    for name in ("", " ", "a\nb", "a\0", "\ud800"):
        with pytest.raises(Refused, match="none of Hive's"):
            validate_name(name, "a table")


def test_the_drop_of_a_function_ends_what_was_wrong_with_it() -> None:
    """What was refused of it was held under the type of its event, which no drop can name."""
    made = window_event(
        EventRecord(notification(first("hive4", "CREATE_FUNCTION")), (FileGroup("", (FileRef("file:///f.jar"),)),))
    )
    drop = window_event(EventRecord(replace(notification(first("hive4", "DROP_FUNCTION")), evid=9_000)))
    assert made.event is not None
    assert made.event.names == drop.names
    (held,) = plans(checked(made))
    assert (held.names, held.stop is not None) == (made.event.names, True)
    (plan,) = plans(checked(made), checked(drop))
    assert ([one.kind for one in plan.operations], plan.stop) == (["DropFunction"], None)
