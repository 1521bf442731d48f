"""Replication as an ordinary account of HDFS, and each right that it needs taken away, on real servers (docs/real-cluster.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hive_metastore.ttypes import Function, FunctionType, ResourceType, ResourceUri

from hive_replication.cli.main import run
from hive_replication.connect import Connection, connect
from hive_replication.doctor import examine
from hive_replication.drift import DriftScan, TableDrift
from hive_replication.errors import ReplicationError
from hive_replication.policy.checks import Drift
from hive_replication.storage import Denied, paths
from hive_replication.verify.witness import witness
from resources.embedded.cluster import Cluster, Side
from resources.embedded.policy import policy, save_policy
from tests.account import ACCOUNT, Account, acting, held, lacking
from tests.hadoop import administered
from tests.warehouse import Warehouse

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def root(cluster: Cluster) -> Connection:
    """The superuser's own connection, whose clients are connected before anybody acts as the account."""
    made = connect(policy(cluster, {"unused": "unused"}))
    for side in (made.source, made.target):
        side.storage.ls(side.storage.roots[0].uri)
    return made


@pytest.fixture
def account(root: Connection, unique: str) -> Account:
    made = Account(root, unique)
    for table in ("one", "two", "three"):
        made.origin.create(table)
        made.origin.insert(table, "1\n")
    made.origin.create("parts", "1", "2")
    for day in ("1", "2"):
        made.origin.insert("parts", "1\n", day)
    return made


def test_an_account_without_superuser_rights_replicates(account: Account) -> None:
    assert account.replicate().held == ()
    account.origin.insert("one", "2\n")
    account.origin.insert("parts", "2\n", "1", overwrite=True)
    account.origin.create("new", "1")
    assert account.replicate().held == ()
    assert account.unequal() == {}
    made = account.target.get_file_info(account.of_target())
    assert made.owner == ACCOUNT, "the metastore acts as the account (set_ugi)"


@pytest.mark.parametrize("packed_above", [0, 10_000], ids=["packed", "tree"])
def test_directories_that_may_not_be_read_hold_their_tables(account: Account, packed_above: int) -> None:
    """One of them kept a database from being dumped at all."""
    with acting():
        account.__dict__["connection"] = connect(account.policy.model_copy(update={"packed_above": packed_above}))
    one, part, below = account.of_source("one"), account.of_source("parts", "2"), f"{account.of_source('three')}/below"
    account.source.mkdirs(f"{account.of_source('two')}/.hive-staging_1", 0o700)  # of a running job
    account.source.mkdirs(below, 0o755)
    denied = [account.without(account.source, place, 0o700) for place in (one, part, below)]
    with denied[0], denied[1], denied[2]:
        found = held(account.replicate())
        assert found.keys() == {"one", "parts", "three"}
        assert all(path in found[name] and "could not list" in found[name] for name, path in (("one", one), ("parts", part)))
        assert lacking(account.unequal()["one"][0], one, "rx")
        with acting():
            sides = account.connection.source, account.connection.target
            assert "two" not in {found.table for found in witness(*sides, account.database).wrong}
    assert account.repair("one") == account.repair("parts") == account.repair("three") == ()
    assert account.unequal() == {}
    with account.without(account.source, one, 0o700):
        account.origin.insert("one", "2\n")
        account.origin.insert("two", "2\n")
        assert held(account.replicate()).keys() == {"one"}
        with acting():
            drift = DriftScan(account.connection.source, account.connection.target, account.database, settle=0).table("one")
            assert drift is not None
            assert lacking(drift.waiting, one, "rx")
            (wrong,) = witness(account.connection.source, account.connection.target, account.database).wrong
        assert lacking(wrong.text, one, "rx")
    assert account.repair("one") == ()
    assert account.unequal() == {}


def test_only_the_owner_of_a_directory_makes_snapshots_of_it(account: Account, source: Side) -> None:
    with acting():
        account.__dict__["connection"] = connect(account.policy.model_copy(update={"drift": Drift(snapshots=True)}))
    assert account.replicate().held == ()
    place = paths.split(paths.parent(account.origin.location("one")))[2]
    administered(source, place, "ALLOWSNAPSHOT")

    def scanned() -> TableDrift | None:
        with acting():
            return DriftScan(account.connection.source, account.connection.target, account.database, settle=0).table("one")

    found = scanned()
    assert found is not None
    assert "allows snapshots to this account" in found.whole
    account.source.set_owner(place, ACCOUNT, ACCOUNT)
    found = [scanned() for _ in range(2)]
    assert [(one.spared, one.whole[:11]) for one in found if one] == [(0, "no snapshot"), (1, "")]


def test_a_file_that_may_not_be_read_holds_its_table(account: Account) -> None:
    assert account.replicate().held == ()
    file = paths.split(account.origin.insert("one", "2\n"))[2]
    account.origin.insert("two", "2\n")
    with account.without(account.source, file, 0o600):
        found = held(account.replicate())
        assert found.keys() == {"one"}
        assert lacking(found["one"], file, "r")
    assert account.repair("one") == ()
    assert account.unequal() == {}


