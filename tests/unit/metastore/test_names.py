from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hive_replication.metastore.names import DEFAULT_PARTITION, escape, partition_name, partition_values, unescape

# What FileUtils.makePartName of Hive 3.1.3 and 4.2.0 gave for these.
HIVE_NAMES = [
    (["Ds", "B=x"], ["", "é %/~ ."], "ds=__HIVE_DEFAULT_PARTITION__/b%3Dx=é %25%2F~ ."),
    (["ds"], ["q'\"#:=?*[]{}^\\ "], "ds=q%27%22%23%3A%3D%3F%2A%5B%5D%7B}%5E%5C "),
    (["ds", "country"], ["\x01\x1f\x7f", "ü☃😀"], "ds=%01%1F%7F/country=ü☃😀"),
]


@pytest.mark.parametrize(("keys", "values", "name"), HIVE_NAMES)
def test_names_are_hives(keys: list[str], values: list[str], name: str) -> None:
    assert partition_name(keys, values) == name


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_values_come_back_from_a_name(values: list[str]) -> None:
    name = partition_name([f"k{n}" for n in range(len(values))], values)
    assert partition_values(name) == tuple(values)
    assert name.count("/") == len(values) - 1


@given(st.text())
def test_an_escaped_text_holds_nothing_that_a_path_or_a_uri_would_split_at(text: str) -> None:
    assert not set(escape(text)) & set('/:=?#"*\\\0\n')
    assert unescape(escape(text)) == (text or DEFAULT_PARTITION)


@pytest.mark.parametrize(("text", "plain"), [("a%2fb%2Fc", "a/b/c"), ("%zz%4", "%zz%4"), ("100%", "100%"), ("%C3%A9", "Ã©")])
def test_unescape_leaves_what_is_no_escape(text: str, plain: str) -> None:
    assert unescape(text) == plain


def test_the_default_partition_keeps_its_name() -> None:
    assert partition_values("ds=__HIVE_DEFAULT_PARTITION__") == (DEFAULT_PARTITION,)


@pytest.mark.parametrize("name", ["", "ds", "ds=1/", "=1", "ds=1/country"])
def test_a_broken_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="partition name"):
        partition_values(name)


def test_keys_and_values_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="zip"):
        partition_name(["a"], ["1", "2"])
