"""Names of transactional tables that are used again: a table under such a name begins with the source's write ids (A20)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator

import pytest

from hive_replication.connect import connect
from hive_replication.errors import Unreachable
from hive_replication.load.apply.change_tables import TableChanges
from hive_replication.load.apply.lane_placement import LanePlacement
from hive_replication.load.operations.transactions import ImpressWriteIds
from hive_replication.repair import repair
from resources.embedded.cluster import Cluster, Side
from resources.embedded.policy import policy
from tests.ledger import Ledger, make
from tests.writers import Writer, create

pytestmark = pytest.mark.servers

_WRITE = re.compile(r"delta_(\d+)_\d+_\d+/")


@pytest.fixture(scope="module")
def site(cluster: Cluster, source4: Side, target4: Side) -> Iterator[Ledger]:
    """A database that is replicated already."""
    ledger = _ledger(cluster, source4, target4)
    assert ledger.replicate().held == ()
    yield ledger
    ledger.connection.source.metastore.close()
    ledger.connection.target.metastore.close()


def _ledger(cluster: Cluster, source4: Side, target4: Side) -> Ledger:
    name = f"n{uuid.uuid4().hex[:10]}"
    return make(connect(policy(cluster, {name: name}, source4.name, target4.name)), name)


def _make(site: Ledger, table: str, *rows: str) -> None:
    create(site.connection.source.metastore, site.connection.source.storage, site.database, table)
    site.write(table, *rows)


def _drop(site: Ledger, table: str) -> None:
    """As Hive drops it."""
    site.connection.source.metastore.drop_table(site.database, table, delete_data=True)


def _read(site: Ledger, table: str, *, source: bool) -> dict[str, bytes]:
    """What a reader sees: the files of write ids that are committed to it."""
    seen = site.write_ids(source=source, table=table)
    files = site.files(source=source, table=table)
    return {name: rows for name, rows in files.items() if seen.sees(int(_WRITE.match(name)[1]))}  # type: ignore[index]


def _assert_same(site: Ledger, table: str) -> None:
    assert _read(site, table, source=False) == _read(site, table, source=True)
    assert site.highest(source=False, table=table) == site.highest(source=True, table=table)


def test_second_bootstrap_over_a_half_made_one(
    cluster: Cluster, source4: Side, target4: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bootstrap ends after the write ids of a table; a later dump, not that one, is loaded next."""
    site = _ledger(cluster, source4, target4)
    _make(site, "t", "1", "2", "3")
    carry_out = TableChanges.carry_out

    def ending(changes: TableChanges, lane: LanePlacement, number: int) -> None:
        carry_out(changes, lane, number)
        one = lane.lane.operations[number]
        if isinstance(one, ImpressWriteIds) and one.table == "t":
            raise Unreachable("the load ends here")

    monkeypatch.setattr(TableChanges, "carry_out", ending)
    with pytest.raises(Unreachable):
        site.replicate()
    monkeypatch.undo()
    site.write("t", "4", "5")
    assert site.replicate().held == ()
    _assert_same(site, "t")
    site.write("t", "6")
    assert site.replicate().held == ()
    _assert_same(site, "t")


def test_renamed_over_a_dropped_one(site: Ledger) -> None:
    """``DROP TABLE t; ALTER TABLE n RENAME TO t``, in one window and in two."""
    for windows in (1, 2):
        over, new = f"over{windows}", f"new{windows}"
        _make(site, over, "1", "2", "3")
        _make(site, new, *"abcdefg")
        assert site.replicate().held == ()
        _drop(site, over)
        if windows == 2:
            assert site.replicate().held == ()
        site.rename(new, over)
        site.write(over, "h")
        assert site.replicate().held == ()
        _assert_same(site, over)


def test_swapped(site: Ledger) -> None:
    """Two tables change names by way of a third one."""
    _make(site, "left", "1", "2", "3")
    _make(site, "right", "a")
    assert site.replicate().held == ()
    for old, new in (("left", "aside"), ("right", "left"), ("aside", "right")):
        site.rename(old, new)
    site.write("left", "b")
    site.write("right", "4")
    assert site.replicate().held == ()
    _assert_same(site, "left")
    _assert_same(site, "right")


