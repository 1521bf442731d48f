"""Grants and roles on real metastores of Hive 3.1.3 and 4.2.0; the target's are read by the calls of Hive's SHOW GRANT."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hive_metastore.ttypes import FieldSchema, HiveObjectRef, HiveObjectType, SQLForeignKey, SQLPrimaryKey

import hive_replication
from hive_replication.cli.main import run
from hive_replication.connect import Connection, connect
from hive_replication.errors import Refused
from hive_replication.load.layout.directories import Layout
from hive_replication.load.privileges import pace
from hive_replication.load.privileges.pace import Compared, note
from hive_replication.load.privileges.replicate import Replica, replicate_privileges
from hive_replication.load.replica.state import replica_state
from hive_replication.load.report import LoadReport
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.constraints import Constraint
from hive_replication.metastore.privileges import Grant, Membership, Principal, Securable
from hive_replication.metastore.types import PrincipalType, Table, copy_of
from hive_replication.policy.privileges import Privileges
from hive_replication.repair import repair
from resources.embedded.cluster import Cluster, Side
from resources.embedded.policy import policy, save_policy
from tests.origin import TEXT, Origin

pytestmark = pytest.mark.servers

DAYS = ("2026-01-01", "2026-01-02")


def user(name: str) -> Principal:
    return Principal(PrincipalType.USER, name)


def role(name: str) -> Principal:
    return Principal(PrincipalType.ROLE, name)


def granted(to: Principal, privilege: str = "SELECT", on: Securable = Securable("orders"), *, option: bool = False) -> Grant:
    return Grant(on, to, privilege, option, user("etl"))


@dataclass
class Pair:
    """A source database with tables ``orders`` (by day), ``plain``, and ``secret``, which the policy leaves out; its replica."""

    connection: Connection
    database: str

    @property
    def replica(self) -> str:
        return f"{self.database}_dr"

    @property
    def source(self) -> Metastore:
        return self.connection.source.metastore

    @property
    def target(self) -> Metastore:
        return self.connection.target.metastore

    @property
    def origin(self) -> Origin:
        return Origin(self.connection, self.database)

    def with_policy(self, **privileges: object) -> Pair:
        changed = {
            "databases": {self.database: self.replica},
            "exclude": ("secret",),
            "owners": {"etl": "etl_dr"},
            "privileges": Privileges.model_validate({"replicate": True, **privileges}),
        }
        made = self.connection.source.policy.model_copy(update=changed)
        sides = {side: replace(getattr(self.connection, side), policy=made) for side in ("source", "target")}
        return replace(self, connection=replace(self.connection, **sides))

    def named(self, name: str) -> str:
        """Roles belong to no database: one that no other test has."""
        return f"{name}_{self.database}"

    def step(self) -> LoadReport:
        stands = replica_state(self.target.database(self.replica)).last_id
        dump = hive_replication.dump(self.connection, self.database, from_evid=stands)
        return hive_replication.load(self.connection, dump.directory, self.replica)

    def shown(self, on: Securable = Securable("orders"), to: str | None = None) -> set[str]:
        """SHOW GRANT ON an object of the target: ``user alice SELECT etl``, with ``*`` behind where it may be granted to others.

        Those on a column of a partition a metastore tells of one principal, or with all others.
        """
        kind = HiveObjectType.DATABASE
        if on.table:
            kind = HiveObjectType.COLUMN if on.column else HiveObjectType.PARTITION if on.values else HiveObjectType.TABLE
        parts, column = list(on.values) or None, on.column or None
        asked = HiveObjectRef(kind, self.replica, on.table or None, parts, column, "hive")
        found: Any = self.target.call(
            "list_privileges", lambda client: client.list_privileges(to, PrincipalType.USER if to else None, asked)
        )
        return {
            f"{Principal(one.principalType, one.principalName)} {one.grantInfo.privilege} {one.grantInfo.grantor}"
            + "*" * bool(one.grantInfo.grantOption)
            for one in found
        }

    def members(self, name: str) -> set[str]:
        """SHOW PRINCIPALS of a role of the target."""
        return {f"{one.to}" + "*" * one.option for one in self.target.members(name)}


@pytest.fixture(autouse=True)
def compared_by_each_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine all loads would take long, and the next ones not compare everything again."""
    monkeypatch.setattr(pace, "_SECONDS", 500.0)


