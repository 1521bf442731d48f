"""What the shell completes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.unit.cli.test_output import PROGRAM

POLICY = """
source: {metastore: "thrift://127.0.0.1:1", roots: [{uri: "hdfs://s:8020/"}]}
target: {metastore: "thrift://127.0.0.1:1", roots: [{uri: "hdfs://t:8020/"}]}
dump_root: hdfs://t:8020/dumps
databases: {sales: sales_copy, salaries: salaries, web: web, "log_*": "*"}
"""


def completed(config: Path, *words: str) -> list[str]:
    """What bash would offer for the last word."""
    environment = {
        **os.environ,
        "HIVE_REPL_CONFIG": str(config),
        "_HIVE_REPL_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("hive-repl", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(PROGRAM, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("veri",), ["verify"]),
        (("verify", "sal"), ["salaries", "sales"]),
        (("undo", "sal"), ["salaries", "sales_copy"]),
        (("REPL", "D"), ["DUMP"]),
        (("REPL", "DUMP", "we"), ["web"]),
        (("REPL", "DUMP", "web", "F"), ["FROM"]),
        (("verify", "sales.o"), []),  # nobody answers: nothing is offered, and nothing is said
    ],
)
def test_names_come_from_the_policy(tmp_path: Path, words: tuple[str, ...], expected: list[str]) -> None:
    config = tmp_path / "policy.yaml"
    config.write_text(POLICY, encoding="utf-8")
    assert completed(config, *words) == expected


def test_without_a_policy_nothing_is_offered(tmp_path: Path) -> None:
    assert completed(tmp_path / "none.yaml", "verify", "s") == []
