"""What is wrong in a command's words is said before the policy is read or a server is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from hive_replication.cli.main import run

DATABASES = "this command takes a database"
NAMES = "is not a name like db"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["retention", ""], NAMES),
        (["retention", "a.b"], DATABASES),
        (["status", ""], NAMES),
        (["report", "1-2", "--database", ""], NAMES),
        (["undo", "sales", "--to", "-5"], "greater than or equal to 0"),
        (["undo", "sales", "--to", "9" * 40], "less than or equal to"),
        (["pause", "sales.t"], DATABASES),
        (["recover", "a-b"], NAMES),
        (["repair", "sales.t", "--force", "--dry-run"], "leave one of them out"),
        (["privileges", "sales.t"], DATABASES),
        (["failover", "plan", "sales.t"], DATABASES),
        (["plan", "FROM", "file:///dump", "--output", "/no/such/plan.html"], "there is no folder"),
        (["policy"], "Missing command"),
        (["failover"], "Missing command"),
    ],
)
def test_bad_words_are_refused_at_once(words: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words, "--config", "/no/policy.yaml"][: None if len(words) > 1 else 1]) == 2
    output = capsys.readouterr()
    assert expected in output.err
    assert output.err.count("\n") == 1
    assert output.out == ""


OPTIONS = [
    f"--{side}-{what}={value}"
    for side in ("source", "target")
    for what, value in (("metastore", f"thrift://{side}:9083"), ("root", f"hdfs://{side}:8020/"))
]


def test_a_database_with_two_targets_is_no_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last one was taken."""
    path = tmp_path / "p.yaml"
    assert run(["policy", "init", "--config", str(path), "--database", "sales", "--database", "sales=copy", *OPTIONS]) == 2
    assert "sales is given twice" in capsys.readouterr().err
    assert not path.exists()


def test_a_policy_is_not_written_where_there_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["policy", "init", "--config", str(tmp_path / "absent" / "p.yaml"), "--database", "sales", *OPTIONS]) == 2
    assert "cannot write" in capsys.readouterr().err
