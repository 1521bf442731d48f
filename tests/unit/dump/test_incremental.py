"""An incremental dump of a source that changes meanwhile, loaded with crashes: lists taken late fit the events around them."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hive_replication.dump.format.checkpoints import Checkpoint
from hive_replication.dump.format.record_types import DumpHeader, Scope
from hive_replication.dump.incremental.dump_events import dump_events
from hive_replication.errors import MissingEvents
from hive_replication.events import event_records as r
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.lane_planner import LanePlanner, LaneSettings
from hive_replication.load.plan.lanes import WindowEvent, segments, window_event
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.dialect import Features
from hive_replication.metastore.types import NotificationEvent
from hive_replication.progress import Silent
from tests import model
from tests.moving import Draft, moving_source
from tests.replica import MAPPING, Target

KINDS = (*model.KINDS, "insert unlisted", "insert unlisted", "relocate", "relocate many")


def planned(events: list[WindowEvent], target: Target, state: ReplicaState) -> list[op.Operation]:
    (segment,) = segments(events)
    settings = LaneSettings(target.view(state), MAPPING, model.includes)
    plans = [LanePlanner(lane, settings).plan()[0] for lane in segment.lanes]
    assert [plan.stop for plan in plans if plan.stop] == []
    return [operation for plan in plans for operation in plan.operations]


def window(source: model.Source, after: int, meanwhile: model.Actions, pace: list[int]) -> tuple[int, list[WindowEvent]]:
    """Dumps the events after one, while the source goes on."""
    draft = Draft()
    result = dump_events(moving_source(source, meanwhile, pace), Scope("db"), after, None, 0, draft, Silent())
    return result.last_evid, [window_event(record) for record in draft.events]


@settings(deadline=None, max_examples=100)
@given(
    model.actions(),
    model.actions(KINDS),
    model.actions(KINDS, least=0),
    st.lists(st.integers(0, 2), max_size=20),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_two_windows(
    before: model.Actions, first: model.Actions, meanwhile: model.Actions, pace: list[int], seed: int, unions: bool
) -> None:
    """The first is dumped while the second happens, and killed anywhere; after the second the target is the source's equal."""
    source, ids = model.Source(unique=True, unions=unions), random.Random(seed)
    for action in before:
        source.act(*action)
    begin = source.evid
    target = Target.replica(source, lambda: ids.randint(0, begin))
    for action in first:
        source.act(*action)
    middle, events = window(source, begin, meanwhile, pace)
    state = ReplicaState("uuid/db", begin)
    operations = planned(events, target, state)
    for operation in operations[: ids.randint(0, len(operations))]:
        target.apply(operation)
    for operation in planned(events, target, state):
        target.apply(operation)
    assert planned(events, target, state) == []
    end, events = window(source, middle, [], [])
    state = ReplicaState("uuid/db", middle)
    for operation in planned(events, target, state):
        target.apply(operation)
    assert end == source.evid
    assert target.state() == source.state()


@pytest.mark.parametrize("emptying", ["overwrite", "truncate"])
def test_what_is_listed_later_is_not_added_to_what_was_inserted_before(emptying: str) -> None:
    """Each event has a window of its own, dumped after all of them: rows of before an INSERT OVERWRITE stood beside its own."""
    source = model.Source(unique=True)
    for action in (("create", 0, 0, 1), ("insert", 0, 0, 0), ("insert", 0, 0, 0)):
        source.act(*action)
    begin = source.evid
    target = Target.replica(source, lambda: begin)
    for action in (("alter many", 0, 0, 0), ("insert", 0, 0, 0), (emptying, 0, 0, 0)):
        source.act(*action)
    for after in range(begin, source.evid):
        draft = Draft()
        dump_events(moving_source(source, [], []), Scope("db"), after, after + 1, 0, draft, Silent())
        events = [window_event(record) for record in draft.events]
        for operation in planned(events, target, ReplicaState("uuid/db", after)):
            target.apply(operation)
        assert target.state() == source.past[after + 1]


def test_an_overwrite_that_names_no_files_leaves_the_rows_until_the_next_one_where_that_is_known() -> None:
    """What it wrote is gone: the replica had no rows at all between the windows of the two, though the source always had some."""
    source = model.Source(unique=True)
    for action in (("create", 0, 0, 1), ("insert", 0, 0, 0), ("insert", 0, 0, 0)):
        source.act(*action)
    begin = source.evid
    target = Target.replica(source, lambda: begin)
    for _ in range(2):
        source.act("overwrite", 0, 0, 0)
        source.events[-1] = replace(cast("r.Insert", source.events[-1]), files=())
    for after, stands in ((begin, begin), (begin + 1, begin + 2)):
        draft = Draft()
        dump_events(moving_source(source, [], []), Scope("db"), after, after + 1, 0, draft, Silent())
        for operation in planned([window_event(record) for record in draft.events], target, ReplicaState("uuid/db", after)):
            target.apply(operation)
        assert target.state() == source.past[stands]


