"""A source with data on a local (mounted) file system: file names that are no UTF-8, on real metastores."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hive_replication.api import verify
from hive_replication.connect import Connection, connect
from hive_replication.metastore.types import Table, copy_of
from hive_replication.policy import Root
from hive_replication.verify.witness import witness
from tests.origin import TEXT, Origin
from tests.warehouse import Warehouse

pytestmark = pytest.mark.servers


def with_local_root(connection: Connection, folder: Path, **settings: object) -> Connection:
    policy = connection.source.policy
    roots = (*policy.source.roots, Root(uri=folder.as_uri()))
    source = policy.source.model_copy(update={"roots": roots, "paths": (*policy.source.paths, folder.as_uri())})
    return connect(policy.model_copy(update={"source": source, **settings}))


@pytest.mark.parametrize("packed_above", [0, 10_000], ids=["packed", "tree"])
def test_a_name_that_is_no_utf8_holds_its_table_alone(
    connection: Connection, unique: str, tmp_path: Path, packed_above: int
) -> None:
    """A dump ended in a traceback: nobody else's tables were replicated."""
    tmp_path.chmod(0o755)
    side = with_local_root(connection, tmp_path, packed_above=packed_above, databases={unique: unique})
    origin, warehouse = Origin(side, unique), Warehouse(side, None, unique)  # type: ignore[arg-type]
    origin.create_database()
    for name in ("odd", "later"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text("1\n")
        sd = copy_of(TEXT)
        sd.location = f"{tmp_path.as_uri()}/{name}"
        parameters = {"EXTERNAL": "TRUE"}
        table = Table(tableName=name, dbName=unique, sd=sd, partitionKeys=[], parameters=parameters, tableType="EXTERNAL_TABLE")
        side.source.metastore.create_table(table)
    origin.create("neighbour")
    origin.insert("neighbour", "1\n")
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd/a\xff"))
    odd.write_text("2\n")
    told = f"the name of the file {tmp_path.as_uri()}/odd/a\\xff is no UTF-8; rename it at the source"

    report = warehouse.load(warehouse.dump().directory)
    assert {one.tables: told in one.reason for one in report.held} == {("odd",): True}
    warehouse.assert_equal(only="neighbour")
    replica = side.target.metastore.table(unique, "later")
    assert replica is not None
    assert [one.uri.removeprefix(replica.sd.location) for one in side.target.storage.files(replica.sd.location)] == ["/f"]
    odd.rename(tmp_path / "odd" / "a")
    odd_later = Path(os.fsdecode(os.fsencode(tmp_path) + b"/later/b\xfe"))
    odd_later.write_text("3\n")
    origin.insert("neighbour", "2\n")
    side.source.metastore.fire_insert_event(unique, "later", values=None, files=[], checksums=[], replace=False)
    report = warehouse.load(warehouse.dump(warehouse.applied()).directory)
    reasons = {one.tables: one.reason for one in report.held}
    assert "/later/b\\xfe is no UTF-8" in reasons[("later",)]
    warehouse.assert_equal(only="neighbour")
    assert [one.table for one in verify(side, unique) if one.differences] == ["later", "odd"]
    assert {one.table for one in witness(side.source, side.target, unique).wrong} <= {"later", "odd"}
