"""What is to be granted and revoked, without servers."""

from __future__ import annotations

import pytest

from hive_replication.load.privileges.compare import (
    Change,
    Changes,
    Names,
    compared,
    memberships,
    wanted_grants,
    wanted_members,
)
from hive_replication.metastore.privileges import Grant, Membership, Principal, Securable
from hive_replication.metastore.types import PrincipalType

ETL = Principal(PrincipalType.USER, "etl")


def user(name: str) -> Principal:
    return Principal(PrincipalType.USER, name)


def role(name: str) -> Principal:
    return Principal(PrincipalType.ROLE, name)


def grant(
    to: Principal, privilege: str = "SELECT", *, on: str = "t", column: str = "", option: bool = False, by: Principal = ETL
) -> Grant:
    return Grant(Securable(on, (), column), to, privilege, option, by)


def member(of: str, to: Principal, *, option: bool = False) -> Membership:
    return Membership(of, to, option, ETL)


@pytest.mark.parametrize("remove", [False, True])
def test_what_the_target_lacks_is_granted_and_what_it_has_besides_is_kept_or_revoked(remove: bool) -> None:
    same, more, other = grant(user("a")), grant(user("b"), column="c"), grant(user("local"))
    found = list(compared([same, more], [same, other], remove=remove))
    assert found == [Change("grant", more), *([Change("revoke", other)] if remove else [])]


def test_who_granted_it_is_no_difference() -> None:
    ours, theirs = grant(user("a")), grant(user("a"), by=user("hive"))
    assert list(compared([ours], [theirs], remove=True)) == []
    assert list(compared([ours, theirs], [], remove=True)) == [Change("grant", ours)]


def test_the_grant_option_is_a_difference() -> None:
    plain, option = grant(user("a")), grant(user("a"), option=True)
    assert list(compared([plain, option], [plain], remove=False)) == [Change("grant option", option)]
    assert list(compared([plain], [option], remove=False)) == []
    assert list(compared([plain], [option], remove=True)) == [Change("revoke option", option)]
    assert list(compared([option], [plain, option], remove=True)) == []


def test_principals_and_grantors_have_the_names_of_the_target() -> None:
    names = Names({"analysts": "analysts_dr", "bob": "robert"}, owners={"etl": "etl_dr", "bob": "b", "analysts": "x"})
    ours = [grant(role("analysts")), grant(user("bob")), grant(user("eve")), grant(Principal(PrincipalType.GROUP, "etl"))]
    found = list(wanted_grants(ours, lambda name: f"{name}_copy", names))
    assert [one.to.name for one in found] == ["analysts_dr", "robert", "eve", "etl"]
    assert {one.on.table for one in found} == {"t_copy"}
    assert {one.grantor.name for one in found} == {"etl_dr"}


def test_two_principals_of_one_name_have_what_one_of_them_has() -> None:
    names = Names({"alice": "ops", "bob": "ops"}, owners={})
    ours = wanted_grants([grant(user("alice")), grant(user("bob"), option=True), grant(user("bob"), "INSERT")], str, names)
    assert list(compared(ours, [], remove=True)) == [
        Change("grant", grant(user("ops"), option=True)),
        Change("grant", grant(user("ops"), "INSERT")),
    ]


def test_tables_that_are_left_alone_grant_nothing() -> None:
    assert list(wanted_grants([grant(ETL), grant(ETL, on="")], {"t": None, "": ""}.get, Names({}, {}))) == [grant(ETL, on="")]


def test_roles_of_roles_are_followed_once() -> None:
    kept = {
        "a": [member("a", role("b")), member("a", user("x"))],
        "b": [member("b", role("a")), member("b", user("y"), option=True)],
        "c": [member("c", user("z"))],
    }
    asked: list[str] = []
    found = list(memberships(["a"], lambda name: asked.append(name) or kept[name]))
    assert (asked, found) == (["a", "b"], kept["a"] + kept["b"])


def test_no_one_becomes_an_administrator_and_no_role_its_own_member() -> None:
    ours = [member("admin", ETL), member("super", ETL), member("public", ETL), member("a", role("b")), member("b", user("x"))]
    found = wanted_members(ours, Names({"super": "admin", "a": "one", "b": "one"}, owners={}))
    assert list(found) == [member("one", user("x"))]


def test_numbers_are_of_what_was_done() -> None:
    changes = Changes(
        ("a", "b"),
        (Change("grant", member("a", ETL)), Change("revoke", member("b", ETL))),
        (Change("grant", grant(ETL)), Change("grant option", grant(user("a"))), Change("revoke option", grant(user("b")))),
    )
    left = Changes(("b",), (), changes.grants[:1])
    assert changes.without(left).numbers() == {
        "roles created": 1,
        "roles granted": 1,
        "roles revoked": 1,
        "privileges granted": 1,
        "privileges revoked": 1,
    }
    assert not changes.without(changes)