def test_cmroot_that_may_not_be_read_holds_what_is_only_there(account: Account) -> None:
    assert account.replicate().held == ()
    file = account.origin.insert("one", "2\n")
    account.root.source.metastore.drop_table(account.database, "three", delete_data=False)
    account.source.delete(paths.split(file)[2])
    account.origin.insert("two", "2\n")
    with account.without(account.source, account.source_cm_root, 0o700):
        with acting():
            (finding,) = (one for one in examine(account.connection) if one.check == "cmroot access")
        assert finding.verdict == "error"
        assert lacking(finding.found, account.source_cm_root, "rx")
        found = held(account.replicate())
    assert found.keys() == {"one"}
    assert lacking(found["one"], account.source_cm_root, "x")


def test_without_the_warehouse_nothing_is_made(account: Account) -> None:
    with account.without(account.target, account.warehouse, 0o755):
        with acting():
            findings = {one.check: one for one in examine(account.connection)}
        assert lacking(findings["write to the warehouse"].found, account.warehouse, "w")
        with pytest.raises(ReplicationError) as caught:
            account.replicate()
        assert f'user={ACCOUNT}, access=WRITE, inode="{account.warehouse}"' in str(caught.value)
        assert "\n" not in str(caught.value)
        assert account.root.target.metastore.database(account.database) is None
    assert account.replicate().held == ()


@pytest.mark.parametrize("table", ["", "one"], ids=["database", "table"])
def test_directories_of_the_target_that_may_not_be_written_hold_what_needs_them(account: Account, table: str) -> None:
    assert account.replicate().held == ()
    directory = account.of_target(table)
    account.origin.insert("one", "2\n")
    with account.without(account.target, directory, 0o755):
        if not table:
            account.origin.create("four")
        found = held(account.replicate())
        assert found.keys() == {table or "four"}
        assert all(lacking(reason, directory, "w") for reason in found.values())
    for name in found:
        assert account.repair(name) == ()
    assert account.unequal() == {}


def test_external_root_and_functions_root_hold_what_goes_there(account: Account) -> None:
    place = f"{account.root.source.policy.source.roots[0].uri}outside/{account.database}"
    account.root.source.storage.write(f"{place}/f", b"1\n")
    account.root.source.storage.write(f"{place}-jar/f.jar", b"jar")
    account.origin.create("outside")
    found = account.root.source.metastore.table(account.database, "outside")
    assert found is not None
    found.sd.location, found.tableType, found.parameters["EXTERNAL"] = place, "EXTERNAL_TABLE", "TRUE"
    account.root.source.metastore.alter_table(account.database, "outside", found)
    jar = ResourceUri(ResourceType.JAR, f"{place}-jar/f.jar")
    function = Function("f", account.database, "a.B", "root", 1, 0, FunctionType.JAVA, [jar])
    account.root.source.metastore.call("create_function", lambda client: client.create_function(function))
    for name in ("external", "jars"):
        account.target.mkdirs(f"{account.home}/{name}", create_parent=True)
        account.target.set_owner(f"{account.home}/{name}", ACCOUNT, ACCOUNT)
    external, jars = f"{account.home}/external", f"{account.home}/jars"
    with account.without(account.target, external, 0o755), account.without(account.target, jars, 0o755):
        with acting():
            findings = {one.check: one.found for one in examine(account.connection)}
        assert lacking(findings["write to external_root"], external, "w")
        assert lacking(findings["write to functions_root"], jars, "w")
        reasons = held(account.replicate())
        assert any(lacking(reasons[name], external, "w") for name in reasons if name == "outside")
        assert any(lacking(reasons[name], jars, "w") for name in reasons if name != "outside")
        assert len(reasons) == 2
    assert account.repair("outside") == ()


def test_without_the_dump_root_there_is_one_error(account: Account, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with account.without(account.target, account.home, 0o755), acting():
        findings = {(one.side, one.check): one.found for one in examine(account.connection)}
        assert lacking(findings["dump root", "write"], account.home, "w")
        with pytest.raises(Denied) as caught:
            Warehouse(account.connection, None, account.database).dump()  # type: ignore[arg-type]
        assert lacking(str(caught.value), account.home, "w")
        file = tmp_path / "policy.yaml"
        save_policy(account.policy, file)
        assert run(["REPL", "DUMP", account.database, "--config", str(file)]) == 1
        assert "lacks w on" in capsys.readouterr().err


def test_a_notification_log_that_may_not_be_read(cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The metastore says no more than that of an internal error."""
    setting = "metastore.event.db.notification.api.auth"
    asking = Cluster(cluster.directory, {"source-auth": {f"hive.{setting}": "true", f"metastore.{setting}": "true"}})
    asking.up(["source-auth"])
    try:
        made = policy(cluster, {"default": "other"}, source="source-auth").model_copy(update={"dump_root": tmp_path.as_uri()})
        save_policy(made, tmp_path / "policy.yaml")
        assert connect(made).source.metastore.current_event_id() >= 0  # as the superuser, who is a proxy user
        with acting():
            assert run(["REPL", "DUMP", "default", "--config", str(tmp_path / "policy.yaml")]) == 1
        said = capsys.readouterr().err
        assert f"the account {ACCOUNT} may not read the notification log" in said
        assert f"hive.{setting}=false" in said
        assert f"hadoop.proxyuser.{ACCOUNT}.hosts" in said
    finally:
        asking.down(["source-auth.metastore"])