@pytest.fixture(params=["3 to 3", "4 to 4"])
def pair(request: pytest.FixtureRequest, cluster: Cluster, unique: str) -> Pair:
    source, target = {"3": ("source", "target"), "4": ("source4", "target4")}, request.param.split(" to ")
    names = source[target[0]][0], source[target[1]][1]
    cluster.up(list(names))
    made = Pair(connect(policy(cluster, {unique: f"{unique}_dr"}, *names)), unique).with_policy()
    made.origin.create_database()
    made.origin.create("orders", *DAYS)
    for name in ("plain", "secret"):
        made.origin.create(name)
    return made


@pytest.mark.parametrize("pair", ["3 to 3", "4 to 4", "3 to 4"], indirect=True)
def test_grants_follow_their_objects(pair: Pair) -> None:
    analysts, seniors, dr = pair.named("analysts"), pair.named("seniors"), pair.named("analysts_dr")
    pair = pair.with_policy(principals={analysts: dr, "alice": "alice_dr"})
    for name in (analysts, seniors, pair.named("others")):
        pair.source.create_role(name, "etl")
    for membership in (
        Membership(analysts, role(seniors), False, user("etl")),
        Membership(analysts, user("alice"), True, user("etl")),
        Membership(seniors, Principal(PrincipalType.GROUP, "staff"), False, user("etl")),
    ):
        pair.source.grant_role(membership)
    column, day, secret = Securable("orders", column="a"), Securable("orders", DAYS[:1]), Securable("secret")
    cell = Securable("orders", DAYS[1:], "a")
    ours = [
        granted(user("alice"), "CREATE", Securable()),
        granted(role(analysts), option=True),
        granted(user("alice"), "INSERT"),
        granted(user("bob"), on=column),
        granted(user("bob"), on=day),
        granted(user("bob"), on=cell),
        granted(user("bob"), on=secret),
        granted(role("public"), on=Securable("plain")),
        granted(role(pair.named("others")), on=secret),
    ]
    pair.source.grant(pair.database, ours)

    report = pair.step()
    assert report.privileges == {"roles created": 2, "roles granted": 3, "privileges granted": 7}
    assert not [one for one in report.skipped if one.what.startswith("privileges")]
    assert pair.shown(Securable()) >= {"user alice_dr CREATE etl_dr"}
    assert pair.shown() == {f"role {dr} SELECT etl_dr*", "user alice_dr INSERT etl_dr"}
    assert [pair.shown(on, "bob") for on in (column, day, cell)] == [{"user bob SELECT etl_dr"}] * 3
    assert pair.shown(Securable("plain")) == {"role public SELECT etl_dr"}
    assert pair.members(dr) == {f"role {seniors}", "user alice_dr*"}
    assert pair.members(seniors) == {"group staff"}
    assert not {pair.named("others"), analysts} & set(pair.target.role_names())

    assert pair.step().privileges == {}
    pair.source.revoke(pair.database, [granted(user("bob"), on=day), ours[1]])
    pair.source.grant(pair.database, [granted(role(analysts)), granted(user("bob"), "UPDATE", Securable("plain"), option=True)])
    assert pair.step().privileges == {"privileges granted": 1}, "what the source has no longer stays unless the policy says so"
    assert (pair.shown(day, "bob"), pair.shown()) == (
        {"user bob SELECT etl_dr"},
        {f"role {dr} SELECT etl_dr*", "user alice_dr INSERT etl_dr"},
    )
    assert pair.shown(Securable("plain")) == {"role public SELECT etl_dr", "user bob UPDATE etl_dr*"}


