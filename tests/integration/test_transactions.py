"""Transactions from a metastore 4.2.0 to another, step by step: by thrift, without a driver."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hive_metastore import ttypes as t

from hive_replication.acid.write_ids import WriteIds
from hive_replication.connect import connect
from hive_replication.drift import DriftScan, repair_drift
from hive_replication.dump.bootstrap.acid_snapshot import Snapshot
from hive_replication.dump.command import repl_dump
from hive_replication.errors import Refused, ReplicationError
from hive_replication.load.command import plan_load
from hive_replication.load.operations import transactions as operations
from hive_replication.load.replica.state import has_left, replica_state, with_state
from hive_replication.load.replica.target import Target
from hive_replication.load.undo.undo import undo
from hive_replication.metastore import replay_notes, replicated_transactions
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.replicated_transactions import Replayed
from hive_replication.metastore.types import copy_of
from hive_replication.policy.acid import Acid
from hive_replication.recover import UNFINISHED, Gap, TableFinding, dump_recovery, recover, survey
from hive_replication.repair import bring_up, repair
from hive_replication.statements import ReplDump, ReplLoad
from hive_replication.verify import TableComparison, compare_database
from resources.embedded.cluster import Cluster, Side
from resources.embedded.policy import policy
from tests.acid.servers import compactions
from tests.counting import count_decoded
from tests.faults import dying_at
from tests.ledger import Ledger, make, partition_of
from tests.writers import Writer

pytestmark = pytest.mark.servers


def test_a_transaction_over_windows(ledger: Ledger) -> None:
    """Its data comes with its commit, in all tables at once; what was aborted never comes."""
    first = ledger.begin()
    first.insert("a", "1\n")
    first.commit()
    assert ledger.replicate().held == ()
    assert ledger.files(source=False) == ledger.files(source=True) != {}

    second, third = ledger.begin(), ledger.begin()
    second.insert("a", "2\n")
    third.insert("a", "3\n")
    second.insert("b", "2\n")
    report = ledger.replicate()
    assert (report.held, report.copies, dict(report.applied)) == ((), (), {"OpenTransactions": 1})
    seen = ledger.write_ids(source=False)  # of open transactions at the end Hive may say that they are beyond what is seen
    assert ([seen.sees(one) for one in (1, 2, 3)], ledger.highest(source=False)) == ([True, False, False], 3)
    third.abort()
    second.commit()
    report = ledger.replicate()
    assert dict(report.applied) == {"AbortTransaction": 1, "CommitTransaction": 1}
    assert sorted(copy.task.object_name for copy in report.copies) == [f"{ledger.database}.a", f"{ledger.database}.b"]
    assert ledger.write_ids(source=False).sees(2)
    assert set(ledger.files(source=True)) - set(ledger.files(source=False)) == {"delta_0000003_0000003_0000/000000_0"}
    assert [(one.table, one.partitions) for one in report.touched] == [("a", ()), ("b", ())]


@pytest.mark.parametrize("windows", [1, 2])
def test_a_transaction_that_gets_another_write_id(ledger: Ledger, windows: int) -> None:
    """It had to wait for an older one's lock, and HiveServer2 compiled it again: the write id between belongs to nobody."""
    ledger.write("a", "1")
    assert ledger.replicate().held == ()
    older, younger, third = (ledger.begin() for _ in range(3))
    older.insert("a", "2\n")
    assert younger.write_id("a") == 3
    older.commit()
    if windows == 2:
        assert ledger.replicate().held == ()
    assert (younger.write_id("a", again=True), third.write_id("a")) == (4, 5)
    if windows == 2:
        assert ledger.replicate().held == ()
        assert ledger.write_ids(source=False) == ledger.write_ids(source=True)
        assert not ledger.write_ids(source=False).sees(4)
    younger.insert("a", "3\n")
    younger.commit()
    assert ledger.replicate().held == ()
    assert ledger.write_ids(source=False) == ledger.write_ids(source=True)
    assert ledger.files(source=False) == ledger.files(source=True)
    assert len(ledger.files(source=False)) == 3
    third.abort()


def test_a_dump_has_no_transactions_of_others(ledger: Ledger) -> None:
    assert ledger.replicate().held == ()
    for _ in range(3):
        ledger.begin().commit()
    other = ledger.begin()
    dump = ledger.dump(ledger.applied())
    assert (dump.events, dump.header.acid) == (0, True)
    other.abort()