def test_dropped_and_made_again(site: Ledger) -> None:
    """What the new table gets is not read before its commit, whether or not the drop is a window of its own."""
    for windows in (1, 2):
        name = f"again{windows}"
        _make(site, name, "1", "2", "3")
        assert site.replicate().held == ()
        _drop(site, name)
        if windows == 2:
            assert site.replicate().held == ()
            assert site.highest(source=False, table=name) == 0
        _make(site, name)
        writer = site.begin()
        writer.insert(name, "a\n")
        assert site.replicate().held == ()
        _assert_same(site, name)
        writer.commit()
        assert site.replicate().held == ()
        _assert_same(site, name)


def test_out_of_the_policy_and_in_again(site: Ledger) -> None:
    """A table leaves the policy by a rename, is written to there, and comes back by a repair."""
    one = site.with_policy(exclude=("out*",))
    connection = one.connection
    _make(site, "leaves", "1", "2", "3")
    assert one.replicate().held == ()
    site.rename("leaves", "outside")
    assert one.replicate().held == ()
    assert connection.target.metastore.table(site.database, "leaves") is None
    site.write("outside", "4", "5")
    site.rename("outside", "leaves")
    repair(connection, site.database, "leaves")
    _assert_same(site, "leaves")
    site.write("leaves", "6")
    assert one.replicate().held == ()
    _assert_same(site, "leaves")


@pytest.mark.parametrize("left", ["the drop", "a load that was killed"])
def test_dropped_on_the_target_and_repaired(site: Ledger, left: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody drops the replica and leaves its data there, which leaves its write ids too."""
    name, target = "gone" if left == "the drop" else "killed", site.connection.target
    _make(site, name, "1", "2", "3")
    assert site.replicate().held == ()
    target.metastore.drop_table(site.database, name, delete_data=False)
    assert site.highest(source=False, table=name) == 3
    site.write(name, "4", "5")
    if left == "a load that was killed":
        drop_table = type(target.metastore).drop_table

        def ending(metastore: object, db: str, table: str, **options: bool) -> bool:
            if table == name:
                raise Unreachable("the load ends here")
            return drop_table(metastore, db, table, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(type(target.metastore), "drop_table", ending)
        with pytest.raises(Unreachable):
            repair(site.connection, site.database, name)
        monkeypatch.undo()
    assert repair(site.connection, site.database, name).load.held == ()
    _assert_same(site, name)
    site.write(name, "6")
    assert site.replicate().held == ()
    _assert_same(site, name)


def test_files_of_a_dropped_replica_stay(site: Ledger) -> None:
    """The metastore forgets the write ids, and queries that began before the drop still find all files."""
    target = site.connection.target
    _make(site, "kept", "1", "2")
    assert site.replicate().held == ()
    place = f"{target.metastore.database(site.database).locationUri}/kept"  # type: ignore[union-attr]
    before = set(target.storage.named_files(place))
    assert len(before) == 2
    _drop(site, "kept")
    assert site.replicate().held == ()
    assert target.metastore.table(site.database, "kept") is None
    assert set(target.storage.named_files(place)) == before
    assert site.highest(source=False, table="kept") == 0


@pytest.mark.parametrize("before", ["alter_table", "drop_table"])
def test_killed_in_a_drop(site: Ledger, before: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the drop readers see the table as it was; the next load drops it."""
    name, metastore = f"killed_{before}", site.connection.target.metastore
    _make(site, name, "1", "2")
    assert site.replicate().held == ()
    _drop(site, name)
    dump = site.dump(site.applied())

    def ending(*_: object, **__: object) -> None:
        raise Unreachable("the load ends here")

    monkeypatch.setattr(type(metastore), before, ending)
    with pytest.raises(Unreachable):
        site.load(dump.directory)
    monkeypatch.undo()
    assert list(_read(site, name, source=False).values()) == [b"1\n", b"2\n"]
    assert site.load(dump.directory).held == ()
    assert metastore.table(site.database, name) is None
    assert site.highest(source=False, table=name) == 0


def test_foreign_tables_in_the_way(site: Ledger) -> None:
    """Of a foreign table neither rows nor write ids are left, however the policy settles the conflict."""
    target = site.connection.target
    for how in ("replace", "adopt", "keep-aside"):
        name = f"foreign_{how.replace('-', '_')}"
        create(target.metastore, target.storage, site.database, name)
        for row in ("x", "y"):
            writer = Writer.begin(target.metastore, target.storage, site.database)
            writer.insert(name, f"{row}\n")
            writer.commit()
        one = site.with_policy(conflicts=how)
        _make(site, name, "1")
        writer = site.begin()
        writer.insert(name, "2\n")
        assert one.replicate().held == ()
        _assert_same(site, name)
        writer.commit()
        assert one.replicate().held == ()
        _assert_same(site, name)