def test_a_table_that_is_made_anew_keeps_grants_of_the_target_and_foreign_keys_to_it(pair: Pair) -> None:
    """Both went with the table that was dropped, and nothing said so."""
    pair.step()
    primary = Constraint("pks", (SQLPrimaryKey("", "plain", "a", 1, "pk", False, False, True, "hive"),)).on(pair.replica, "plain")
    foreign = Constraint("fks", (SQLForeignKey("", "", "a", "", "", "a", 1, 0, 0, "fk", "pk", False, False, True, "hive"),))
    foreign = foreign.on(pair.replica, "orders", "plain")
    there = pair.target.table(pair.replica, "plain")
    assert there is not None
    there.partitionKeys = [FieldSchema("ds", "string", None)]  # it cannot be altered into the source's table
    pair.target.drop_table(pair.replica, "plain")
    pair.target.create_table(there)
    origin = pair.source
    origin.add_constraint(pair.database, primary.on(pair.database, "plain"))
    for one in (primary, foreign):
        pair.target.add_constraint(pair.replica, one)
    pair.target.grant(pair.replica, [granted(user("dr"), on=Securable("plain"), option=True), granted(user("dr"))])
    repaired = repair(pair.connection, pair.database, "plain")
    assert (repaired.load.held, repaired.load.skipped) == ((), ())
    found = pair.target.table(pair.replica, "plain")
    assert found is not None
    assert not found.partitionKeys
    assert [one.name for one in pair.target.foreign_keys_to(pair.replica, "plain")] == ["fk"]
    assert [one.name for one in pair.target.constraints(pair.replica, "orders")] == ["fk"]
    assert (pair.shown(Securable("plain")), pair.shown()) == ({"user dr SELECT etl*"}, {"user dr SELECT etl"})


def test_what_the_source_does_not_have_is_revoked_by_setting(pair: Pair) -> None:
    name = pair.named("team")
    pair.source.create_role(name, "etl")
    for one in ("alice", "bob"):
        pair.source.grant_role(Membership(name, user(one), False, user("etl")))
    pair.source.grant(pair.database, [granted(role(name)), granted(user("bob"), "INSERT")])
    assert pair.step().privileges == {"roles created": 1, "roles granted": 2, "privileges granted": 2}

    pair.target.create_table(local_table(pair, "local"))
    local, own = (
        Securable("local"),
        [granted(user("eve"), on=Securable("local")), granted(user("eve")), granted(user("eve"), "INSERT")],
    )
    pair.target.grant(pair.replica, own)
    pair.target.grant(pair.replica, [replace(own[1], grantor=user("hive"))])
    pair.target.grant(pair.replica, [replace(granted(role(name), "UPDATE"), option=True)])
    pair.target.grant_role(Membership(name, user("eve"), False, user("etl")))
    pair.source.grant(pair.database, [granted(role(name), "UPDATE")])
    pair.source.revoke_role(Membership(name, user("bob"), False, user("etl")))
    assert pair.step().privileges == {}

    pair = pair.with_policy(remove=True)
    found = hive_replication.privileges(pair.connection, pair.database)
    wanted = {"roles revoked": 2, "privileges revoked": 3}
    assert (found.found.numbers(), found.numbers, found.exit_code) == (wanted, {}, 1)
    assert len(pair.shown()) == 6, "a look changes nothing"
    done = hive_replication.privileges(pair.connection, pair.database, apply=True)
    assert (done.numbers, done.exit_code) == (wanted, 0)
    assert pair.shown() == {f"role {name} SELECT etl_dr", f"role {name} UPDATE etl", "user bob INSERT etl_dr"}
    assert pair.shown(local) == {"user eve SELECT etl"}
    assert pair.members(name) == {"user alice"}
    assert [one.record.text for one in hive_replication.history(pair.connection, pair.database)][:1] == [
        "roles revoked: 2, privileges revoked: 3"
    ]