class Killed(Draft):
    """A dump whose writer is killed after an event."""

    def __init__(self, evid: int) -> None:
        super().__init__()
        self.evid = evid

    def due(self) -> bool:
        return True

    def keep(self, checkpoint: Checkpoint) -> None:
        if checkpoint.evid == self.evid:
            self.done = checkpoint
            raise KeyboardInterrupt


@settings(deadline=None, max_examples=100)
@given(model.actions(), model.actions((*KINDS, *["rename in", "rename out"] * 3), least=4), st.integers(0, 2**32))
@example([("create", 0, 0, 0)], [("rename out", 0, 0, 0), ("rename in", 0, 0, 0), ("alter", 0, 0, 0)], 1)
def test_a_dump_that_is_gone_on_with_takes_in_the_same_tables(before: model.Actions, meanwhile: model.Actions, seed: int) -> None:
    source = model.Source(unique=True)
    for action in before:
        source.act(*action)
    begin = source.evid
    for action in meanwhile:
        source.act(*action)

    def dump(draft: Draft) -> DumpHeader:
        made: Any = lambda _, table: SimpleNamespace(directory=f"dump of {table}")  # noqa: E731
        return dump_events(moving_source(source, [], []), Scope("db"), begin, None, 0, draft, Silent(), made).header

    killed, second, whole = Killed(begin + 1 + seed % len(meanwhile)), Draft(), Draft()
    with pytest.raises(KeyboardInterrupt):
        dump(killed)
    second.done, second.events = killed.done, killed.events
    assert dump(second).joined == dump(whole).joined
    assert second.events == whole.events


class OfTransactions:
    """A source of Hive 4: a transaction writes to a table that is dropped before its commit, which does not name the database."""

    features = Features("4.0.0", "uuid")

    def __init__(self, metastore: Any) -> None:
        self._metastore = metastore
        allocated = {"dbName": "db", "tableName": "u", "txnIdList": [3], "writeIdList": [1]}
        messages = [
            ("OPEN_TXN", {"fromTxnId": 3, "toTxnId": 3}, ""),
            ("ALLOC_WRITE_ID_EVENT", allocated, "u"),
            ("DROP_TABLE", {}, "other"),
            ("COMMIT_TXN", {"txnid": 3, "databases": ["a"]}, ""),
        ]
        self._log = [
            NotificationEvent(evid, 0, kind, "db" if table else "", table, json.dumps(message), messageFormat="json-0.2")
            for evid, (kind, message, table) in enumerate(messages, 1)
        ]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metastore, name)

    def current_event_id(self) -> int:
        return len(self._log)

    def event(self, evid: int) -> NotificationEvent | None:
        return self._log[evid - 1] if evid else None

    def events(self, after: int, until: int) -> Any:
        return iter(self._log[after:until])

    events_left = events

    def write_events(self, *_: object) -> list[Any]:
        return []


def test_a_dump_that_is_gone_on_with_knows_which_transactions_wrote_to_the_database() -> None:
    """The commit was left out, and the transaction that stands for it on the target stayed open."""

    def dump(draft: Draft) -> DumpHeader:
        side = moving_source(model.Source(), [], [])
        side = replace(side, metastore=cast("Any", OfTransactions(side.metastore)))
        return dump_events(side, Scope("db"), 0, None, 0, draft, Silent()).header

    killed, second, whole = Killed(2), Draft(), Draft()
    with pytest.raises(KeyboardInterrupt):
        dump(killed)
    second.done, second.events = killed.done, killed.events
    dump(second)
    dump(whole)
    assert second.events == whole.events
    assert [one.notification.type for one in whole.events][-1] == "COMMIT_TXN"


class Purged:
    """The log of a source that begins after an event."""

    def __init__(self, metastore: Any, begin: int) -> None:
        self._metastore, self._begin = metastore, begin

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metastore, name)

    def events(self, after: int, until: int) -> Any:
        if after < self._begin:
            raise MissingEvents(f"the log begins after event {self._begin}")
        return self._metastore.events(after, until)


def test_a_dump_is_gone_on_with_where_the_log_has_no_more_than_what_it_lacks(caplog: pytest.LogCaptureFixture) -> None:
    """It was thrown away, with all that the log does not have any more."""
    source = model.Source(unique=True)
    for action in (("create", 0, 0, 0), *[("insert", 0, 0, 0)] * 6):
        source.act(*action)

    def dump(draft: Draft, purged: int) -> DumpHeader:
        side = moving_source(source, [], [])
        side = replace(side, metastore=cast("Any", Purged(side.metastore, purged)))
        return dump_events(side, Scope("db"), 1, None, 0, draft, Silent()).header

    killed, second, whole = Killed(4), Draft(), Draft()
    with pytest.raises(KeyboardInterrupt):
        dump(killed, 0)
    second.done, second.events = killed.done, killed.events
    assert (dump(second, 4).to_evid, second.events) == (dump(whole, 0).to_evid, whole.events)
    assert "the dump goes on without looking at what it has already" in caplog.text
    with pytest.raises(MissingEvents):
        dump(second, 5)
