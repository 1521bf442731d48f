"""Owner, group, mode and ACL: what is left of them never allows anybody more."""

from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hive_replication.copy.preserve import Preserve
from hive_replication.storage.access import Access, AclEntry, effective

_BITS = st.integers(0, 7)
_GROUPS = ("finance", "hr", "ana")
_ENTRIES = st.dictionaries(
    st.sampled_from([("user", "bob"), ("user", "eve"), ("group", "ana"), ("group", "hr")]), _BITS, max_size=3
).map(lambda found: tuple(sorted(AclEntry(kind, name, bits) for (kind, name), bits in found.items())))  # type: ignore[arg-type]
_ACCESS = st.builds(
    Access,
    st.just("etl"),
    st.sampled_from(["finance", "hr"]),
    st.just(7),
    _BITS,
    _BITS,
    st.booleans(),
    named=st.one_of(st.just(()), _ENTRIES),
)
_PEOPLE = st.tuples(st.sampled_from(["bob", "eve", "joe"]), st.frozensets(st.sampled_from(_GROUPS)))


def allowed(access: Access, person: tuple[str, frozenset[str]]) -> int:
    """What HDFS allows somebody who is not the owner: his entry, else those of his groups together, else the others'."""
    name, groups = person
    for entry in access.named:
        if (entry.kind, entry.name) == ("user", name):
            return entry.bits
    found = [entry.bits for entry in access.named if entry.kind == "group" and entry.name in groups]
    found += [access.members] * (access.group in groups)
    return reduce(lambda one, two: one | two, found) if found else access.other


@given(_ACCESS, _PEOPLE)
def test_what_cannot_be_kept_allows_nobody_more(access: Access, person: tuple[str, frozenset[str]]) -> None:
    plain = access.without_acl()
    assert allowed(plain, person) & ~allowed(access, person) == 0
    for group in _GROUPS:
        other = Access(plain.owner, group, 7, plain.without_group().members, plain.without_group().other)
        assert allowed(other, person) & ~allowed(plain, person) == 0


@given(st.lists(_ACCESS, min_size=1, max_size=4), _PEOPLE)
def test_directories_together_allow_no_more_than_one_after_the_other(
    chain: list[Access], person: tuple[str, frozenset[str]]
) -> None:
    passes = all(allowed(directory, person) & 1 for directory in chain[:-1])
    expected = allowed(chain[-1], person) if passes else 0
    assert allowed(effective(chain), person) & ~expected == 0


@given(_ACCESS, _ACCESS, st.frozensets(st.sampled_from(["owner", "group", "acl"])), _PEOPLE)
def test_what_an_account_may_keep_allows_nobody_more(
    wanted: Access, present: Access, kept: frozenset[str], person: tuple[str, frozenset[str]]
) -> None:
    got = Preserve(frozenset({"mode", *kept})).attainable(wanted, present)  # type: ignore[arg-type]
    assert allowed(got, person) & ~allowed(wanted, person) == 0


@given(_ACCESS, _ACCESS, _PEOPLE)
def test_a_replica_that_allows_anybody_more_is_told(source: Access, replica: Access, person: tuple[str, frozenset[str]]) -> None:
    if allowed(replica, person) & ~allowed(source, person):
        assert replica.exceeds(source)


@pytest.mark.parametrize(("mode", "told"), [(0o777, True), (0o757, True), (0o775, True), (0o755, False), (0o1777, False)])
def test_a_replica_whose_sticky_bit_is_gone_is_told_where_others_may_write(mode: int, told: bool) -> None:
    source = Access.of_mode("etl", "finance", 0o1777)
    assert Access.of_mode("etl", "finance", mode).exceeds(source) is told
    assert not Access.of_mode("etl", "finance", mode).exceeds(Access.of_mode("etl", "finance", 0o777))


@given(_ACCESS, _ACCESS, st.frozensets(st.sampled_from(["owner", "group", "acl"])))
def test_what_a_load_gives_is_not_told(wanted: Access, present: Access, kept: frozenset[str]) -> None:
    assert not Preserve(frozenset({"mode", *kept})).attainable(wanted, present).exceeds(wanted)  # type: ignore[arg-type]


def test_usual_directories_keep_what_they_have() -> None:
    def access(mode: int, group: str = "hive") -> Access:
        return Access.of_mode("hive", group, mode)

    assert effective([access(0o755, "supergroup"), access(0o755), access(0o750, "finance")]) == access(0o750, "finance")
    assert effective([access(0o755), access(0o771), access(0o755)]).mode == 0o755
    assert effective([access(0o750, "finance"), access(0o755)]) == access(0o750, "finance")
    assert effective([access(0o750, "finance"), access(0o750, "hr")]).mode == 0o700
    assert effective([access(0o1777), access(0o775)]).mode == 0o775
    assert access(0o644).without_group().mode == 0o644
    assert access(0o640).without_group().mode == 0o600