def test_the_command_shows_and_does_what_differs(pair: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = pair.named("team")
    pair = pair.with_policy(replicate=False, remove=True, roles=False)
    assert pair.step().privileges == {}, "off by default"
    pair.source.create_role(name, "etl")
    ours = [granted(role(name)), granted(user("alice"), option=True), granted(user("bob"), on=Securable("plain"))]
    pair.source.grant(pair.database, ours)
    pair.target.grant(pair.replica, [granted(user("alice")), replace(granted(user("bob"), on=Securable("plain")), option=True)])
    save_policy(pair.connection.source.policy, config := tmp_path / "policy.yaml")

    def command(*words: str) -> tuple[int, Any]:
        code = run(["--config", str(config), "privileges", pair.database, *words, "--json"])
        return code, json.loads(capsys.readouterr().out)

    code, shown = command()
    assert (code, shown["done"]) == (1, {})
    assert {(one["change"], one["what"], one["on"], one["whom"]) for one in shown["changes"]} == {
        ("grant option", "SELECT", f"{pair.replica}.orders", "user alice with grant option"),
        ("revoke option", "SELECT", f"{pair.replica}.plain", "user bob with grant option"),
    }
    (problem,) = shown["problems"]
    assert problem.startswith(f"the target has no role {name}, which privileges are granted to: create it, or")
    assert command("--apply")[0] == 1
    assert (pair.shown(), pair.shown(Securable("plain"))) == ({"user alice SELECT etl_dr*"}, {"user bob SELECT etl"})
    pair.target.create_role(name, "dba")
    assert command("--apply")[1]["done"] == {"privileges granted": 1}
    assert command() == (0, {**shown, "changes": [], "problems": [], "exit_code": 0})
    assert pair.members(name) == set()


def test_tables_that_are_held_or_no_replicas_are_left_alone(pair: Pair) -> None:
    pair = pair.with_policy(remove=True)
    pair.step()
    pair.target.create_table(local_table(pair, "late"))
    pair.target.grant(pair.replica, [granted(user("eve"), on=Securable("late"))])
    pair.origin.create("late")
    pair.source.grant(pair.database, [granted(user("bob"), on=Securable("late")), granted(user("bob"))])
    report = pair.step()
    assert [one.tables for one in report.held] == [("late",)]
    assert report.privileges == {"privileges granted": 1}
    assert pair.shown(Securable("late")) == {"user eve SELECT etl"}

    pair.target.drop_table(pair.replica, "late")
    report = pair.step()
    assert (report.held, report.privileges) == ((), {"privileges granted": 1})
    assert pair.shown(Securable("late")) == {"user bob SELECT etl_dr"}
    described = pair.source.table(pair.database, "late")
    assert described is not None
    described.tableName = "early"
    pair.source.alter_table(pair.database, "late", described)
    done = hive_replication.privileges(pair.connection, pair.database, apply=True)
    assert not done.found, "the target's is not renamed yet: its readers keep their rights"
    assert pair.step().privileges == {}
    assert pair.shown(Securable("early")) == {"user bob SELECT etl_dr"}


def test_a_table_alone_under_another_name(pair: Pair) -> None:
    pair.source.grant(pair.database, [granted(user("bob")), granted(user("bob"), "CREATE", Securable())])
    dump = hive_replication.dump(pair.connection, f"{pair.database}.orders")
    report = hive_replication.load(pair.connection, dump.directory, f"{pair.replica}.copy")
    assert (report.held, report.privileges) == ((), {"privileges granted": 1})
    assert pair.shown(Securable("copy")) == {"user bob SELECT etl_dr"}


def test_one_that_is_killed_goes_on(pair: Pair) -> None:
    name = pair.named("team")
    pair.step()
    pair.source.create_role(name, "etl")
    pair.source.grant_role(Membership(name, user("alice"), False, user("etl")))
    pair.source.grant(pair.database, [granted(role(name)), granted(user("bob"), "UPDATE")])
    state = replica_state(pair.target.database(pair.replica))
    replica = Replica(pair.database, pair.replica, state.source, state, includes=str.islower)

    for passed in (0, 1, 1):
        left = itertools.count(-passed)

        def check(left: Iterator[int] = left) -> None:
            if next(left) == 0:
                raise Refused("killed")

        with pytest.raises(Refused, match="killed"):
            replicate_privileges(pair.source, pair.connection.target, replica, check)
    assert pair.shown() == set(), "killed before a role is created, before it is granted, and before privileges are"
    assert pair.members(name) == {"user alice"}
    done = replicate_privileges(pair.source, pair.connection.target, replica, lambda: None)
    assert (done.numbers, done.problems) == ({"privileges granted": 2}, ())


def test_loads_compare_what_they_changed_where_all_takes_long(pair: Pair) -> None:
    pair.step()
    sides, replica = pair.connection, pair.target.database(pair.replica)
    assert replica is not None
    storage, location = sides.target.storage, str(replica.locationUri)
    assert not storage.exists(Layout(location).privileges), "what takes less than a second is done each time"
    note(storage, location, Compared(time.time(), 1000.0), pair.replica)
    on = [Securable(), Securable("orders"), Securable("plain"), Securable("late")]
    pair.origin.create("late")
    pair.origin.insert("plain", "1\n")
    pair.source.grant(pair.database, [granted(user("bob"), on=one) for one in on])
    assert pair.step().privileges == {"privileges granted": 2}
    assert [bool(pair.shown(one, "bob")) for one in on] == [False, False, True, True]

    note(storage, location, Compared(time.time() - 10_001, 1000.0), pair.replica)
    assert pair.step().privileges == {"privileges granted": 2}


@pytest.mark.long
def test_a_metastore_that_refuses_holds_nothing_else_back(cluster: Cluster, target4: Side, source4: Side, unique: str) -> None:
    """As Hive's manual has remote metastores refuse them: HiveServer2 alone, with a metastore of its own, grants."""
    name, authorization = "target-second4", "org.apache.hadoop.hive.ql.security.authorization"
    settings = {
        "metastore.pre.event.listeners": f"{authorization}.AuthorizationPreEventListener",
        "hive.security.metastore.authorization.manager": f"{authorization}.MetaStoreAuthzAPIAuthorizerEmbedOnly",
        "hive.security.metastore.authenticator.manager": "org.apache.hadoop.hive.ql.security.HadoopDefaultMetastoreAuthenticator",
    }
    servers = Cluster(cluster.directory, {name: settings})
    servers.up([name])
    try:
        made = Pair(connect(policy(cluster, {unique: f"{unique}_dr"}, source4.name, name)), unique).with_policy()
        made.origin.create_database()
        made.origin.create("orders", *DAYS)
        made.source.grant(unique, [granted(user("bob"))])
        report = made.step()
    finally:
        servers.down([f"{name}.metastore"])
    assert (report.held, report.privileges, report.exit_code) == ((), {}, 0)
    (told,) = (one for one in report.skipped if one.what == f"privileges of {made.replica}")
    assert told.reason.startswith("grants and roles are not replicated: list_privileges at thrift://")
    assert "invocation for remote metastore is disabled" in told.reason

    other = Pair(connect(policy(cluster, {unique: f"{unique}_dr"}, source4.name, target4.name)), unique).with_policy()
    assert other.step().privileges == {"privileges granted": 1}


def local_table(pair: Pair, name: str) -> Table:
    """A table that is no replica."""
    return Table(
        tableName=name, dbName=pair.replica, sd=copy_of(TEXT), partitionKeys=[], parameters={}, tableType="MANAGED_TABLE"
    )
