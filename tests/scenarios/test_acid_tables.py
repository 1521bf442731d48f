"""Scenarios of transactional tables, on metastores 4.2.0: one database, written to by thrift, tables for each scenario."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from hive_replication.connect import connect
from hive_replication.dump.bootstrap.table_reader import ObjectReader
from hive_replication.policy.acid import Acid
from hive_replication.repair import repair
from resources.embedded.cluster import Cluster, Side
from resources.embedded.policy import policy
from tests.fixtures.record import Recorder
from tests.ledger import Ledger, make
from tests.writers import Writer, create

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def site(cluster: Cluster, source4: Side, target4: Side) -> Iterator[Ledger]:
    """A database that is replicated already."""
    name = f"s{uuid.uuid4().hex[:10]}"
    connection = connect(policy(cluster, {name: name}, source4.name, target4.name))
    ledger = make(connection, name)
    assert ledger.replicate().held == ()
    yield ledger
    connection.source.metastore.close()
    connection.target.metastore.close()


def new(site: Ledger, table: str, *, plain: bool = False) -> str:
    source = site.connection.source
    create(source.metastore, source.storage, site.database, table)
    if plain:
        found = source.metastore.table(site.database, table)
        assert found is not None
        source.metastore.drop_table(site.database, table)
        found.parameters = {}
        source.metastore.create_table(found)
    return table


def written(site: Ledger, table: str, text: str) -> Writer:
    writer = site.begin()
    writer.insert(table, text)
    writer.commit()
    return writer


def same(site: Ledger, table: str) -> bool:
    ours, theirs = (site.files(source=side, table=table) for side in (True, False))
    return ours == theirs and site.highest(source=True, table=table) == site.highest(source=False, table=table)


def with_acid(site: Ledger, **settings: object) -> Ledger:
    return site.with_policy(acid=Acid(**settings))  # type: ignore[arg-type]


def test_s157_concurrent_drop(site: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table is written to, dropped and made again while it is dumped: the dump has what is there at its end."""
    new(site, "s157")
    written(site, "s157", "before\n")
    read = ObjectReader.read

    def reading(reader: ObjectReader, name: str) -> None:
        read(reader, name)
        if name == "s157":
            monkeypatch.undo()
            written(site, name, "meanwhile\n")
            site.connection.source.metastore.drop_table(site.database, name, delete_data=True)
            new(site, name)
            written(site, name, "after\n")

    monkeypatch.setattr(ObjectReader, "read", reading)
    dump = site.dump()
    (record,) = (one for one in site.connection.store.open(dump.directory).tables() if one.name == "s157")
    assert [f"{file.subdir}/{file.name}" for file in record.files] == list(site.files(source=True, table="s157"))
    assert record.write_ids is not None
    assert record.write_ids.high == site.highest(source=True, table="s157")
    assert site.replicate().held == ()
    assert list(site.files(source=False, table="s157").values()) == [b"after\n"]


def test_s163_directory_missing(site: Ledger) -> None:
    """What a commit wrote is nowhere: its lane is held with both paths; so is a table without a directory, until it is back."""
    new(site, "s163")
    assert site.replicate().held == ()
    writer = site.begin()
    path = writer.insert("s163", "gone\n")
    writer.commit()
    dump = site.dump(site.applied())
    site.connection.source.storage.delete(path)
    (held,) = site.load(dump.directory).held
    assert held.tables == ("s163",)
    assert path in held.reason
    assert "cmroot" in held.reason
    directory = path.rsplit("/", 2)[0]
    site.connection.source.storage.delete(directory, recursive=True)
    (held,) = repair(site.connection, site.database, "s163").load.held
    assert f"the directory {directory} was missing at the source" in held.reason
    site.connection.source.storage.mkdirs(directory)
    assert repair(site.connection, site.database, "s163").load.held == ()
    assert site.files(source=False, table="s163") == {}


def test_s167_acid_replaces_dropped_nonacid(site: Ledger) -> None:
    """A transactional table of the name of a plain one that was dropped, in one window, and in two."""
    for windows in (1, 2):
        name = new(site, f"s167_{windows}", plain=True)
        assert site.replicate().held == ()
        site.connection.source.metastore.drop_table(site.database, name)
        if windows == 2:
            assert site.replicate().held == ()
        new(site, name)
        written(site, name, "1\n")
        assert site.replicate().held == ()
        assert same(site, name)
        table = site.connection.target.metastore.table(site.database, name)
        assert table is not None
        assert table.parameters["transactional"] == "true"


