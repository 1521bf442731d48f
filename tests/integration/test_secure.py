"""As production clusters are: Kerberos (MIT) in two realms, TLS on all servers, permissions, an account without rights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hdfs_native
import pytest

from hive_replication.connect import Connection, connect
from hive_replication.doctor import examine
from hive_replication.policy import Policy
from hive_replication.storage import paths
from hive_replication.storage.hdfs_backend import HdfsBackend
from resources.embedded.cluster import Cluster
from resources.embedded.kerberos import ACCOUNT, ORDINARY
from resources.embedded.policy import policy, save_policy
from tests import kerberos
from tests.origin import Origin

kerberos.require_extra()
pytestmark = pytest.mark.servers

TABLES = int(os.environ.get("HIVE_REPL_SECURE_TABLES", "3"))  # three at least
DAYS = ("1", "2", "3")
AUTH = "metastore.event.db.notification.api.auth"
#: Their logs are read by proxy users only: by the ordinary account, which may act as nobody, and not by HDFS's superuser.
ASKING = {f"hive.{AUTH}": "true", f"metastore.{AUTH}": "true"}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder, sides = tmp_path_factory.mktemp("secure"), ("source", "target4")
    with kerberos.servers(folder, *sides, tls=True, mit=True, properties=dict.fromkeys(sides, ASKING)) as cluster:
        yield cluster


def client(connection: Connection, side: str) -> hdfs_native.Client:
    """HDFS as its superuser."""
    storage = getattr(connection, side).storage
    root = storage.roots[0]
    found = storage._backend(root.uri, root)
    assert isinstance(found, HdfsBackend)
    return found._client


@dataclass(frozen=True)
class Account:
    """The ordinary account, each step of which runs in a process of its own."""

    secured: Cluster
    policy: Policy
    file: Path

    def replicate(self, *options: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "tests.secure_replica", str(self.file), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def connection(secured: Cluster) -> Connection:
    """Both sides as their superuser, who changes the source and grants rights."""
    return connect(policy(secured, {"unused": "unused"}, "source", "target4"))


@pytest.fixture
def account(secured: Cluster, connection: Connection, unique: str, tmp_path: Path) -> Account:
    """With the rights of docs/real-cluster.md, and no others."""

    def allow(side: str, path: str, bits: str, *scopes: Any) -> None:
        entries = [hdfs_native.AclEntry("user", scope, bits, ORDINARY) for scope in scopes or ("access",)]
        client(connection, side).modify_acl_entries(path, entries)

    target = client(connection, "target")
    home = f"/accounts/{unique}"
    warehouse = paths.split(connection.target.metastore.config_value("hive.metastore.warehouse.dir", ""))[2]
    allow("source", paths.split(connection.source.cm_root())[2], "r-x", "access", "default")
    for directory in (home, warehouse):
        target.mkdirs(directory, create_parent=True)
        allow("target", directory, "rwx")
    below = f"{connection.target.policy.target.roots[0].uri.rstrip('/')}{home}"
    places = {"dump_root": f"{below}/dumps", "external_root": f"{below}/external", "functions_root": f"{below}/jars"}
    made = policy(secured, {unique: unique}, "source", "target4", account=ORDINARY).model_copy(update=places)
    save_policy(made, tmp_path / "policy.yaml")
    return Account(secured, made, tmp_path / "policy.yaml")


def test_an_ordinary_account_replicates_between_two_realms(connection: Connection, account: Account, unique: str) -> None:
    origin = Origin(connection, unique)
    origin.create_database()
    for number in range(TABLES):
        origin.create(f"plain{number}")
        origin.insert(f"plain{number}", "1\n")
        origin.create(f"parts{number}", *DAYS)
        for day in DAYS:
            origin.insert(f"parts{number}", f"{day}\n", day)
    files = TABLES * (1 + len(DAYS))
    equal = {"held": {}, "unrecorded": 0, "differences": {}}
    assert account.replicate("--spark") == {**equal, "executors": {"spark": files}}

    origin.insert("plain0", "2\n")
    origin.insert("parts0", "new\n", "1", overwrite=True)
    origin.create("new", "1")
    origin.insert("new", "1\n", "1")
    assert account.replicate() == {**equal, "executors": {"threads": 3}}
    made = connection.target.metastore.table(unique, "new")
    assert made
    assert client(connection, "target").get_file_info(paths.split(str(made.sd.location))[2]).owner == ORDINARY

    closed = paths.split(origin.location("plain1"))[2]
    origin.insert("plain1", "2\n")
    origin.insert("plain2", "2\n")
    client(connection, "source").set_permission(closed, 0o700)
    found = account.replicate()
    assert found["held"].keys() == {"plain1"}
    assert f"the account {ORDINARY} lacks " in found["held"]["plain1"]
    assert found["differences"].keys() == {"plain1"}
    assert found["executors"] == {"threads": 1}


def test_doctor_finds_nothing_to_change_but_times_and_who_may_read_the_log(connection: Connection) -> None:
    wrong = {one.check: one for one in examine(connection) if one.verdict != "ok"}
    times = {"cmroot retention", "event retention", "database unused", "transactional tables"}
    assert wrong.keys() - times == {"lag", "read the log"}
    told = wrong["read the log"].found
    assert f"the account {ACCOUNT} may not read the notification log, set hive.{AUTH}=false at the metastore, or " in told
    assert f"hadoop.proxyuser.{ACCOUNT}.hosts to this host" in told
