from __future__ import annotations

import os
import re
import tracemalloc
from pathlib import Path

import pytest

from hive_replication.cli.main import run
from hive_replication.connect import connect
from hive_replication.connect.connection import require_usable
from hive_replication.connect.dump_root import dump_root
from hive_replication.errors import BadRequest, Refused, ReplicationError
from hive_replication.policy import Policy, Root, load_policy
from hive_replication.policy.warehouse import Warehouse
from hive_replication.policy.wrong_setting import KEPT
from hive_replication.policy.yaml_text import parse
from hive_replication.storage import Storage

TEXT = """
source:
  metastore: thrift://source:9083
  roots: [{uri: "hdfs://source:8020", webhdfs: "http://source:9870"}]
target:
  metastore: thrift://target:9083
  roots: [{uri: "hdfs://target:8020/warehouse", webhdfs: "http://target:9870", options: {a: b}}]
dump_root: DUMPS
databases: {sales: sales_copy}
tables: ["o*", "items"]
exclude: ["*_tmp"]
"""


def written(directory: Path, text: str = TEXT, dumps: str = "hdfs://target:8020/warehouse/dumps") -> Path:
    path = directory / "policy.yaml"
    path.write_text(text.replace("DUMPS", dumps), encoding="utf-8")
    return path


def policy(directory: Path, dumps: str) -> Policy:
    return load_policy(written(directory, dumps=dumps))


def test_names_and_patterns(tmp_path: Path) -> None:
    read = load_policy(written(tmp_path))
    assert read.target_of("sales") == "sales_copy"
    assert read.target_of("other") == "other"
    assert [name for name in ("orders", "items", "items2", "orders_tmp") if read.includes(name)] == ["orders", "items"]
    assert read.source.roots[0].uri == "hdfs://source:8020/"