def test_partitions_and_a_repeated_load(ledger: Ledger) -> None:
    source = ledger.connection.source
    assert ledger.replicate().held == ()
    writer = ledger.begin()
    writer.write_id("p")
    source.metastore.add_partitions(ledger.database, "p", [partition_of(ledger, "1")])
    writer.insert("p", "1\n", "ds=1")
    writer.commit()
    dump = ledger.dump(ledger.applied())
    plan = plan_load(ledger.connection.target, ReplLoad(dump.directory), ledger.connection.store)
    assert [one.kind for lane in plan.lanes for one in lane.operations] == [
        "AllocateWriteIds", "AddPartitions", "CommitTransaction"
    ]  # fmt: skip
    report = ledger.load(dump.directory)
    assert (report.held, [copy.task.object_name for copy in report.copies]) == ((), [f"{ledger.database}.p/ds=1"])
    assert ledger.files(source=False, table="p") == ledger.files(source=True, table="p") != {}
    assert dict(ledger.load(dump.directory).applied) == {}


def test_files_of_which_the_targets_log_cannot_tell(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hive looks for each file that a replicated commit names, and commits nothing where it reads another name."""
    assert ledger.replicate().held == ()
    writer = ledger.begin()
    for name in ("50%25.csv", "no # 1.csv", "a]b", "a b"):
        writer.insert("a", f"{name}\n", name=name)
    writer.commit()
    with monkeypatch.context() as patch:
        patch.setattr(Target, "feeds", lambda *_: True)
        (held,) = ledger.replicate().held
        assert "has a # or ] in its name, of which Hive's log cannot tell the next replica" in held.reason
    assert ledger.load(ledger.dump(ledger.status("a")).directory).held == ()
    assert ledger.files(source=False) == ledger.files(source=True)
    assert comparison(ledger).differences == ()


@pytest.mark.parametrize("step", ["replay_open", "replay_write_ids", "replay_commit", "replay_abort"])
@pytest.mark.parametrize("after", [False, True])
def test_a_killed_load_is_gone_on_with(ledger: Ledger, step: str, *, after: bool) -> None:
    """S160: killed before or after each call about transactions, the next load brings the same, and nothing twice."""
    assert ledger.replicate().held == ()
    for number in range(2):
        writer = ledger.begin()
        writer.insert("a", f"{number}\n")
        writer.insert("b", f"{number}\n")
        writer.commit()
    ledger.begin().write_id("a")
    aborted = ledger.begin()
    aborted.insert("a", "aborted\n")
    aborted.abort()
    dump = ledger.dump(ledger.applied())
    with dying_at(step, 2 if step == "replay_commit" else 1, after=after):
        ledger.load(dump.directory)
    report = ledger.load(dump.directory)
    assert report.held == ()
    for table in "ab":
        ours, theirs = ledger.files(source=True, table=table), ledger.files(source=False, table=table)
        assert {name: data for name, data in ours.items() if data != b"aborted\n"} == theirs
        assert ledger.highest(source=False, table=table) == ledger.highest(source=True, table=table)
    seen = ledger.write_ids(source=False)
    assert [seen.sees(one) for one in (1, 2, 3)] == [True, True, False]
    assert {copy.origin for copy in report.copies} <= {"present"}


@pytest.mark.parametrize("failed", [False, True])
def test_a_write_id_that_somebody_took_on_the_replica_holds_what_the_source_writes_with_it(
    ledger: Ledger, *, failed: bool
) -> None:
    """Its rows were never seen, and all was green."""
    connection, target = ledger.connection, ledger.connection.target
    ledger.write("a", "1")
    assert ledger.replicate().held == ()
    stranger = Writer.begin(target.metastore, target.storage, ledger.database)
    stranger.write_id("a")
    if failed:
        stranger.abort()
    ledger.write("a", "2")
    ledger.write("b", "3")
    (held,) = ledger.replicate().held
    assert f"write id 2 of {ledger.database}.a" in held.reason
    assert len(ledger.files(source=False, table="b")) == 1
    if not failed:
        stranger.abort()
    repair(connection, ledger.database, "a")
    ledger.write("a", "4")
    assert ledger.replicate().held == ()
    assert sorted(ledger.files(source=False).values()) == sorted(ledger.files(source=True).values())


def test_a_transaction_that_ended_before_it_has_a_write_id_holds_what_it_wrote(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A25: the metastore gives it none and answers well; its rows were copied, and never seen."""
    ledger.write("a", "1")
    assert ledger.replicate().held == ()
    real, ended = Metastore.replay_open, list[int]()

    def replay_open(metastore: Metastore, name: str, transactions: Iterable[int]) -> dict[int, Replayed]:
        opened = real(metastore, name, transactions)
        for one in () if ended else opened:
            metastore.replay_abort(name, one)
            ended.append(one)
        return opened

    monkeypatch.setattr(Metastore, "replay_open", replay_open)
    ledger.write("a", "2")
    dump = ledger.dump(ledger.applied())
    (held,) = ledger.load(dump.directory).held
    assert "write ids [] are given instead of" in held.reason
    assert ledger.load(dump.directory).held == ()
    assert [ledger.write_ids(source=False).sees(one) for one in (1, 2)] == [True, True]
    assert ledger.files(source=False) == ledger.files(source=True)


@pytest.mark.parametrize("ends", [False, True])
def test_a_compaction_that_begins_while_a_bootstrap_lists(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, *, ends: bool) -> None:
    """Its base is not complete before it ends; then the cleaner deletes what it made needless."""
    source = ledger.connection.source
    ledger.write("a", "1")
    table = source.metastore.table(ledger.database, "a")
    assert table is not None
    real = Snapshot._list

    def compacting(snapshot: Snapshot, *args: Any) -> Any:
        compaction = ledger.begin()
        source.storage.write(f"{table.sd.location}/base_0000001_v{compaction.transaction:07d}/000000_0", b"1\n" if ends else b"")
        if ends:
            compaction.commit()
            source.storage.delete(f"{table.sd.location}/delta_0000001_0000001_0000", recursive=True)
        return real(snapshot, *args)

    monkeypatch.setattr(Snapshot, "_list", compacting)
    assert ledger.replicate().held == ()
    name = "base_0000001/000000_0" if ends else "delta_0000001_0000001_0000/000000_0"
    assert ledger.files(source=False) == {name: b"1\n"}


def test_files_that_compaction_removed_come_from_cmroot(ledger: Ledger) -> None:
    """S178, S179: the source's deltas are gone before the load."""
    assert ledger.replicate().held == ()
    writer = ledger.begin()
    path = writer.insert("a", f"{ledger.database}\n")  # of its own: cmroot keeps equal files once
    writer.commit()
    expected = ledger.files(source=True)
    dump = ledger.dump(ledger.applied())
    source = ledger.connection.source.metastore
    source.call("cm_recycle", lambda client: client.cm_recycle(t.CmRecycleRequest(path, purge=True)))
    assert ledger.files(source=True) == {}
    report = ledger.load(dump.directory)
    assert (report.held, [copy.origin for copy in report.copies]) == ((), ["cmroot"])
    assert ledger.files(source=False) == expected


def test_what_an_earlier_version_opened_ends(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the name that it had for a policy, in which Hive found no database to mark."""
    assert ledger.replicate().held == ()
    target = ledger.connection.target.metastore
    before = target.open_transactions()
    committed, aborted = ledger.begin(), ledger.begin()
    for writer in (committed, aborted):
        writer.insert("a", "1\n")
    with monkeypatch.context() as patch:
        patch.setattr(operations, "_fitting", lambda database, name: name)
        patch.setattr(replicated_transactions, "FOR", replay_notes._EARLIER)
        assert ledger.replicate().held == ()
    vars(target).pop("_earlier", None)
    assert len(target.open_transactions() - before) == 2
    committed.commit()
    aborted.abort()
    assert ledger.replicate().held == ()
    assert target.open_transactions() <= before
    assert (ledger.write_ids(source=False).sees(1), ledger.write_ids(source=False).sees(2)) == (True, False)


@pytest.mark.parametrize("aborted", [False, True])
def test_streaming_with_several_transactions_a_batch_is_held(ledger: Ledger, *, aborted: bool) -> None:
    """S181: they share files that grow after a commit. After the batch a repair brings them, but no rows of an aborted one."""
    connection = ledger.connection
    assert ledger.replicate().held == ()
    before = connection.target.metastore.open_transactions()
    batch = [ledger.begin() for _ in range(3)]
    for writer in batch:
        writer.lock("a")
        writer.write_id("a")
    batch[0].insert("a", "1\n", below="delta_0000001_0000003")
    batch[0].commit()
    other = ledger.begin()
    other.insert("b", "1\n")
    other.commit()
    report = ledger.replicate()
    assert [(held.tables, held.reason.partition(":")[2]) for held in report.held] == [
        (("a",), " repair the table when the batch is over, and stream with one transaction a batch")
    ]
    assert ledger.files(source=False) == {}
    assert ledger.files(source=False, table="b") == ledger.files(source=True, table="b") != {}
    (batch[1].abort if aborted else batch[1].commit)()
    batch[2].commit()
    if aborted:
        with pytest.raises(ReplicationError, match=r"delta_0000001_0000003 has rows .* COMPACT 'major'"):
            repair(connection, ledger.database, "a")
    else:
        assert repair(connection, ledger.database, "a").load.held == ()
        assert ledger.files(source=False) == ledger.files(source=True) != {}
        assert ledger.replicate().held == ()
        assert connection.target.metastore.open_transactions() <= before


@pytest.mark.parametrize("killed", [None, "create_table", "impress_write_ids"])
@pytest.mark.parametrize("whole", [False, True])
def test_a_repair_ends_what_wrote_to_its_table_alone(ledger: Ledger, killed: str | None, *, whole: bool) -> None:
    """As Dagster's repairs load it: once. What stood for transactions whose ends are applied by now stayed open for days."""
    connection, target = ledger.connection, ledger.connection.target.metastore
    assert ledger.replicate().held == ()
    before = target.open_replayed()
    first, other, both, last = (ledger.begin() for _ in range(4))
    for writer in (first, last):
        writer.lock("a")
        writer.write_id("a")
    for writer, table in ((other, "b"), (both, "b"), (both, "a")):
        writer.lock(table)
        writer.write_id(table)
    first.insert("a", "1\n", below="delta_0000001_0000002")
    first.commit()
    assert [held.tables for held in ledger.replicate().held] == [("a", "b")]
    both.insert("b", "3\n")
    both.commit()
    last.commit()
    if whole:
        other.insert("b", "4\n")
        other.commit()
    ledger.replicate()
    assert replica_state(target.database(ledger.database)).held.keys() == {"a", "b"}
    name = None if whole else "a"
    dump = repl_dump(connection.source, ReplDump(ledger.database, name), connection.store)
    bring_up(connection, ledger.database, name, dump.last_evid, replica_state(target.database(ledger.database)))
    if killed:
        with dying_at(killed, 1, after=False):
            ledger.load(dump.directory, repair=True)
    assert ledger.load(dump.directory, repair=True).held == ()
    assert ledger.files(source=False) == ledger.files(source=True) != {}
    assert [ledger.write_ids(source=False).sees(one) for one in (1, 2, 3)] == [True, True, True]
    assert len(target.open_replayed() - before) == (0 if whole else 2)
    if not whole:
        other.insert("b", "4\n")
        other.commit()
        assert ledger.load(ledger.dump(ledger.status("b")).directory).held == ()
    assert sorted(ledger.files(source=False, table="b").values()) == [b"3\n", b"4\n"]
    assert target.open_replayed() <= before
    assert ledger.replicate().held == ()


def test_a_repair_ends_what_wrote_to_a_table_that_is_gone(ledger: Ledger) -> None:
    """Somebody dropped it on the target, which keeps its write ids where its data stays."""
    connection, target = ledger.connection, ledger.connection.target.metastore
    assert ledger.replicate().held == ()
    before = target.open_replayed()
    writer = ledger.begin()
    writer.insert("a", "1\n")
    assert ledger.replicate().held == ()
    target.drop_table(ledger.database, "a", delete_data=False)
    writer.commit()
    assert [held.tables for held in ledger.replicate().held] == [("a",)]
    assert repair(connection, ledger.database, "a").load.held == ()
    assert ledger.files(source=False) == ledger.files(source=True) != {}
    assert ledger.replicate().held == ()
    assert ledger.write_ids(source=False).sees(1)
    assert target.open_replayed() <= before


def test_a_streamed_table_does_not_stop_its_database(ledger: Ledger) -> None:
    """Unused transactions of a batch are aborted: the table is held, the others come, and all is compared."""
    batch = [ledger.begin() for _ in range(2)]
    for writer in batch:
        writer.lock("a")
        writer.write_id("a")
    batch[0].insert("a", "1\n", below="delta_0000001_0000002")
    batch[0].commit()
    batch[1].abort()
    ledger.write("b", "1")
    report = ledger.replicate()
    assert [(held.tables, held.refused, held.reason.partition(":")[0]) for held in report.held] == [
        (("a",), True, "a has rows of committed and of aborted transactions of a streaming batch")
    ]
    assert ledger.files(source=False, table="b") == ledger.files(source=True, table="b") != {}
    found = compare_database(ledger.connection.source, ledger.connection.target, ledger.database)
    assert {one.table: bool(one.differences) for one in found} == {"a": True, "b": False, "p": False}


def with_acid(ledger: Ledger, **settings: object) -> Ledger:
    return ledger.with_policy(acid=Acid(**settings))  # type: ignore[arg-type]


def test_a_bootstrap_fails_where_transactions_stay_open(ledger: Ledger) -> None:
    """S155: the dump fails with a clear message, transactions are left alone."""
    writer = ledger.begin()
    writer.insert("a", "1\n")
    with pytest.raises(ReplicationError, match="did not end within 0 s"):
        with_acid(ledger, open_txn_timeout=0, at_timeout="fail").dump()
    writer.commit()
    assert ledger.replicate().held == ()
    assert ledger.files(source=False) == ledger.files(source=True) != {}


def test_a_bootstrap_aborts_what_stays_open_here_only(ledger: Ledger) -> None:
    """S151, S152, S154: those with locks in this database are aborted; others are neither waited for nor aborted."""
    committed, stuck, elsewhere = ledger.begin(), ledger.begin(), ledger.begin()
    committed.insert("a", "1\n")
    stuck.insert("a", "2\n")
    committed.commit()
    stuck.lock("a")
    report = with_acid(ledger, open_txn_timeout=0).replicate()
    assert report.held == ()
    ids = ledger.write_ids(source=True)
    assert (ids.high, ids.aborted or {2}) == (2, {2})  # Hive forgets an aborted write id once its cleaner has seen it
    seen = ledger.write_ids(source=False)
    assert (seen.high, seen.aborted or ids.aborted) == (2, ids.aborted)
    assert list(ledger.files(source=False)) == ["delta_0000001_0000001_0000/000000_0"]
    elsewhere.commit()  # it was left alone


def test_a_load_decodes_each_message_once(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ledger.replicate().held == ()
    metastore = ledger.connection.source.metastore
    metastore.add_partitions(ledger.database, "p", [partition_of(ledger, day) for day in "12"])
    writer = ledger.begin()
    writer.insert("a", "1\n")
    writer.insert("p", "1\n", "ds=1")
    writer.commit()
    metastore.drop_table(ledger.database, "b")
    dump = ledger.dump(ledger.applied())
    decoded = count_decoded(monkeypatch)
    assert ledger.load(dump.directory).held == ()
    assert len(decoded) == dump.events
    assert set(decoded.values()) == {1}


def test_a_dump_of_a_table_aborts_its_own_writers_only(ledger: Ledger) -> None:
    """S152: transactions that write to other tables of the database are left alone, also where they read this one."""
    source = with_acid(ledger, open_txn_timeout=0).connection.source
    stuck, elsewhere, reading = ledger.begin(), ledger.begin(), ledger.begin()
    for writer, table in ((stuck, "a"), (elsewhere, "b"), (reading, "b")):
        writer.lock(table)
        writer.insert(table, "1\n")
    reading.lock("a")
    assert source.metastore.writers(ledger.database, ["a", "p"]) == {stuck.transaction}
    repl_dump(source, ReplDump(ledger.database, "a"), ledger.connection.store)
    elsewhere.commit()
    reading.commit()
    assert ledger.replicate().held == ()
    assert len(ledger.files(source=False, table="b")) == 2
    with pytest.raises(MetastoreError):
        stuck.commit()


SHOWING = ["impress_write_ids", "replay_open", "replay_write_ids", "replay_commit"]


ENDS = {"c": Writer.commit, "a": Writer.abort}


@pytest.mark.parametrize(
    ("ends", "step", "after"), [("cac", None, False), ("caca", None, False), *product(["caca"], SHOWING, (False, True))]
)
def test_a_bootstrap_shows_what_was_committed_after_an_aborted_write(
    ledger: Ledger, ends: str, step: str | None, *, after: bool
) -> None:
    """S151, S176: aborted write ids are aborted on the target, and hide nothing, whatever crash came between."""
    metastore = ledger.connection.source.metastore
    metastore.add_partitions(ledger.database, "p", [partition_of(ledger, day) for day in "12"])
    for end in ends:
        writer = ledger.begin()
        writer.lock("a")
        writer.lock("p", "ds=1")
        writer.insert("a", "1\n")
        writer.insert("p", "1\n", "ds=1")
        ENDS[end](writer)
    dump = ledger.dump()
    if step:
        with dying_at(step, 1, after=after):
            ledger.load(dump.directory)
    assert ledger.load(dump.directory).held == ()
    for table in "ap":
        seen = ledger.write_ids(source=False, table=table)
        assert [seen.sees(one) for one in (1, 3)] == [True, True]
        assert ledger.files(source=False, table=table).keys() == {
            name for name in ledger.files(source=True, table=table) if "_0000002_" not in name and "_0000004_" not in name
        }
        assert ledger.highest(source=False, table=table) == len(ends)
    queued = compactions(ledger.connection.target.metastore, [ledger.database])
    assert {(one.tablename, one.partitionname) for one in queued} == {("a", None), ("p", "ds=1"), ("p", "ds=2")}
    left = ledger.begin()
    left.insert("a", "2\n")
    left.commit()
    assert ledger.replicate().held == ()
    assert ledger.write_ids(source=False).sees(len(ends) + 1)


def test_the_metastore_itself_tells_readers_of_what_was_committed_between_aborted_writes(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hive's readers go by its answer: they saw the first write alone, until it had forgotten the aborted ones."""
    for end in "caca":
        writer = ledger.begin()
        writer.lock("a")
        writer.insert("a", "1\n")
        ENDS[end](writer)
    carry_out, answers = operations.ImpressWriteIds.carry_out, dict[str, WriteIds]()

    def asking(operation: operations.ImpressWriteIds, target: Target, database: str) -> None:
        """At once: it forgets them within ten seconds."""
        carry_out(operation, target, database)
        answers.update(target.metastore._answered(database, [operation.table]))

    monkeypatch.setattr(operations.ImpressWriteIds, "carry_out", asking)
    assert ledger.replicate().held == ()
    assert [answers["a"].sees(one) for one in (1, 3)] == [True, True]


@pytest.mark.parametrize(("table", "partition"), [("a", ""), ("p", "ds=1")])
def test_a_second_bootstrap_that_is_killed_goes_on_with_what_it_copied(ledger: Ledger, table: str, partition: str) -> None:
    """It drops what the first one left, whose directory is free from then on: it has nothing but files that are wanted."""
    metastore = ledger.connection.source.metastore
    metastore.add_partitions(ledger.database, "p", [partition_of(ledger, "1")])
    for other in {"a", "b", "p"} - {table}:
        metastore.drop_table(ledger.database, other, delete_data=True)
    for number in range(2):
        writer = ledger.begin()
        writer.insert(table, f"{number}\n", partition)
        writer.commit()
        dump = ledger.dump()
        with dying_at("drop_table" if number else "impress_write_ids", 1, after=bool(number)):
            ledger.load(dump.directory)
    report = ledger.load(dump.directory)
    assert (report.held, report.files_by_origin) == ((), {"present": 2})
    assert ledger.files(source=False, table=table) == ledger.files(source=True, table=table)


def test_a_repair_rebuilds_a_table(ledger: Ledger) -> None:
    connection = ledger.connection
    writer = ledger.begin()
    writer.insert("a", "1\n")
    writer.commit()
    assert ledger.replicate().held == ()
    (name,) = ledger.files(source=False)
    table = connection.target.metastore.table(ledger.database, "a")
    assert table is not None
    connection.target.storage.delete(f"{table.sd.location}/{name}")
    assert repair(connection, ledger.database, "a").load.held == ()
    assert ledger.files(source=False) == ledger.files(source=True) != {}
    again = ledger.begin()
    again.insert("a", "2\n")
    again.commit()
    assert ledger.replicate().held == ()
    assert ledger.files(source=False) == ledger.files(source=True)
    assert ledger.write_ids(source=False) == ledger.write_ids(source=True)


def test_commits_are_not_undone(ledger: Ledger) -> None:
    assert ledger.replicate().held == ()
    first = ledger.begin()
    first.insert("a", "1\n")
    first.commit()
    assert ledger.replicate().held == ()
    point = ledger.applied()
    assert point is not None
    second = ledger.begin()
    second.insert("a", "2\n")
    second.commit()
    assert ledger.replicate().held == ()
    with pytest.raises(Refused, match="cannot be undone"):
        undo(ledger.connection.target, ledger.database, None, point)
    dropped = ledger.applied()
    assert dropped is not None
    ledger.connection.source.metastore.drop_table(ledger.database, "b")
    assert ledger.replicate().held == ()
    with pytest.raises(Refused, match=r"\{b\}.*dropped.*cannot be undone"):
        undo(ledger.connection.target, ledger.database, None, dropped)


def test_a_target_of_hive_3_refuses(cluster: Cluster, source4: Side, target: Side, unique: str) -> None:
    """S161: before anything is written; without transactional tables the policy works."""
    ledger = make(connect(policy(cluster, {unique: unique}, source4.name, target.name)), unique)
    dump = ledger.dump()
    with pytest.raises(Refused, match=r"transactional tables \(a, b, p\).*acid: \{replicate: false\}"):
        ledger.load(dump.directory)
    assert ledger.connection.target.metastore.database(unique) is None
    left = with_acid(ledger, replicate=False)
    report = left.replicate()
    assert (report.held, sorted(one.what for one in report.skipped)) == ((), ["a", "b", "p"])
    writer = ledger.begin()
    writer.insert("a", "1\n")
    writer.commit()
    report = left.replicate()
    assert (report.held, dict(report.applied)) == ((), {})


def test_transactional_replicas_that_left_the_policy_stay(ledger: Ledger) -> None:
    """Also where no window has seen yet that they left: a repair of the database and a recovery pass them over."""
    writer = ledger.begin()
    writer.insert("a", "1\n")
    writer.commit()
    assert ledger.replicate().held == ()
    left = with_acid(ledger, replicate=False)
    connection, name, content = left.connection, left.database, ledger.files(source=False)
    assert content != {}
    assert repair(connection, name).load.held == ()
    for _ in range(2):
        state = replica_state(connection.target.metastore.database(name))
        assert (sorted(state.left), state.held) == (["a", "b", "p"], {})
        assert ledger.files(source=False) == content
        tables = list(connection.target.metastore.tables(name, ["a", "b", "p"]))
        assert [has_left(table) for table in tables] == [True] * 3
        gap = Gap(UNFINISHED, state.applied or 0, "tried")
        _, dump = dump_recovery(connection, name, gap)
        assert left.load(dump.directory).held == ()


def comparison(ledger: Ledger, table: str = "a") -> TableComparison:
    (found,) = compare_database(ledger.connection.source, ledger.connection.target, ledger.database, table=table)
    return found


def test_what_is_not_as_a_reader_sees_it_at_the_source_is_found_and_mended(ledger: Ledger) -> None:
    """Verify, drift and recover: a file of the snapshot that is missing, changed or stray; compaction is no difference."""
    connection = ledger.connection
    source, target = connection.source, connection.target
    for text in ("1\n", "2\n"):
        writer = ledger.begin()
        writer.insert("a", text)
        writer.commit()
    assert ledger.replicate().held == ()
    scan = DriftScan(source, target, ledger.database, settle=0.0)
    assert comparison(ledger).differences == ()
    looked = scan.table("a"), scan.table("a")  # the second knows what the first found
    assert [(one.drifted, one.waiting) for one in looked if one] == [((), ""), ((), "")]

    place = target.metastore.table(ledger.database, "a")
    assert place is not None
    delta = f"{place.sd.location}/delta_0000001_0000001_0000"
    for damage, message in (
        (lambda: target.storage.delete(f"{delta}/000000_0"), "is on the source only"),
        (lambda: target.storage.write(f"{delta}/000000_0", b"wrong\n"), "has other content"),
        (lambda: target.storage.write(f"{delta}/000001_0", b"3\n"), "is on the target only"),
    ):
        damage()
        assert message in comparison(ledger).differences[0]
        drifted = scan.table("a")
        assert drifted is not None
        assert [one.partition for one in drifted.drifted] == [""]
    assert repair_drift(connection, ledger.database, drifted) == []
    assert comparison(ledger).differences == ()

    # What a compaction of the source leaves: one base, and nothing that it made needless.
    table = source.metastore.table(ledger.database, "a")
    assert table is not None
    source.storage.write(f"{table.sd.location}/base_0000002/000000_0", b"2\n1\n")
    found = comparison(ledger)
    assert (found.differences, found.by_rows, found.files_proven) == ((), 1, 0)
    source.storage.write(f"{table.sd.location}/base_0000002/000000_0", b"2\n")
    assert comparison(ledger).differences != ()


def test_a_partition_is_repaired_alone(ledger: Ledger) -> None:
    connection = ledger.connection
    made = [partition_of(ledger, day) for day in "12"]
    connection.source.metastore.add_partitions(ledger.database, "p", made)
    writer = ledger.begin()
    for day in "12":
        writer.insert("p", f"{day}\n", f"ds={day}")
    writer.commit()
    assert ledger.replicate().held == ()
    kept = connection.target.metastore.table(ledger.database, "p")
    for part in connection.target.metastore.partitions(ledger.database, "p"):
        for file in connection.target.storage.files(str(part.sd.location)):
            connection.target.storage.write(file.uri, b"broken\n")
    assert repair(connection, ledger.database, "p", ("ds=1",)).load.held == ()
    assert comparison(ledger, "p").repairs == ("ds=2",)
    assert connection.target.metastore.table(ledger.database, "p") == kept  # it was not rebuilt
    (part,) = connection.target.metastore.partitions(ledger.database, "p", ["ds=1"])
    assert "/.repl/" not in str(part.sd.location)  # where Hive reads nothing of a transactional table
    writer = ledger.begin()
    writer.insert("p", "3\n", "ds=1")
    writer.commit()
    assert ledger.replicate().held == ()
    assert comparison(ledger, "p").repairs == ("ds=2",)


def test_a_recovery_leaves_what_is_equal(ledger: Ledger) -> None:
    connection = ledger.connection
    for table in "ab":
        writer = ledger.begin()
        writer.insert(table, "1\n")
        writer.commit()
    assert ledger.replicate().held == ()
    target = connection.target
    database = copy_of(target.metastore.database(ledger.database))
    assert database is not None
    database.parameters = with_state(database.parameters, replace(replica_state(database), applied_hash="another history"))
    target.metastore.alter_database(ledger.database, database)
    (name,) = ledger.files(source=False, table="b")
    table = target.metastore.table(ledger.database, "b")
    assert table is not None
    target.storage.delete(f"{table.sd.location}/{name}")
    recovery = recover(connection, ledger.database)
    assert recovery is not None
    assert recovery.load is not None
    assert [one.table for one in recovery.different] == ["b"]
    assert dict(recovery.load.applied)["CreateTable"] == 1
    writer = ledger.begin()
    writer.insert("a", "2\n")
    writer.insert("b", "2\n")
    writer.commit()
    assert ledger.replicate().held == ()
    for table in "ab":
        assert ledger.files(source=False, table=table) == ledger.files(source=True, table=table)


@pytest.mark.parametrize(("call", "after"), [("create_table", True), ("impress_write_ids", False)])
def test_no_window_goes_on_with_what_a_killed_recovery_has_left(ledger: Ledger, call: str, *, after: bool) -> None:
    """It lacked the partitions that were there before, for ever: its events were applied to it as if it were whole."""
    connection, metastore = ledger.connection, ledger.connection.source.metastore

    def day(name: str) -> None:
        writer = ledger.begin()
        writer.write_id("p")
        metastore.add_partitions(ledger.database, "p", [partition_of(ledger, name)])
        writer.insert("p", f"{name}\n", f"ds={name}")
        writer.commit()

    for name in "12":
        day(name)
    assert ledger.replicate().held == ()
    target = connection.target.metastore
    database = copy_of(target.database(ledger.database))
    assert database is not None
    state = replica_state(database).quarantine("a", 0, "its bootstrap failed")
    database.parameters = with_state(database.parameters, state)
    target.alter_database(ledger.database, database)
    day("3")
    with dying_at(call, 1 if call == "impress_write_ids" else 2, after=after):
        recover(connection, ledger.database)
    assert [one.tables for one in ledger.load(ledger.dump(ledger.applied()).directory).held] == [("p",)]
    recovery = recover(connection, ledger.database)
    assert recovery is not None
    assert recovery.load is not None
    assert recovery.load.held == ()
    assert ledger.files(source=False, table="p") == ledger.files(source=True, table="p")
    assert target.partition_names(ledger.database, "p") == ["ds=1", "ds=2", "ds=3"]
    assert comparison(ledger).differences == ()


@pytest.mark.parametrize("ended", ["commit", "abort"])
def test_a_recovery_has_the_end_of_a_transaction_that_was_open_when_tables_were_compared(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    """The replica knows its write id; its end is no event of the table, which is equal until then."""
    connection = ledger.connection
    writer = ledger.begin()
    writer.insert("a", "1\n")
    writer.commit()
    ledger.replicate()
    writer = ledger.begin()
    writer.lock("a")
    writer.insert("a", "2\n")
    assert ledger.replicate().held == ()
    target = connection.target
    assert target.metastore.write_ids(ledger.database, ["a"])["a"].open
    database = copy_of(target.metastore.database(ledger.database))
    assert database is not None
    database.parameters = with_state(database.parameters, replace(replica_state(database), applied_hash="another history"))
    target.metastore.alter_database(ledger.database, database)
    compared = survey

    def then_ended(*args: Any, **named: Any) -> list[TableFinding]:
        found = compared(*args, **named)
        getattr(writer, ended)()
        return found

    monkeypatch.setattr("hive_replication.recover.command.survey", then_ended)
    recovery = recover(connection, ledger.database)
    assert recovery is not None
    assert [one.table for one in recovery.different] == ["a"]
    assert ledger.replicate().held == ()
    assert (b"2\n" in ledger.files(source=False, table="a").values()) == (ended == "commit")
    assert comparison(ledger).differences == ()
    later = ledger.begin()
    later.insert("a", "3\n")
    later.commit()
    assert ledger.replicate().held == ()
    assert comparison(ledger).differences == ()


def test_a_target_without_transaction_tables_refuses(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a bootstrap nor a window changes anything, whatever the tables are; exit code 3."""
    asked, target = Metastore.unfinished_transactions, ledger.connection.target.metastore

    def failing(metastore: Metastore) -> frozenset[int]:
        if metastore.uri == target.uri:
            raise MetastoreError("get_open_txns: Table/View 'TXNS' does not exist.")
        return asked(metastore)

    with monkeypatch.context() as patch:
        patch.setattr(Metastore, "unfinished_transactions", failing)
        dump = ledger.dump()
        with pytest.raises(Refused, match=r"transactional tables \(a, b, p\).*schematool -initSchema.*'TXNS' does not exist"):
            ledger.load(dump.directory)
        assert target.database(ledger.database) is None
    assert ledger.replicate().held == ()
    before = ledger.target_events()
    writer = ledger.begin()
    writer.insert("a", "1\n")
    writer.commit()
    monkeypatch.setattr(Metastore, "unfinished_transactions", failing)
    report = ledger.replicate()
    assert [(one.tables, one.refused) for one in report.held] == [(("a",), True)]
    assert report.exit_code == 3
    assert (ledger.files(source=False), ledger.highest(source=False)) == ({}, 0)
    assert dict(report.applied) == {}
    assert ledger.target_events() - before <= 1  # the database's own state
