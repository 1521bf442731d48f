"""Owner, group, mode, ACL and extended attributes of replicas (policy ``preserve``), on a real HDFS that asks for permissions."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import hdfs_native
import pytest

from hive_replication import verify
from hive_replication.connect import Connection, connect
from hive_replication.doctor import examine
from hive_replication.events.files import FileRef
from hive_replication.load.apply import change_data
from hive_replication.load.report import LoadReport
from hive_replication.load.undo.undo import undo
from hive_replication.metastore.types import Database
from hive_replication.operate import repair
from hive_replication.storage import Denied, Storage, paths
from hive_replication.storage.access import Access
from hive_replication.storage.hdfs_xattrs import read_xattrs, set_xattrs
from resources.embedded.cluster import Cluster
from tests.origin import Origin
from tests.warehouse import Warehouse

pytestmark = pytest.mark.servers


@dataclass
class Pair:
    """A source database and its replica, and clients that see owners and modes."""

    connection: Connection
    database: str
    origin: Origin

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse(self.connection, None, self.database)  # type: ignore[arg-type]

    def in_policy(self, **settings: object) -> Pair:
        made = self.warehouse.with_policy(**settings)
        return replace(self, connection=replace(made.connection, store=self.connection.store))

    @property
    def source(self) -> hdfs_native.Client:
        return hdfs_native.Client(self.connection.source.policy.source.roots[0].uri.rstrip("/"))

    @property
    def target(self) -> hdfs_native.Client:
        return hdfs_native.Client(self.connection.source.policy.target.roots[0].uri.rstrip("/"))

    def own(self, uri: str, owner: str, group: str, mode: int) -> None:
        """Changes a file or directory of the source."""
        self.source.set_owner(paths.split(uri)[2], owner, group)
        self.source.set_permission(paths.split(uri)[2], mode)

    def replica(self, table: str, day: str = "") -> str:
        """Path of the replica's directory."""
        metastore = self.connection.target.metastore
        found = metastore.table(self.database, table)
        if day:
            (found,) = metastore.partitions(self.database, table, [f"ds={day}"])
        assert found is not None
        return paths.split(str(found.sd.location))[2]

    def shown(self, path: str) -> tuple[str, str, str]:
        """Owner, group and octal mode of a path of the target."""
        found = self.target.get_file_info(path)
        return found.owner, found.group, f"{found.permission:o}"

    def group(self, path: str) -> tuple[str, str]:
        """What the owning group of a path with an ACL may, the mask left aside."""
        found = self.target.get_acl_status(path)
        return found.group, next(one.permissions for one in found.entries if one.type == "group" and not one.name)

    def files(self, directory: str) -> dict[str, tuple[str, str, str]]:
        found = self.target.list_status(directory, recursive=True)
        return {one.path[len(directory) + 1 :]: self.shown(one.path) for one in found if not one.isdir}


@pytest.fixture
def pair(connection: Connection, unique: str) -> Pair:
    made = Pair(connection, unique, Origin(connection, unique))
    made.origin.create_database()
    return made


def told(report: LoadReport) -> list[str]:
    return [one.reason for one in report.skipped if one.what.startswith("access to ")]


def location(pair: Pair) -> str:
    database = pair.connection.source.metastore.database(pair.database)
    assert database is not None
    return str(database.locationUri)