def test_the_priority_of_a_name_wins_in_any_case(tmp_path: Path) -> None:
    read = load_policy(written(tmp_path, TEXT + "priorities: {'*': 1, Sales: 5}\n"))
    assert (read.priority("sales"), read.priority("other")) == (5, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("metastore: thrift://source:9083", "metastor: x"), "source.metastor: there is no such setting"),
        (("databases: {sales: sales_copy}", "databases: {}"), "databases: "),
        (('uri: "hdfs://source:8020"', 'uri: "/local"'), "is not a storage root such as hdfs://"),
        (("metastore: thrift://source:9083", "x: y"), "source.metastore: it has to be set"),
        (("source:\n", "source\n"), "is not YAML"),
        (("databases: {", "name: [{"), "is not YAML: while parsing a flow sequence, line "),
        (('["*_tmp"]', '"*"'), "exclude: a list is meant, such as [a, b]"),
        (("{sales: sales_copy}", "[sales]"), "databases: names and values are meant, such as {name: value}"),
        (('exclude: ["*_tmp"]', "spark: {spark.executor.cores: 2}"), "spark.spark.executor.cores: a text is meant: put a number"),
        ((TEXT, ""), "top level: names and values of settings are meant"),
        (('exclude: ["*_tmp"]', "max_events: 0"), "max_events: "),
        (('exclude: ["*_tmp"]', "partition_filters: {sales: {'*': dt IS NULL}}"), "'dt IS NULL' is no partition filter"),
        (('exclude: ["*_tmp"]', "partition_filters: {sales: {'*': dt >}}"), "(Required keyword: 'expression' missing): Hive's"),
        (('exclude: ["*_tmp"]', "partition_filters: {sale: {'*': dt = 1}}"), "partition_filters.sale: no database of the policy"),
        (
            ("hdfs://source:8020", "hdfs://${env:H}/"),
            "line 4, column 17, source.roots.0.uri: Value error, source.roots.0.uri is not read",
        ),
        (("thrift://source:9083", "thrift://${env:HMS}:9083"), "source.metastore is not read from an environment variable"),
        (("DUMPS", "hdfs://target:8020/warehouse/${env:D}"), "line 8, column 12, dump_root: Value error, dump_root is not read"),
        (
            ('"*_tmp"', '"${file:/tables}"'),
            "exclude.0 is not read from an environment variable or a file: write the value itself",
        ),
        (('"*_tmp"', '"/t[0-9]+"'), "exclude: Value error, '/t[0-9]+' has no slash at its end"),
        (('"items"', "/"), "tables: Value error, '/' has no slash at its end"),
        (('exclude: ["*_tmp"]', "partition_filters: {sales: {'/t[0-9]+': n = 1}}"), "'/t[0-9]+' has no slash at its end"),
        (('exclude: ["*_tmp"]', "external_root: external"), "'external' is not a directory such as"),
        (
            ('exclude: ["*_tmp"]', 'external_root: "file:///"'),
            "external_root file:/// lies under none of the target's storage roots",
        ),
        (('exclude: ["*_tmp"]', 'external_root: "hdfs://source:8020/x"'), "lies under none of the target's storage roots"),
    ],
)
def test_a_wrong_policy_names_the_place(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = written(tmp_path, TEXT.replace(*change))
    with pytest.raises(BadRequest) as raised:
        load_policy(path)
    assert message in str(raised.value)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_absent_policy_names_the_options(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="name one with --config or HIVE_REPL_CONFIG"):
        load_policy(tmp_path / "none.yaml")


def test_dumps_take_the_options_of_the_root_they_lie_under(tmp_path: Path) -> None:
    root = dump_root(policy(tmp_path, "hdfs://target:8020/warehouse/dumps/"))
    assert (root.uri, root.webhdfs, root.options) == ("hdfs://target:8020/warehouse/dumps/", "http://target:9870", {"a": "b"})
    assert dump_root(policy(tmp_path, "hdfs://source:8020/dumps")).webhdfs == "http://source:9870"
    assert dump_root(policy(tmp_path, "file:///dumps")).uri == "file:///dumps/"


@pytest.mark.parametrize("dumps", ["hdfs://target:8020/warehouse2/dumps", "s3://bucket/dumps", "/dumps"])
def test_dumps_outside_all_roots_are_a_bad_request(tmp_path: Path, dumps: str) -> None:
    with pytest.raises(BadRequest, match="lies under none of its storage roots"):
        dump_root(policy(tmp_path, dumps))


@pytest.mark.parametrize("dumps", ["file:///a//b", "file:///a\n"])
def test_a_dump_root_that_an_earlier_version_took_is_refused_by_a_sentence(tmp_path: Path, dumps: str) -> None:
    with pytest.raises(ReplicationError):
        Storage((dump_root(policy(tmp_path, "file:///a").model_copy(update={"dump_root": dumps})),)).ls("file:///a/x")


@pytest.mark.parametrize("suffix", ["/..", "/../dumps2", "2", "/./x", "//x"])
def test_no_dump_directory_outside_the_dump_root_is_opened(tmp_path: Path, suffix: str) -> None:
    dumps = f"file://{tmp_path}/dumps"
    with pytest.raises(Refused):
        connect(policy(tmp_path, dumps)).store.open(dumps + suffix)


def test_a_malformed_metastore_address_is_a_bad_request(tmp_path: Path) -> None:
    path = written(tmp_path, TEXT.replace("thrift://source:9083", "source:9083"))
    with pytest.raises(BadRequest, match="'source:9083' is not a metastore"):
        connect(load_policy(path))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("drift: {settle: .nan}", "drift.settle: Input should be "),
        ("drift: {budget: 40, settle: 15}", ""),
        (
            "locations: {sales: 'hdfs://target:8020/warehouse/x'}",
            "locations.sales: no database of the policy has this name on the",
        ),
        ("locations: {Sales_Copy: 'hdfs://target:8020/warehouse/x'}", ""),
        ("priorities: {sale: 3}", "priorities.sale: no database of the policy has this name; it has: sales"),
        ("priorities: {Sales: 3, 'x*': 1}", ""),
        ("checks: {run: [not_held], blocking: [nothing_held]}", "blocking names nothing_held, which run does not"),
        ("checks: {run: [nothing_held], blocking: [nothing_held]}", ""),
        ("retention_at: 13:00", 'YAML reads a time without quotes as the number 780: put it in quotes, "13:00"'),
        ("retention_at: 3:00", 'YAML reads a time without quotes as the number 180: put it in quotes, "03:00"'),
        ("retention_at: '13:00'", ""),
        ("retention_at: null", ""),
        ("retention_at: 'noon'", "retention_at: String should match pattern"),
        ("spark: {spark.kubernetes.container.image.pullSecrets: regcred}", ""),
        ("spark: {spark.kubernetes.executor.secrets.keytab: /mount}", ""),
        ("spark: {spark.kubernetes.driver.secretKeyRef.DB_PASSWORD: 'db-secret:password'}", ""),
        ("spark: {spark.kubernetes.driverEnv.DB_PASSWORD: hunter2}", "is a secret, and the policy is stored and shown"),
    ],
)
def test_settings_that_would_do_nothing_are_refused_and_usual_ones_are_not(tmp_path: Path, settings: str, message: str) -> None:
    path = written(tmp_path, f"{TEXT}{settings}\n")
    if not message:
        require_usable(load_policy(path))
        return
    with pytest.raises(BadRequest, match=re.escape(message)):
        require_usable(load_policy(path))