def test_s169_materialized_views(site: Ledger) -> None:
    """Neither they nor the transactions that rebuild them are replicated, and nothing is held for them."""
    source = site.connection.source
    new(site, "s169")
    view = source.metastore.table(site.database, "s169")
    assert view is not None
    view.tableName, view.tableType, view.sd.location = "s169_view", "MATERIALIZED_VIEW", None
    view.viewOriginalText = view.viewExpandedText = f"SELECT a FROM {site.database}.s169"
    source.metastore.create_table(view)
    for text in ("1\n", "2\n"):
        written(site, "s169", text)
        written(site, "s169_view", text)
        assert site.replicate().held == ()
    assert same(site, "s169")
    assert site.connection.target.metastore.table(site.database, "s169_view") is None


def test_s170_bootstrap_after_major_compaction(site: Ledger) -> None:
    """The compacted base is called on the target as a writer would have called it; write ids are equal."""
    new(site, "s170")
    for text in ("1\n", "2\n"):
        written(site, "s170", text)
    source = site.connection.source
    table = source.metastore.table(site.database, "s170")
    assert table is not None
    compaction = site.begin()
    source.storage.write(f"{table.sd.location}/base_0000002_v{compaction.transaction:07d}/000000_0", b"1\n2\n")
    compaction.commit()
    assert repair(site.connection, site.database, "s170").load.held == ()
    assert site.files(source=False, table="s170") == {"base_0000002/000000_0": b"1\n2\n"}
    assert site.highest(source=False, table="s170") == 2
    written(site, "s170", "3\n")
    assert site.replicate().held == ()
    assert site.files(source=False, table="s170").keys() == {"base_0000002/000000_0", "delta_0000003_0000003_0000/000000_0"}


def test_s172_replicated_size(site: Ledger) -> None:
    """The report of a load tells how many bytes it copied, of a commit as of anything."""
    new(site, "s172")
    assert site.replicate().held == ()
    written(site, "s172", "12345\n")
    assert site.replicate().bytes_copied == 6


def test_s173_acid_tables_added_to_a_policy(site: Ledger) -> None:
    """Tables that a policy left out come with a repair once it takes them, then with windows like all others."""
    left = with_acid(site, replicate=False)
    new(site, "s173")
    written(site, "s173", "1\n")
    assert left.replicate().held == ()
    assert site.connection.target.metastore.table(site.database, "s173") is None
    assert repair(site.connection, site.database, "s173").load.held == ()
    assert same(site, "s173")
    written(site, "s173", "2\n")
    assert site.replicate().held == ()
    assert same(site, "s173")


def test_s176_added_with_open_transactions(site: Ledger) -> None:
    """A repair aborts what stays open after the timeout, and its write ids are known on the target."""
    new(site, "s176")
    written(site, "s176", "1\n")
    stuck = site.begin()
    stuck.insert("s176", "never\n")
    stuck.lock("s176")
    hasty = with_acid(site, open_txn_timeout=0).connection
    assert repair(hasty, site.database, "s176").load.held == ()
    assert list(site.files(source=False, table="s176").values()) == [b"1\n"]
    assert site.highest(source=False, table="s176") == 2
    written(site, "s176", "2\n")
    assert site.replicate().held == ()
    assert sorted(site.files(source=False, table="s176").values()) == [b"1\n", b"2\n"]


def test_s179_source_table_dropped_before_the_load(site: Ledger) -> None:
    """What was committed comes from cmroot, then the drop."""
    new(site, "s179")
    assert site.replicate().held == ()
    written(site, "s179", f"{site.database} s179\n")  # of its own: cmroot keeps equal files once
    dump = site.dump(site.applied())
    site.connection.source.metastore.drop_table(site.database, "s179", delete_data=True)
    report = site.load(dump.directory)
    assert (report.held, [copy.origin for copy in report.copies]) == ((), ["cmroot"])
    assert list(site.files(source=False, table="s179").values()) == [f"{site.database} s179\n".encode()]
    assert site.replicate().held == ()
    assert site.connection.target.metastore.table(site.database, "s179") is None


def test_s181_streaming(site: Ledger) -> None:
    """A stream of transactions one after another, into a table and a partition: each shows with the window of its commit."""
    source = site.connection.source
    new(site, "s181")
    create(source.metastore, source.storage, site.database, "s181_parts", ("ds",))
    table = source.metastore.table(site.database, "s181_parts")
    assert table is not None
    made = Recorder(source.metastore, source.storage, site.database)._partition(table, ["1"])
    source.metastore.add_partitions(site.database, "s181_parts", [made])
    shown: list[int] = []
    for number in range(4):
        writer = site.begin()
        writer.insert("s181", f"{number}\n")
        writer.insert("s181_parts", f"{number}\n", "ds=1")
        assert site.replicate().held == ()
        writer.abort() if number == 2 else writer.commit()
        assert site.replicate().held == ()
        shown.append(len(site.files(source=False, table="s181")))
        assert len(site.files(source=False, table="s181_parts")) == shown[-1]
    assert shown == [1, 2, 2, 3]
