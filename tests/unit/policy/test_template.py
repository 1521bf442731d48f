"""Making and checking the policy's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from hive_replication.cli.main import run
from hive_replication.policy import Policy, load_policy
from hive_replication.policy.template import commented, schema

FLAGS = [
    "--source-metastore=thrift://s:9083",
    "--source-root=hdfs://s:8020/",
    "--source-webhdfs=http://s:9870",
    "--target-metastore=thrift://t:9083",
    "--target-root=hdfs://t:8020",
    "--database=sales",
    "--database=web=web_copy",
]


def test_init_writes_a_policy_that_reads_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "policy.yaml"
    assert run(["--config", str(path), "policy", "init", *FLAGS]) == 0
    policy = load_policy(path)
    assert policy.databases == {"sales": "sales", "web": "web_copy"}
    assert (policy.source.roots[0].webhdfs, policy.dump_root) == ("http://s:9870", "hdfs://t:8020/repl/dumps")
    assert run(["--config", str(path), "policy", "check"]) == 0
    assert capsys.readouterr().out == "sales\tsales\nweb\tweb_copy\n"
    text = path.read_text(encoding="utf-8")
    assert run(["--config", str(path), "policy", "init", *FLAGS]) == 2
    assert "exists already" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == text


def test_the_comments_are_valid_settings_with_their_defaults(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    run(["--config", str(path), "policy", "init", *FLAGS])
    text = path.read_text(encoding="utf-8")
    assert all(f"\n{name}:" in text or f"\n# {name}:" in text for name in Policy.model_fields)
    settings = [
        line.removeprefix("# ") for line in text.splitlines() if line.split(":")[0].removeprefix("# ") in Policy.model_fields
    ]
    assert len(settings) == len(Policy.model_fields)
    for line in settings:
        yaml.safe_load(line)
    assert all(text.count(f"\n  # {name}:") == 2 for name in ("metastore_ssl", "tls", "kerberos", "paths"))
    assert commented(load_policy(path)) == text


@pytest.mark.parametrize("left_out", ["--source-metastore", "--target-root", "--database"])
def test_init_without_a_terminal_says_which_option_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], left_out: str
) -> None:
    flags = [flag for flag in FLAGS if not flag.startswith(left_out)]
    assert run(["--config", str(tmp_path / "policy.yaml"), "policy", "init", *flags]) == 2
    assert left_out in capsys.readouterr().err
    assert not (tmp_path / "policy.yaml").exists()


def test_init_refuses_what_is_no_root(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = [flag if "target-root" not in flag else "--target-root=/warehouse" for flag in FLAGS]
    assert run(["--config", str(tmp_path / "policy.yaml"), "policy", "init", *flags]) == 2
    told = capsys.readouterr().err
    assert "no policy was written: target.roots.0.uri" in told
    assert "at least 1 item" not in told
    assert not (tmp_path / "policy.yaml").exists()


def test_errors_name_line_and_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "policy.yaml"
    run(["--config", str(path), "policy", "init", *FLAGS])
    lines = path.read_text(encoding="utf-8").splitlines()
    number = next(n for n, line in enumerate(lines) if "hdfs://s:8020/" in line)
    lines[number] = lines[number].replace("hdfs://s:8020/", "nowhere")
    path.write_text("\n".join([*lines, "max_events: 0", "unknown: 1", "schedule: 61 * * * *"]), encoding="utf-8")
    assert run(["--config", str(path), "policy", "check"]) == 2
    message = capsys.readouterr().err
    column = lines[number].index("nowhere") + 1
    assert f"line {number + 1}, column {column}, source.roots.0.uri: " in message
    assert f"line {len(lines) + 1}, column 13, max_events: " in message
    assert f"line {len(lines) + 2}, column 10, unknown: " in message
    assert f"line {len(lines) + 3}, column 11, schedule: Value error, '61 * * * *' is not a cron expression" in message


def test_the_published_schema_is_this_one(capsys: pytest.CaptureFixture[str]) -> None:
    published = (Path(__file__).parents[3] / "docs" / "policy.schema.json").read_text(encoding="utf-8")
    assert published == schema(), "write it anew: hive-repl policy schema > docs/policy.schema.json"
    assert json.loads(published)["properties"].keys() == Policy.model_fields.keys()
    assert run(["policy", "schema"]) == 0
    assert capsys.readouterr().out == published