@pytest.mark.parametrize(
    "settings",
    [
        "priorities: {dropped: 3}",
        "locations: {dropped: 'hdfs://target:8020/warehouse/x'}",
        "checks: {run: [not_held], blocking: [nothing_held]}",
    ],
)
def test_settings_without_effect_end_no_replication(tmp_path: Path, settings: str) -> None:
    """Earlier versions took them, and a database that is dropped leaves some behind: only ``policy check`` refuses them."""
    assert len(load_policy(written(tmp_path, f"{TEXT}{settings}\n")).without_effect()) == 1


def test_longer_looks_for_drift_than_a_tick_has_time_for_are_shortened(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    drift = load_policy(written(tmp_path, f"{TEXT}drift: {{budget: 50, settle: .inf}}\n")).drift
    assert drift
    assert (drift.budget, drift.settle) == (40, 15)
    assert "drift.budget: 50.0 is taken as 40" in caplog.text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("thrift://source:9083", "http//x", "'http//x' is not a metastore"),
        ("hdfs://target:8020/warehouse/dumps", "hdfs://elsewhere/dumps", "lies under none of its storage roots"),
        ("", "", ""),
    ],
)
def test_a_policy_is_checked_as_it_is_used(
    tmp_path: Path, old: str, new: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    assert run(["--config", str(path), "policy", "check"]) == (2 if message else 0)
    assert message in capsys.readouterr().err


def test_a_policy_is_read_once(capsys: pytest.CaptureFixture[str]) -> None:
    """``policy check`` waited for ever for the text of a named pipe to come again."""
    reader, writer = os.pipe()
    os.write(writer, TEXT.replace("DUMPS", "s3://elsewhere/dumps").encode())
    os.close(writer)
    assert run(["--config", f"/dev/fd/{reader}", "policy", "check"]) == 2
    os.close(reader)
    assert "line 8, column 12, dump_root: dump_root s3://elsewhere/dumps of the policy lies" in capsys.readouterr().err


def test_patterns_have_locations_for_the_databases_that_they_may_take_in(tmp_path: Path) -> None:
    text = TEXT.replace("{sales: sales_copy}", "{'fin_*': 'dr_*'}") + "locations: {%s: 'hdfs://target:8020/warehouse/x'}\n"
    assert load_policy(written(tmp_path, text % "dr_fin_eu")).without_effect() == []
    (said,) = load_policy(written(tmp_path, text % "fin_eu")).without_effect()
    assert str(said).startswith("locations.fin_eu: no database")


def test_the_manual_has_every_setting() -> None:
    manual = (Path(__file__).parents[3] / "docs" / "policy.md").read_text(encoding="utf-8")
    settings = {*Policy.model_fields, *Root.model_fields, *(f"source.{name}" for name in Warehouse.model_fields)} - {
        "source",
        "target",
    }
    assert [name for name in settings if f"{name}`" not in manual] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"source: \xff\xfe", "not text in UTF-8: byte 8"),
        (b"hours: {2026-13-45: x}", "month must be in 1..12; put texts that look like dates or numbers in quotes"),
        (b"2026-01-02: x", "Keys should be strings"),
        (b"tables: [a]\ntables: [b]", "tables stands twice"),
        (b"source:\n  metastore: a\n  metastore: b", "metastore stands twice"),
        (b"a: &a [x]\nb: *a", "aliases are not allowed"),
        (b"[" * 5_000, "nested more than 20 deep"),
        (b"{a: " * 5_000, "nested more than 20 deep"),
        (b"? [a]\n: b", "a name of a setting is a text"),
        (b"a: " + b"x" * 2_000_000, "more than 1,048,576 characters"),
        (b"a: \x00", "not YAML"),
        (b"!!python/object/apply:os.system [id]", "not YAML"),
        (b"[1, 2]", "not a valid policy"),
        (b"", "not a valid policy"),
    ],
)
def test_what_is_no_policy_is_one_clear_error(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "policy.yaml"
    path.write_bytes(text)
    with pytest.raises(BadRequest, match=re.escape(message)):
        load_policy(path)


def test_of_a_file_that_is_no_policy_only_as_much_is_read_as_a_policy_has(tmp_path: Path) -> None:
    """It may be any file by mistake: ``/dev/zero``, or a dump of a disk."""
    path = tmp_path / "policy.yaml"
    path.touch()
    os.truncate(path, 100 << 20)
    tracemalloc.start()
    with pytest.raises(BadRequest, match=r"policy.yaml is not a policy: it has more than 1,048,576 characters"):
        load_policy(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 10 << 20


def test_directories_of_databases(tmp_path: Path) -> None:
    """By names without case; each its own, on a store of the target."""
    text = TEXT.replace("{sales: sales_copy}", "{sales: copy, hr: a, fin: b}") + "locations: {%s}\n"
    made = load_policy(written(tmp_path, text % "Copy: hdfs://target:8020/warehouse/lake/"))
    assert made.locations == {"copy": "hdfs://target:8020/warehouse/lake"}
    below = "a: hdfs://target:8020/warehouse/x, b: hdfs://target:8020/warehouse/x/y"
    twice = "A: hdfs://target:8020/x, a: hdfs://target:8020/y"
    for wrong, why in (
        (below, "lie in one another"),
        (twice, "'a' is named twice"),
        ("a: hdfs://other/x", "under none"),
        ("a: x", "is not a directory"),
    ):
        with pytest.raises(BadRequest, match=why):
            load_policy(written(tmp_path, text % wrong))


def test_a_database_has_its_partition_filters_once(tmp_path: Path) -> None:
    text = TEXT + "partition_filters: {Sales: {a: n = 1}, sales: {b: n = 2}}\n"
    with pytest.raises(BadRequest, match="'sales' is named twice"):
        load_policy(written(tmp_path, text))


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (("databases:", "external_root: s3://x/y\ndatabases:"), "line 9, column 16, external_root: "),
        (("exclude:", "partition_filters:\n  nosuch: {a: n = 1}\nexclude:"), "line 12, column 11, partition_filters.nosuch: "),
        (("exclude:", "priorities:\n  nosuch: 3\nexclude:"), "line 12, column 11, priorities.nosuch: "),
        (("hdfs://target:8020/warehouse/dumps", "hdfs://elsewhere/dumps"), "line 8, column 12, dump_root: "),
        (('"*_tmp"', '"*"'), "line 11, column 10, exclude: exclude has *, which leaves out all tables"),
        (('["o*", "items"]', "[]"), "line 10, column 9, tables: tables is empty, so that no table is replicated"),
    ],
)
def test_what_is_wrong_beside_other_settings_has_a_line_too(
    change: tuple[str, str], where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace(*change), encoding="utf-8")
    assert run(["--config", str(path), "policy", "check"]) == 2
    assert where in capsys.readouterr().err


