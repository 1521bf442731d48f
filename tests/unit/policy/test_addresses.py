"""Addresses of servers: what no server can have is found where the policy is read, with line and column."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hive_replication.errors import BadRequest
from hive_replication.policy import Policy, Root, load_policy
from hive_replication.policy.addresses import metastore_addresses, require_host
from hive_replication.storage.webhdfs_pool import addresses_of

TEXT = """source:
  metastore: thrift://source:9083
  roots: [{uri: "hdfs://source:8020", webhdfs: "http://source:9870"}]
target:
  metastore: thrift://target:9083
  roots: [{uri: "hdfs://target:8020/warehouse"}]
dump_root: hdfs://target:8020/warehouse/dumps
databases: {sales: sales}
"""
WRONG_HOSTS = ["a..b", ".a", "ü..x", "a" * 64, "a b", "a\0b", "a\tb", "", "h:abc", "h:65536", "h:0", "[::1", "[::1:9870", "h?x"]


def read(tmp_path: Path, text: str) -> Policy:
    (tmp_path / "policy.yaml").write_text(text, encoding="utf-8")
    return load_policy(tmp_path / "policy.yaml")


def quoted(text: str) -> str:
    return '"' + text.replace("\0", "\\0").replace("\t", "\\t").replace("\n", "\\n") + '"'


@pytest.mark.parametrize("host", WRONG_HOSTS)
def test_what_is_no_host(host: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        require_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "a",
        "a.b.",
        "a_b",
        "m-1.example.com:1",
        "127.0.0.1:65535",
        "[::1]",
        "[fe80::1%eth0]:9083",
        "bücher.example",
        "u@h",
        "u:a b@h",
    ],
)
def test_hosts(host: str) -> None:
    require_host(host)


@pytest.mark.parametrize("host", [*WRONG_HOSTS[:-1], "h:1?x", "h:1#x", "h:1#", "h:1?"])
def test_a_wrong_host_of_a_metastore_is_found_with_its_place(host: str, tmp_path: Path) -> None:
    """``policy check`` took it, and each command that asked the metastore ended with a traceback."""
    message = r"line 2, column 14, source\.metastore: Value error, .* is not a metastore"
    for uri in (f"thrift://{host}", f"thrift://ok:9083,thrift://{host}", f"https://{host}/metastore"):
        with pytest.raises(BadRequest, match=message) as raised:
            read(tmp_path, TEXT.replace("thrift://source:9083", quoted(uri)))
        assert "\0" not in str(raised.value)


def test_a_password_in_an_address_that_cannot_be_parsed_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="the address holds a password") as raised:
        read(tmp_path, TEXT.replace("thrift://source:9083", '"thrift://me:hunter2@[::1:9083"'))
    assert "hunter2" not in str(raised.value)


def test_the_port_of_a_metastore_is_the_one_written() -> None:
    """Port 0 was asked as 9083."""
    with pytest.raises(ValueError, match="no server listens at port 0"):
        metastore_addresses("thrift://h:0")


@pytest.mark.parametrize(
    "webhdfs",
    [
        "http://[::1:9870",
        "nn",
        "nn:9870",
        "",
        "ftp://nn",
        "http://nn:xx",
        "http://a:1,",
        "http://n?x",
        "http://n:1?",
        "http://n:1/#",
        "http://ok,http://a..b",
    ],
)
def test_a_wrong_webhdfs_is_found_with_its_place(webhdfs: str, tmp_path: Path) -> None:
    """``policy check`` took it, and of ``doctor`` one with half a bracket made a traceback."""
    message = r"line 3, column 48, source\.roots\.0\.webhdfs: Value error, .* is not a WebHDFS address such as"
    with pytest.raises(BadRequest, match=message):
        read(tmp_path, TEXT.replace("http://source:9870", webhdfs))


def test_addresses_may_stand_on_lines_of_their_own(tmp_path: Path) -> None:
    """Their line breaks were refused as control characters."""
    text = TEXT.replace("thrift://source:9083", "|\n    thrift://a:1,\n    thrift://b:2,\tthrift://c:3")
    read_metastore = read(tmp_path, text).source.metastore
    assert [(one.host, one.port) for one in metastore_addresses(read_metastore)] == [("a", 1), ("b", 2), ("c", 3)]
    webhdfs = "http://a:1,\n\thttp://b:2\n"
    root = read(tmp_path, TEXT.replace('"http://source:9870"', json.dumps(webhdfs))).source.roots[0]
    assert addresses_of(root.webhdfs or "") == ["http://a:1", "http://b:2"]
    with pytest.raises(BadRequest, match="it holds control characters"):
        read(tmp_path, TEXT.replace("thrift://source:9083", quoted("thrift://a\t:9083")))


@pytest.mark.parametrize(
    "webhdfs", ["http://nn", "https://[::1]:9871/", "http://a:1, http://b_1:2", "https://knox:8443/gateway/x"]
)
def test_addresses_of_webhdfs(webhdfs: str, tmp_path: Path) -> None:
    assert read(tmp_path, TEXT.replace("http://source:9870", webhdfs)).source.roots[0].webhdfs == webhdfs


@pytest.mark.parametrize(
    "wrong",
    [
        "hdfs://h:999999/",
        "hdfs://h:abc/",
        "hdfs://h:0/",
        "hdfs://a..b/",
        "hdfs://a b/",
        "s3://a\0b/",
        "hdfs://h/a/../b",
        "hdfs://h//b",
    ],
)
def test_a_wrong_root_is_found_with_its_place(wrong: str, tmp_path: Path) -> None:
    """``policy check`` took it, and the next command refused it."""
    with pytest.raises(BadRequest, match=r"line 3, column 17, source\.roots\.0\.uri: Value error, .*'(hdfs|s3)://"):
        read(tmp_path, TEXT.replace('"hdfs://source:8020"', quoted(wrong)))


@pytest.mark.parametrize(
    ("root", "told"),
    [
        ("hdfs:///", "its store, as in hdfs://name/: else any would do"),
        ("hdfs:///lake", "its store, as in hdfs://name/: else any would do"),
        ("s3a:///lake", "its store, as in s3a://name/: else any would do"),
        ("file://host/lake", "no host, as in file:///path"),
    ],
)
def test_a_root_names_one_store(root: str, told: str, tmp_path: Path) -> None:
    """Every NameNode lay under ``hdfs:///``: a dump made the load connect to a foreign one."""
    with pytest.raises(BadRequest, match=rf"source\.roots\.0\.uri: Value error, the storage root '{root}' has to name {told}"):
        read(tmp_path, TEXT.replace("hdfs://source:8020", root))


