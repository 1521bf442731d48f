"""One source and one policy write a target database, and no chain of replicas leads back to its beginning."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from hive_replication.errors import Refused
from hive_replication.load.replica.failover_marks import FailoverMarks
from hive_replication.load.replica.ownership import (
    lineage,
    refuse_failed_over,
    refuse_incompatible,
    refuse_loop,
    refuse_second_writer,
)
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.types import Database
from tests.bootstraps import header, loading


def test_the_lineage_of_a_source_that_is_no_replica() -> None:
    assert lineage(None, "b/db") == ("b/db",)
    assert lineage({"owner": "x"}, "b/db") == ("b/db",)


def test_the_lineage_of_a_replica_leads_to_the_first_source() -> None:
    parameters = ReplicaState("a/db", 10, origins=("z/db",)).parameters()
    assert lineage(parameters, "b/db") == ("b/db", "a/db", "z/db")


@pytest.mark.parametrize("target", ["b/db", "a/db", "z/db"])
def test_a_loop_is_refused(target: str) -> None:
    with pytest.raises(Refused, match=f"a loop: the target {target}"):
        refuse_loop(("b/db", "a/db", "z/db"), target)


def test_a_chain_is_no_loop() -> None:
    refuse_loop(("b/db", "a/db"), "c/db")


@pytest.mark.parametrize("state", [ReplicaState(), ReplicaState("a/db"), ReplicaState("a/db", policy="sales")])
def test_the_same_writer_may_write_again(state: ReplicaState) -> None:
    refuse_second_writer(state, "db", "a/db", "sales")


def test_another_source_is_refused() -> None:
    with pytest.raises(Refused, match="is a replica of z/db, not of a/db"):
        refuse_second_writer(ReplicaState("z/db"), "db", "a/db", "sales")


def test_another_policy_is_refused() -> None:
    with pytest.raises(Refused, match="is written by the policy 'sales'"):
        refuse_second_writer(ReplicaState("a/db", policy="sales"), "db", "a/db", "other")


def test_nothing_is_loaded_into_a_database_that_was_opened() -> None:
    with pytest.raises(Refused, match="was opened by a failover"):
        refuse_failed_over(ReplicaState(failed_over="opened"), "db")


def test_an_old_source_is_loaded_when_it_is_a_replica() -> None:
    with pytest.raises(Refused, match="was the source before a failover"):
        refuse_failed_over(ReplicaState(failed_over="closed"), "db")
    refuse_failed_over(ReplicaState("b/db", 5, failed_over="closed"), "db")  # the failback has begun


def test_an_old_source_that_does_not_know_of_the_failover_is_not_overwritten() -> None:
    source = Database(name="db", parameters=FailoverMarks(origin="a/db", opened=5).parameters())
    with pytest.raises(Refused, match="was the source before a failover"):
        refuse_failed_over(ReplicaState(), "db", source, "a/db")
    refuse_failed_over(ReplicaState(), "db", source, "c/db")
    refuse_failed_over(ReplicaState("b/db", 5), "db", source, "a/db")  # it follows by now
    refuse_failed_over(ReplicaState(), "db", source, "a/db", there=False)  # a bootstrap makes it anew


@pytest.mark.parametrize("table", [None, "t"])
def test_an_old_source_that_was_dropped_is_made_anew_by_a_bootstrap(table: str | None) -> None:
    """It was sent to reverse, which sent it back; a table alone would make a database that is no replica."""
    head = header(60, table)
    head.source_database.parameters = FailoverMarks(origin="target/db", opened=5).parameters()
    load = loading(ReplicaState(), head, [])
    replica: Any = load.replica
    replica.image = None
    with pytest.raises(Refused, match="was the source before a failover") if table else nullcontext():
        load.require_ours()


def test_a_database_that_lost_the_marks_of_its_failover_is_not_loaded_from_the_closed_source() -> None:
    source = Database(name="db", parameters=FailoverMarks(endpoint="SOURCE", successor="b/db", opened=5).parameters())
    with pytest.raises(Refused, match="the source of 'db' was closed by a failover"):
        refuse_failed_over(ReplicaState(), "db", source, "b/db")
    refuse_failed_over(ReplicaState(), "db", source, "c/db")


def test_a_database_whose_metastore_was_restored_from_before_it_was_opened_is_no_replica_again() -> None:
    """Loads of the closed source would retire what the opened database's users wrote."""
    source = Database(name="db", parameters=FailoverMarks(endpoint="SOURCE", successor="b/db", opened=5).parameters())
    again = "hive-repl failover start db --unplanned --force opens it again as it stands, or hive-repl failover rollback opens"
    with pytest.raises(Refused, match=again):
        refuse_failed_over(ReplicaState("a/db", 5), "db", source, "b/db")
    refuse_failed_over(ReplicaState("a/db", 5), "db", source, "c/db")


@pytest.mark.parametrize("parameters", [None, {}, {"repl.incompatible": "false"}])
def test_a_database_that_nobody_marked_is_loaded(parameters: dict[str, str] | None) -> None:
    refuse_incompatible(None)
    refuse_incompatible(Database("db", parameters=parameters))


def test_nothing_is_loaded_into_a_database_that_is_marked_as_incompatible() -> None:
    with pytest.raises(Refused, match=r"'db' has repl\.incompatible=true: it was changed"):
        refuse_incompatible(Database("db", parameters={"repl.incompatible": "TRUE"}))