_TOKENS = re.sub(r"roots: .*", "roots: [{uri: 'hdfs://ns/', kerberos: {principal: a@B}, options: {a: SIDE}}]", TEXT)
_TOKENS = _TOKENS.replace("SIDE", "source", 1)
_ACCOUNTS = TEXT.replace('source:8020"', 'source:8020/a", kerberos: {principal: a@B}').replace(
    "}]", '}, {uri: "hdfs://source:8020/b", kerberos: {principal: b@B}}]', 1
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT.replace("{sales:", '{"A-b": x, sales:'), "'a-b' is no name of a database"),
        (TEXT.replace("{a: b}", "{password: x}"), "password is a secret"),
        (TEXT + "spark: {spark.a: 'jdbc:p://u:p@h'}\n", "spark.a is a secret"),
        (TEXT + "functions_root: hdfs://target:8020/warehouse//x\n", "has an empty segment"),
        (_ACCOUNTS, "are on one HDFS"),
        (_TOKENS, "the nameservice ns is another one on either side"),
    ],
)
def test_a_policy_that_an_earlier_version_took_goes_on(text: str, message: str, tmp_path: Path) -> None:
    """Where its file had become invalid meanwhile, all policies of the code location ended with it."""
    path = written(tmp_path, text)
    with pytest.raises(BadRequest, match=message):
        load_policy(path)
    content = parse(path.read_text(encoding="utf-8"), "")
    kept = Policy.model_validate(content, context=KEPT)
    assert "sales" in kept.databases
    assert Policy.model_validate_json(kept.model_dump_json(), context=KEPT) == kept


def test_references_that_nobody_reads_are_told_with_all_else_that_is_wrong(tmp_path: Path) -> None:
    """The first one was told alone, and the next by the next check."""
    text = TEXT.replace("thrift://source", "thrift://${env:HMS}").replace("sales_copy", "'${env:NAME}'") + "max_events: 0\n"
    with pytest.raises(BadRequest) as raised:
        load_policy(written(tmp_path, text))
    places = re.findall(r"line \d+, column \d+, ([\w.]+): ", str(raised.value))
    assert places == ["source.metastore", "databases.sales", "databases", "max_events"]
    with pytest.raises(ValueError, match=r"source\.metastore is not read .*databases\.sales is not read"):
        Policy.model_validate(parse(text.replace("max_events: 0", ""), ""))


def test_a_wrong_root_is_one_error(tmp_path: Path) -> None:
    """It was told, too, that there has to be a root."""
    with pytest.raises(BadRequest) as raised:
        load_policy(written(tmp_path, TEXT.replace("webhdfs: ", "webhdf: ", 1)))
    assert "source.roots.0.webhdf: there is no such setting" in str(raised.value)
    assert "at least 1 item" not in str(raised.value)
    with pytest.raises(BadRequest, match=r"source\.roots: Tuple should have at least 1 item"):
        load_policy(written(tmp_path, re.sub(r"roots: .*source.*", "roots: []", TEXT)))