@pytest.mark.parametrize("part", ["/../x", "/./x", "//x", "/a\0", "/..", "/a\n", "/a\tb"])
def test_a_dump_root_that_could_mean_another_place_is_found_with_its_place(part: str, tmp_path: Path) -> None:
    """One with a line break, of a block scalar, was a traceback, or a directory that nobody found again."""
    for root in ("hdfs://target:8020/warehouse", "file:///tmp"):
        with pytest.raises(BadRequest, match=r"line 7, column 12, dump_root: Value error, .* has an empty segment"):
            read(tmp_path, TEXT.replace("hdfs://target:8020/warehouse/dumps", quoted(f"{root}{part}")))


@pytest.mark.parametrize("setting", ["external_root: X", "functions_root: X", "locations: {sales: X}"])
def test_hosts_of_directories_are_checked_where_those_of_roots_are(setting: str, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"line 9, .* is not a directory such as .*no host: a name has 1 to 63 characters"):
        read(tmp_path, TEXT + setting.replace("X", "'hdfs://a..b/x'") + "\n")


@pytest.mark.parametrize(
    ("setting", "part"),
    [
        *((setting, part) for setting in ("external_root: X", "functions_root: X") for part in ("//y", "/a\0", "/a\tb")),
        ("locations: {sales: X}", "/a\0"),
        ("locations: {sales: X}", "//a\tb"),
    ],
)
def test_directories_of_the_target_that_its_storage_refuses_are_found_with_their_place(
    setting: str, part: str, tmp_path: Path
) -> None:
    """They were found by the first table that needed them."""
    with pytest.raises(BadRequest, match=r"line 9, .* has an empty segment"):
        read(tmp_path, TEXT + setting.replace("X", quoted(f"hdfs://target:8020/warehouse/x{part}")) + "\n")
    paths = TEXT.replace("target:\n", '  paths: ["hdfs://source:8020/x//y"]\ntarget:\n')
    assert read(tmp_path, paths).source.paths == ("hdfs://source:8020/x//y",)


@pytest.mark.parametrize("written", ["hdfs://target:8020/warehouse//x///y.db//", "hdfs://target:8020//warehouse/x/y.db"])
def test_locations_of_databases_are_as_the_metastore_keeps_them(written: str, tmp_path: Path) -> None:
    """A policy was refused by which a database had been created long ago."""
    made = read(tmp_path, TEXT + f"locations: {{sales: {quoted(written)}}}\n")
    assert made.locations == {"sales": "hdfs://target:8020/warehouse/x/y.db"}
    assert type(made).model_validate(made.model_dump(mode="json")) == made
    with pytest.raises(BadRequest, match="lie in one another"):
        read(tmp_path, TEXT + f"locations: {{sales: {quoted(written)}, b: 'hdfs://target:8020/warehouse/x'}}\n")


@pytest.mark.parametrize(
    "root",
    [
        "hdfs://nameservice_1/",
        "s3a://my_bucket-1/a b/ü",
        "abfss://box@account.dfs.core.windows.net/",
        "file:///a?b#c",
        "hdfs://h:1",
    ],
)
def test_roots(root: str) -> None:
    assert Root(uri=root).uri == root.rstrip("/") + "/"
