"""Transactions of a stretch begin together (pure)."""

from __future__ import annotations

from hive_replication.load.operations.kinds import Content, DropTable, Operation
from hive_replication.load.operations.open_transactions import OpenReplayed, ascending, batch_opens
from hive_replication.load.operations.transactions import AllocateTargetWriteIds, ReplayAbort, ReplayCommit, Written
from hive_replication.metastore.replicated_transactions import Replayed


def begin(evid: int, table: str, *write_ids: tuple[int, int]) -> AllocateTargetWriteIds:
    return AllocateTargetWriteIds(evid, table, "p", write_ids)


def test_all_write_ids_of_a_stretch_are_given_out_first() -> None:
    commit, abort = ReplayCommit(3, "a", "p", 11, ()), ReplayAbort(6, "a", "p", 12)
    lane = [begin(1, "a", (11, 1)), begin(2, "b", (11, 7)), commit, begin(4, "a", (12, 2)), begin(5, "b", (9, 8)), abort]
    first, *others = batch_opens(lane)
    assert first == OpenReplayed(1, "a", "p", (("a", ((11, 1), (12, 2))), ("b", ((11, 7), (9, 8)))), parts=(1, 2, 4, 5))
    assert others == [commit, abort]


def test_nothing_is_moved_across_another_operation() -> None:
    lane: list[Operation] = [begin(1, "a", (1, 1)), DropTable(2, "a"), begin(3, "a", (2, 1))]
    assert list(batch_opens(lane)) == lane


def test_what_made_a_table_is_committed_before_later_write_ids_of_it_are_given_out() -> None:
    """Its own write id would count as given out, and its commit would do nothing: replicas of the replica lacked the rows."""
    made = ReplayCommit(1, "a", "p", 7, (Written("a", "a", "", 1, Content((), "")),))
    later = ReplayCommit(4, "a", "p", 8, (Written("a", "a", "", 2, Content((), "")),))
    first, opened, commit = batch_opens([made, begin(2, "a", (8, 2)), begin(3, "a", (9, 3)), later])
    assert first == made
    assert opened == OpenReplayed(2, "a", "p", (("a", ((8, 2), (9, 3))),), parts=(2, 3))
    assert isinstance(commit, ReplayCommit)
    assert commit.written[0].write_id_allocated
    assert list(batch_opens([made])) == [made]


def test_a_commit_asks_for_no_write_ids_that_were_given_out_before_an_earlier_commit() -> None:
    made = ReplayCommit(3, "a", "p", 7, (Written("a", "a", "", 1, Content((), "")),))
    later = ReplayCommit(6, "b", "p", 8, (Written("b", "b", "", 4, Content((), "")), Written("a", "a", "", 2, Content((), ""))))
    lane = [begin(1, "b", (7, 3)), begin(2, "b", (8, 4)), made, begin(4, "a", (8, 2)), begin(5, "a", (9, 3)), later]
    *_, commit = batch_opens(lane)
    assert isinstance(commit, ReplayCommit)
    assert [one.write_id_allocated for one in commit.written] == [True, True]


def test_one_call_gives_out_ids_in_the_order_of_the_targets_transactions() -> None:
    opened = {5: Replayed(100, "p"), 6: Replayed(101, "p"), 7: Replayed(90, "p"), 8: Replayed(91, "p#2"), 9: Replayed(92, "p#2")}
    pairs = ((5, 1), (6, 2), (7, 3), (8, 4), (9, 5))
    assert list(ascending(pairs, opened)) == [("p", {5: 1, 6: 2}), ("p", {7: 3}), ("p#2", {8: 4, 9: 5})]
    assert list(ascending((), opened)) == []


def test_a_transaction_may_get_another_write_id_of_a_table() -> None:
    """Hive gives it one when a query that had to wait is compiled again; the first belongs to nobody then."""
    written = (Written("a", "a", "", 6, Content((), "")), Written("a", "a", "", 7, Content((), "")))
    lane = [begin(1, "a", (1, 5)), begin(2, "a", (2, 6)), begin(3, "a", (2, 7)), ReplayCommit(4, "a", "p", 2, written)]
    first, commit = batch_opens(lane)
    assert isinstance(first, OpenReplayed)
    assert first.write_ids == (("a", ((1, 5), (2, 6), (2, 7))),)
    assert isinstance(commit, ReplayCommit)
    assert all(one.write_id_allocated for one in commit.written)
    opened = {1: Replayed(100, "p"), 2: Replayed(101, "p")}
    assert list(ascending(first.write_ids[0][1], opened)) == [("p", {1: 5, 2: 6}), ("p", {2: 7})]