def test_private_tables_stay_private(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A11: etl:finance 750 arrived as the loader's account and 755."""
    origin = pair.origin
    origin.create("private")
    pair.own(origin.insert("private", "1\n"), "etl", "finance", 0o640)
    pair.own(origin.location("private"), "etl", "finance", 0o750)
    origin.create("parts", "1", "2")
    origin.insert("parts", "1\n", "1")
    origin.insert("parts", "2\n", "2")
    pair.own(origin.location("parts"), "etl", "finance", 0o750)
    pair.own(origin.location("parts", "2"), "etl", "hr", 0o770)
    report = pair.warehouse.replicate()
    assert not report.held
    assert not told(report)
    private = pair.replica("private")
    assert pair.shown(private) == ("etl", "finance", "750")
    assert list(pair.files(private).values()) == [("etl", "finance", "640")]
    assert pair.shown(pair.replica("parts")) == ("etl", "finance", "750")
    assert pair.shown(pair.replica("parts", "1"))[1:] == ("finance", "750")
    assert pair.shown(pair.replica("parts", "2")) == ("etl", "hr", "700"), "hr alone may not pass the table's directory"

    origin.insert("private", "2\n")  # appended, and replaced beside the table's directory
    origin.insert("parts", "3\n", "1", overwrite=True)
    origin.create("later", "1")
    pair.own(origin.location("later"), "etl", "finance", 0o700)
    origin.insert("later", "1\n", "1")
    report = pair.warehouse.replicate()
    assert not report.held
    assert pair.shown(private) == ("etl", "finance", "750")
    assert sorted(pair.files(private).values()) == [("etl", "finance", "640"), ("root", "finance", "644")]
    moved = pair.replica("parts", "1")
    assert "/.repl/" in moved
    own = f"{moved.partition('/.repl/')[0]}/.repl"
    hidden = (posixpath.dirname(moved), f"{own}/journal")
    assert [pair.shown(one)[2] for one in hidden] == ["711", "700"]
    with monkeypatch.context() as patch:
        patch.setenv("HADOOP_USER_NAME", "eve")
        for one in hidden:
            with pytest.raises(RuntimeError, match="Permission denied: user=eve"):
                list(pair.target.list_status(one))
    assert pair.shown(moved)[1:] == ("finance", "750")
    assert pair.shown(posixpath.dirname(pair.replica("later", "1"))) == ("etl", "finance", "700")
    assert pair.shown(pair.replica("later", "1"))[2] == "700"
    pair.warehouse.assert_equal()


@pytest.mark.parametrize("kills", [False, True])
def test_private_files_that_become_visible_with_new_ones_stay_private(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, *, kills: bool
) -> None:
    """They are copied beside the new ones, and were open to all there: their directory is. It is nobody else's before."""
    atomic = pair.in_policy(append="atomic")
    pair.origin.create("t")
    pair.own(pair.origin.insert("t", "1\n"), "etl", "finance", 0o640)
    atomic.warehouse.replicate()
    live = pair.replica("t")
    pair.target.mkdirs(f"{live}/sub")
    pair.target.set_permission(f"{live}/sub", 0o750)
    pair.target.set_owner(f"{live}/sub", "etl", "finance")
    (name,) = pair.files(live)
    pair.target.rename(f"{live}/{name}", f"{live}/sub/{name}")
    pair.target.create(f"{live}/own").close()
    pair.target.set_owner(f"{live}/own", "etl", "hr")
    pair.target.set_permission(f"{live}/own", 0o600)
    pair.origin.insert("t", "2\n")
    access = change_data._access

    def killed(storage: Storage, directory: str) -> Access | None:
        if directory.endswith("/sub"):
            raise KeyboardInterrupt
        return access(storage, directory)

    with monkeypatch.context() as once, pytest.raises(KeyboardInterrupt) if kills else nullcontext():
        once.setattr(change_data, "_access", killed if kills else access)
        assert not atomic.warehouse.replicate().held
    assert not atomic.warehouse.replicate().held
    staged = pair.replica("t")
    assert staged != live
    found = pair.files(staged)
    assert (found.pop(f"sub/{name}"), found.pop("own")) == (("etl", "finance", "640"), ("etl", "hr", "600"))
    assert [one[2] for one in found.values()] == ["644"]
    assert pair.shown(f"{staged}/sub") == ("etl", "finance", "750")


def test_what_an_undo_takes_back_stays_private(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of mode 644, which the table's directory protected, lay open below directories that were made for them."""
    pair.origin.create("private")
    pair.own(pair.origin.location("private"), "etl", "finance", 0o750)
    pair.origin.insert("private", "1\n")
    pair.warehouse.replicate()
    before = pair.warehouse.applied()
    assert before is not None
    pair.origin.insert("private", "2\n")
    assert not pair.warehouse.replicate().held
    undo(pair.connection.target, pair.database, None, before)
    database = posixpath.dirname(pair.replica("private"))
    ((file, (_, _, mode)),) = pair.files(f"{database}/.repl/retired").items()
    assert mode == "644"
    retired = f"{database}/.repl/retired/{file}"
    assert pair.shown(posixpath.dirname(retired)) == ("etl", "finance", "750")
    monkeypatch.setenv("HADOOP_USER_NAME", "eve")
    root = pair.connection.target.policy.target.roots[0].uri.rstrip("/")
    with pytest.raises(Denied):
        connect(pair.connection.target.policy).target.storage.read(f"{root}{retired}")


def test_a_private_sub_directory_stays_private_where_it_joins_a_table(pair: Pair) -> None:
    pair.origin.create("t")
    pair.origin.insert("t", "1\n")
    pair.warehouse.replicate()
    storage, file = pair.connection.source.storage, f"{pair.origin.location('t')}/sub/000001_0"
    storage.write(file, b"2\n")
    pair.own(paths.parent(file), "etl", "finance", 0o750)
    checksum = storage.checksum(file)
    assert checksum is not None
    event = {"values": None, "files": [file], "checksums": [checksum.value], "replace": False}
    pair.connection.source.metastore.fire_insert_event(pair.database, "t", **event)
    assert not pair.warehouse.replicate().held
    assert pair.shown(f"{pair.replica('t')}/sub") == ("etl", "finance", "750")
    pair.warehouse.assert_equal()


def test_the_directory_of_a_private_database_protects_its_replica(pair: Pair) -> None:
    pair.own(location(pair), "etl", "finance", 0o750)
    pair.origin.create("t")
    pair.origin.insert("t", "1\n")
    pair.warehouse.replicate()
    assert pair.shown(posixpath.dirname(pair.replica("t"))) == ("etl", "finance", "750")
    assert pair.shown(pair.replica("t"))[1:] == ("finance", "750")


def test_a_private_directory_above_the_root_protects_replicas(pair: Pair, unique: str) -> None:
    """It was not looked at, so that a narrow root made replicas that everybody might read."""
    policy = pair.connection.source.policy
    root = policy.source.roots[0]
    closed, name = f"{root.uri}closed/{unique}", f"{unique}_n"
    roots = [root.model_copy(update={"uri": uri}) for uri in (f"{closed}/warehouse/", pair.connection.source.cm_root())]
    source = policy.source.model_copy(update={"roots": tuple(roots)})
    narrow = policy.model_copy(update={"source": source, "databases": {name: name}})
    made = Pair(connect(narrow), name, Origin(connect(narrow), name))
    pair.connection.source.metastore.create_database(
        Database(name=name, locationUri=f"{closed}/warehouse/{name}.db", parameters={})
    )
    made.origin.create("t")
    made.origin.insert("t", "1\n")
    pair.own(closed, "etl", "finance", 0o750)
    assert not made.in_policy(preserve=()).warehouse.replicate().held
    assert made.shown(made.replica("t"))[2] == "755"
    (compared,) = verify(made.connection, name)
    assert "755 on the target, which allows more than root:finance 750" in repr(compared.differences)
    assert repair(made.connection, f"{name}.t").left == ()
    assert made.shown(made.replica("t"))[1:] == ("finance", "750")


def test_acls_are_kept_or_narrow_the_mode(pair: Pair) -> None:
    def acl(scope: Any, kind: Any, actions: Any, name: str | None = None) -> hdfs_native.AclEntry:
        return hdfs_native.AclEntry(kind, scope, actions, name)

    base = [acl("access", "user", "rwx"), acl("access", "group", "---"), acl("access", "other", "---")]

    def fill(table: str) -> None:
        pair.origin.create(table)
        file = pair.origin.insert(table, "1\n")
        path = paths.split(pair.origin.location(table))[2]
        default = [acl("default", *one) for one in (("user", "rwx"), ("group", "r-x"), ("group", "r-x", "ana"), ("other", "---"))]
        pair.source.set_acl(path, [*base, acl("access", "user", "r-x", "bob"), *default])
        pair.source.set_acl(paths.split(file)[2], [*base, acl("access", "user", "r--", "bob")])

    fill("kept")
    assert not pair.warehouse.replicate().held
    replica = pair.replica("kept")

    def named(path: str) -> set[tuple[str, str | None, str, str]]:
        found = pair.target.get_acl_status(path).entries
        return {(one.scope, one.name, one.type, one.permissions) for one in found if one.name}

    (file,) = pair.files(replica)
    assert named(replica) == {("access", "bob", "user", "r-x"), ("default", "ana", "group", "r-x")}
    assert named(f"{replica}/{file}") == {("access", "bob", "user", "r--")}

    fill("shared")
    directory = paths.split(pair.origin.location("shared"))[2]
    pair.source.set_permission(directory, 0o1777)
    pair.origin.create("plain")
    pair.origin.insert("plain", "1\n")
    pair.source.set_permission(paths.split(pair.origin.location("plain"))[2], 0o1777)
    assert not pair.warehouse.replicate().held
    assert named(pair.replica("shared")) == named(replica)
    assert [pair.shown(pair.replica(table))[2] for table in ("shared", "plain")] == ["1757", "1777"]
    assert [one.table for one in verify(pair.connection, pair.database) if one.differences] == []
    pair.target.set_permission(pair.replica("shared"), 0o777)
    assert [one.table for one in verify(pair.connection, pair.database) if one.differences] == ["shared"]

    fill("dropped")
    assert not pair.in_policy(preserve=("owner", "group", "mode")).warehouse.replicate().held
    replica = pair.replica("dropped")
    assert not named(replica)
    assert pair.shown(replica)[2] == "700", "the mode's bits of the group are the ACL's mask: the group itself has none"
    assert [mode for _, _, mode in pair.files(replica).values()] == ["700"]


def xattrs(storage: Storage, uri: str) -> Mapping[str, str] | None:
    return storage.about_webhdfs(uri, read_xattrs)


def test_extended_attributes_are_kept_where_the_policy_says_so(pair: Pair) -> None:
    """S148; a file that comes from cmroot has two more, which are not its own."""
    pair = pair.in_policy(preserve=("mode", "xattr"))
    origin, source, target = pair.origin, pair.connection.source.storage, pair.connection.target.storage
    origin.create("parts", "1")
    given = {"user.class": "0x636f6e66", "user.é &=": "0x", "trusted.level": "0x00ff"}
    for uri in (origin.location("parts"), origin.location("parts", "1"), origin.insert("parts", "1\n", "1")):
        source.about_webhdfs(uri, lambda web, path: set_xattrs(web, path, given))
    report = pair.warehouse.replicate()
    assert (report.held, told(report)) == ((), [])
    (part,) = pair.connection.target.metastore.partitions(pair.database, "parts")
    (copied,) = [file.uri for file in target.files(part.sd.location)]
    assert [xattrs(target, uri) for uri in (paths.parent(part.sd.location), part.sd.location, copied)] == [given] * 3

    source.about_webhdfs(origin.insert("parts", "2\n", "1"), lambda web, path: set_xattrs(web, path, {"user.class": "0x31"}))
    dump = pair.warehouse.dump(pair.warehouse.applied())
    pair.connection.source.metastore.drop_table(pair.database, "parts", delete_data=True)
    report = pair.warehouse.load(dump.directory)
    assert report.files_by_origin == {"cmroot": 1}
    (new,) = [file.uri for file in target.files(part.sd.location) if file.uri != copied]
    assert xattrs(target, new) == {"user.class": "0x31"}


def test_an_account_that_may_not_keep_the_group_takes_its_rights_away(
    cluster: Cluster, pair: Pair, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for table, mode in (("private", 0o750), ("public", 0o755)):
        pair.origin.create(table)
        pair.own(file := pair.origin.insert(table, "1\n"), "etl", "finance", mode & 0o666)
        pair.own(pair.origin.location(table), "etl", "finance", mode)
        reads = hdfs_native.AclEntry("user", "access", "r-x", "loader")
        for uri in (pair.origin.location(table), file):
            pair.source.modify_acl_entries(paths.split(uri)[2], [reads])
    home = f"/home/{unique}"
    for client in (pair.source, pair.target):
        client.mkdirs(home, create_parent=True)
        client.set_owner(home, "loader", "staff")
    monkeypatch.setenv("HADOOP_USER_NAME", "loader")
    root = pair.connection.source.policy.target.roots[0].uri.rstrip("/")
    policy = pair.connection.source.policy.model_copy(
        update={
            "databases": {unique: unique},
            "dump_root": f"{root}{home}/dumps",
            "locations": {unique: f"{root}{home}/db"},
        }
    )
    warehouse = Warehouse(connect(policy), None, unique)  # type: ignore[arg-type]
    warehouse.connection.target.storage.mkdirs(f"{root}{home}/db")
    (finding,) = (one for one in examine(warehouse.connection) if one.check == "owners and permissions")
    assert (finding.verdict, "may not give files away" in finding.found) == ("warning", True)
    report = warehouse.replicate()
    assert not report.held
    reasons = told(report)
    assert sum("owner" in one for one in reasons) == 1
    assert sum("group finance" in one for one in reasons) == 1, reasons
    assert pair.group(pair.replica("private")) == ("staff", "---")
    assert pair.group(pair.replica("public")) == ("staff", "r-x")
    (file,) = pair.files(pair.replica("private"))
    assert pair.group(f"{pair.replica('private')}/{file}") == ("staff", "---")


def test_what_was_loaded_too_wide_is_mended_by_a_repair(pair: Pair) -> None:
    """As versions before this one loaded it, and after somebody changed a replica."""
    pair.origin.create("t")
    pair.origin.insert("t", "1\n")
    pair.own(pair.origin.location("t"), "etl", "finance", 0o750)
    wide = pair.in_policy(preserve=())
    assert "preserve is []" in repr([one for one in examine(wide.connection) if one.check == "owners and permissions"])
    wide.warehouse.replicate()
    assert pair.shown(pair.replica("t")) == ("root", "supergroup", "755")
    made = pair.in_policy()
    done = repair(made.connection, f"{pair.database}.t")
    assert "root:supergroup 755 on the target, which allows more than etl:finance 750" in repr(done.found)
    assert done.left == ()
    assert pair.shown(pair.replica("t")) == ("etl", "finance", "750")


def test_a_directory_that_is_gone_at_the_source_leaves_the_replica_to_its_owner(pair: Pair) -> None:
    pair.origin.create("t")
    file = pair.origin.insert("t", f"{pair.database}\n")
    dump = pair.warehouse.dump(None)
    storage, checksum = pair.connection.source.storage, pair.connection.source.storage.checksum(file)
    assert checksum is not None
    storage.rename(file, FileRef(file, checksum.value, pair.connection.source.cm_root() or "").cm_uri)
    storage.delete(pair.origin.location("t"), recursive=True)
    report = pair.warehouse.load(dump.directory)
    assert not report.held
    assert pair.shown(pair.replica("t"))[2] == "700"
    assert ["is gone" in one for one in told(report)] == [True]


def test_a_file_that_the_metastore_keeps_in_cmroot_has_the_group_that_it_had(pair: Pair) -> None:
    """It was hive:hadoop 640, as ReplChangeManager leaves it there: finance could not read it, and hadoop could."""
    pair.origin.create("t")
    file = pair.origin.insert("t", f"{pair.database}\n")
    pair.own(file, "etl", "finance", 0o640)
    pair.own(pair.origin.location("t"), "etl", "finance", 0o750)
    dump = pair.warehouse.dump(None)
    storage, checksum = pair.connection.source.storage, pair.connection.source.storage.checksum(file)
    assert checksum is not None
    kept = FileRef(file, checksum.value, pair.connection.source.cm_root() or "").cm_uri
    storage.rename(file, kept)
    pair.own(kept, "hive", "hadoop", 0o640)
    report = pair.warehouse.load(dump.directory)
    assert (report.held, report.files_by_origin) == ((), {"cmroot": 1})
    assert list(pair.files(pair.replica("t")).values()) == [("etl", "finance", "640")]
