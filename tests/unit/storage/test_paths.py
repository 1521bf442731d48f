"""URIs are taken literally, and no spelling leads out of a root."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hive_replication.errors import Refused
from hive_replication.policy import Root
from hive_replication.storage import Storage, paths

segments = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1).filter(
    lambda s: s not in (".", "..")
)


@given(st.lists(segments, min_size=1, max_size=5))
def test_any_name_survives_literally(names: list[str]) -> None:
    uri = "hdfs://nn:8020/" + "/".join(names)
    assert paths.normalise(uri) == uri
    assert paths.split(uri) == ("hdfs", "nn:8020", "/" + "/".join(names))
    assert paths.name(uri) == names[-1]
    assert f"{paths.parent(uri).rstrip('/')}/{names[-1]}" == uri


@pytest.mark.parametrize(
    ("uri", "normal"),
    [
        ("file:/tmp/x", "file:///tmp/x"),
        ("file:///tmp/x/", "file:///tmp/x"),
        ("HDFS://nn:8020/a", "hdfs://nn:8020/a"),
        ("hdfs://nn:8020", "hdfs://nn:8020/"),
        ("s3://bucket/k#1?2%20", "s3://bucket/k#1?2%20"),
    ],
)
def test_one_spelling(uri: str, normal: str) -> None:
    assert paths.normalise(uri) == normal


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("s3a://b//x", "s3a://b/x"),
        ("hdfs://nn///a/./b/../c//", "hdfs://nn/a/c"),
        ("hdfs://nn/../a", "hdfs://nn/a"),
        ("file:/tmp//x", "file:/tmp/x"),
        ("hdfs://nn", "hdfs://nn"),
        ("a//b", "a//b"),
        ("", ""),
    ],
)
def test_a_location_as_hadoop_takes_it(uri: str, place: str) -> None:
    assert paths.collapsed(uri) == place


@pytest.mark.parametrize(
    "uri",
    [
        "/warehouse/x",
        "x",
        "",
        "hdfs:",
        "hdfs://nn/a/../b",
        "hdfs://nn/a/./b",
        "hdfs://nn/..",
        "hdfs://nn/a//b",
        "hdfs://nn//a",
        "hdfs://nn/a\0b",
        "file://host/tmp/x",
        "file://host",
    ],
)
def test_tricks_are_refused(uri: str) -> None:
    with pytest.raises(Refused):
        paths.normalise(uri)


def test_the_root_is_its_own_parent() -> None:
    assert paths.parent("hdfs://nn:1/") == "hdfs://nn:1/" == paths.parent("hdfs://nn:1/a")


@pytest.mark.parametrize(
    ("uri", "root", "under"),
    [
        ("hdfs://nn:1/w", "hdfs://nn:1/", True),
        ("hdfs://nn:1/", "hdfs://nn:1/", True),
        ("hdfs://nn:1/w/x", "hdfs://nn:1/w", True),
        ("hdfs://nn:1/w", "hdfs://nn:1/w", True),
        ("hdfs://nn:1/wx", "hdfs://nn:1/w", False),
        ("hdfs://nn:10/w", "hdfs://nn:1/", False),
        ("hdfs://evil:1/w", "hdfs:///", False),
        ("file:///w", "file:///", True),
    ],
)
def test_what_lies_below_a_directory(uri: str, root: str, *, under: bool) -> None:
    """Every NameNode's files lay below ``hdfs:///``."""
    assert paths.is_under(uri, root) is under


STORAGE = Storage((Root(uri="hdfs://nn:8020/warehouse"), Root(uri="s3://bucket/data")))


@pytest.mark.parametrize("uri", ["hdfs://nn:8020/warehouse", "hdfs://nn:8020/warehouse/a b", "s3://bucket/data/x"])
def test_inside_a_root(uri: str) -> None:
    assert STORAGE.check(uri) == uri


@pytest.mark.parametrize(
    "uri",
    [
        "hdfs://nn:8020/warehouse2/x",
        "hdfs://nn:8020/",
        "hdfs://nn/warehouse/x",
        "hdfs://evil@nn:8020/warehouse/x",
        "hdfs://nn:8020/warehouse/../etc",
        "hdfs://nn:8020/warehouse/%2e%2e/../x",
        "s3://bucket2/data/x",
        "file:///etc/passwd",
    ],
)
def test_outside_all_roots(uri: str) -> None:
    with pytest.raises(Refused):
        STORAGE.check(uri)
    with pytest.raises(Refused):
        STORAGE.status(uri)
    with pytest.raises(Refused):
        list(STORAGE.stream(uri))
    with pytest.raises(Refused):
        STORAGE.create(uri, [b""])
    with pytest.raises(Refused):
        STORAGE.delete(uri)


def test_percent_signs_are_not_decoded() -> None:
    uri = "hdfs://nn:8020/warehouse/%2e%2e/x"
    assert STORAGE.check(uri) == uri


def test_roots_survive_pickling_and_connections_do_not(tmp_path: Path) -> None:
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    storage.write(f"{tmp_path.as_uri()}/x", b"1")
    copy = pickle.loads(pickle.dumps(storage))
    assert copy.roots == storage.roots
    assert copy.read(f"{tmp_path.as_uri()}/x") == b"1"


def test_different_stores_and_roots_are_never_renamed(tmp_path: Path) -> None:
    storage = Storage((Root(uri=tmp_path.as_uri()), Root(uri="hdfs://nn:8020/warehouse")))
    with pytest.raises(Refused, match="different stores"):
        storage.rename(f"{tmp_path.as_uri()}/x", "hdfs://nn:8020/warehouse/x")
    with pytest.raises(Refused, match="never moved or deleted"):
        storage.rename(tmp_path.as_uri(), f"{tmp_path.as_uri()}/x")
    with pytest.raises(Refused, match="never moved or deleted"):
        storage.delete(tmp_path.as_uri(), recursive=True)
    assert tmp_path.is_dir()


@pytest.mark.parametrize(("relative", "hidden"), [("a/b", False), ("a/_b", True), (".hive-staging/a", True), ("a_/b.x", False)])
def test_hidden_names(relative: str, hidden: bool) -> None:
    assert paths.is_hidden(relative) is hidden
