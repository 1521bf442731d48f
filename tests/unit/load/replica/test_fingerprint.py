"""The fingerprint of a replica tells what somebody changed on the target from what engines write by themselves."""

from __future__ import annotations

import pytest

from hive_replication.load.replica.fingerprint import (
    FINGERPRINT,
    IGNORED_PARAMETERS,
    altered_aspects,
    changed_on_target,
    files_changed,
    to_be_moved,
    with_fingerprint,
)
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target_view import TargetView
from hive_replication.load.report import UnexpectedObject
from hive_replication.metastore.types import FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table


def replica() -> Table:
    serde = SerDeInfo(serializationLib="orc", parameters={"a": "1"})
    columns = [FieldSchema(name="Id", type="int")]
    sd = StorageDescriptor(cols=columns, location="hdfs://dst/w/t", inputFormat="in", outputFormat="out", serdeInfo=serde)
    return with_fingerprint(Table(tableName="t", sd=sd, parameters={"owner": "x"}), ["f1", "f2"])


def test_the_parameter_has_the_name_of_earlier_versions() -> None:
    assert FINGERPRINT == "hive_replication.left"


def test_a_replica_as_the_load_left_it() -> None:
    table = replica()
    assert altered_aspects(table) == ()
    assert not files_changed(table, ["f2", "f1"])


@pytest.mark.parametrize("aspect", ["location", "columns", "format", "properties"])
def test_what_somebody_altered(aspect: str) -> None:
    table = replica()
    match aspect:
        case "location":
            table.sd.location = "hdfs://dst/w/other"
        case "columns":
            table.sd.cols = [FieldSchema(name="id", type="bigint")]
        case "format":
            table.sd.serdeInfo.parameters = {"a": "2"}
        case _:
            table.parameters["owner"] = "y"
    assert altered_aspects(table) == (aspect,)


def test_what_engines_write_by_themselves_does_not_count() -> None:
    table = replica()
    own = [*IGNORED_PARAMETERS, "spark.sql.statistics.numRows", "bucketing_version", "EXTERNAL", "repl.last.id"]
    table.parameters |= dict.fromkeys(own, "7")
    table.sd.cols[0].name = "id"
    assert altered_aspects(table) == ()


@pytest.mark.parametrize(
    "key",
    [
        "impala.lastComputeStatsTime",
        "impala.events.catalogServiceId",
        "impala_intermediate_stats_num_chunks",
        "impala_intermediate_stats_chunk0",
        "STATS_GENERATED_VIA_STATS_TASK",
    ],
)
def test_statistics_of_impala_on_the_target_do_not_count(key: str) -> None:
    table = replica()
    table.parameters[key] = "7"
    assert altered_aspects(table) == ()


def test_what_somebody_sets_for_impala_does_count() -> None:
    table = replica()
    table.parameters["impala.disableHmsSync"] = "true"
    assert altered_aspects(table) == ("properties",)


def test_files_that_were_added_or_removed() -> None:
    table = replica()
    assert files_changed(table, ["f1"])
    assert files_changed(table, ["f1", "f2", "f3"])
    assert not files_changed(table, ["f1", "f2", "f3"], ours=["f3"])  # a load was killed after it had added one


def test_a_replica_without_a_fingerprint_is_not_compared() -> None:
    partition = Partition(sd=StorageDescriptor(location="hdfs://dst/w/t/ds=1"))
    assert altered_aspects(partition) == ()
    assert not files_changed(partition, ["f"])


def test_a_change_of_metadata_keeps_the_files() -> None:
    table = replica()
    table.parameters["owner"] = "y"
    assert altered_aspects(with_fingerprint(table)) == ()
    assert files_changed(table, ["f1"])


def test_altered_replicas_are_reported_by_name() -> None:
    table = replica()
    table.parameters["owner"] = "y"
    view = TargetView(ReplicaState(), {"t": table, "u": replica()})
    assert list(changed_on_target(view, "sales")) == [UnexpectedObject("sales.t", "properties altered")]


@pytest.mark.parametrize(("transactional", "expected"), [("false", ["sales.t/ds=1"]), ("true", [])])
def test_a_partition_that_a_metastore_moved_with_a_rename_was_not_altered(transactional: str, expected: list[str]) -> None:
    """Each window that touched one of a transactional table said so, until the source altered it."""
    table, part = replica(), with_fingerprint(Partition(sd=StorageDescriptor(location="hdfs://dst/w/t/ds=0"), parameters={}))
    table.parameters["transactional"] = transactional
    part.sd.location = "hdfs://dst/w/t/ds=1"
    view = TargetView(ReplicaState(), {"t": with_fingerprint(table)}, {("t", "ds=1"): part})
    assert [one.object for one in changed_on_target(view, "sales")] == expected
    part.parameters["owner"] = "y"
    assert [one.object for one in changed_on_target(view, "sales")] == ["sales.t/ds=1"]


def test_a_table_that_is_moved_as_it_is_renamed_was_not_altered() -> None:
    """A load that was killed before it had set the fingerprint again left one that never fitted."""
    table = to_be_moved(replica())
    table.sd.location = "hdfs://dst/w/u"
    assert altered_aspects(table) == ()
    table.parameters["owner"] = "y"
    assert altered_aspects(table) == ("properties",)
    assert files_changed(table, ["f1"])
    table.sd.location = "hdfs://dst/w/elsewhere"
    assert altered_aspects(with_fingerprint(table)) == ()
    table.sd.location = "hdfs://dst/w/u"
    assert altered_aspects(table) == ("location",)
