"""How messages of the engine are written, and that nothing is written unless asked."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tenacity import RetryError, Retrying, stop_after_attempt, wait_none

from hive_replication.cli.main import run
from hive_replication.logs import JsonFormatter, TextFormatter, about, reason, repeats

# Attempts are made again at once.
PROGRAM = [sys.executable, "-c", "import time; time.sleep = lambda _: None; from hive_replication.cli import main; main()"]
POLICY = """
source: {{metastore: "thrift://localhost:3", roots: [{{uri: "file://{0}/source/"}}]}}
target: {{metastore: "thrift://localhost:1,thrift://localhost:2", roots: [{{uri: "file://{0}/target/"}}]}}
databases: {{sales: sales}}
dump_root: "file://{0}/dumps"
"""


def record(
    message: str, *args: object, database: str | None = None, evid: int | None = None, **kind: object
) -> logging.LogRecord:
    made = logging.LogRecord("hive_replication.copy.copy_file", logging.WARNING, "one.py", 1, message, args, None)
    made.created = 1_700_000_000.25
    made.__dict__.update(about(database, evid=evid), **kind)
    return made


def failing() -> tuple[type[BaseException], BaseException, None]:
    error = ValueError("a\x1b[31m\nb")
    return type(error), error, None


def test_text_is_one_line_with_what_it_is_about() -> None:
    line = TextFormatter().format(record("%s is absent", "hdfs://nn/x", database="sales", evid=7))
    assert line == (
        "2023-11-14T22:13:20.250+00:00 WARNING hive_replication.copy.copy_file: hdfs://nn/x is absent [database=sales evid=7]"
    )


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2Jb", "a\x9b2Jb", "a\u202eb", "a\rb", "a\x00b"])
def test_control_characters_do_not_reach_a_terminal(name: str) -> None:
    for formatter in (TextFormatter(), JsonFormatter()):
        text = formatter.format(record("the table %s is held", name, database=name))
        assert text.isprintable()
        assert "a" in text
    assert json.loads(text)["database"] == name


def test_an_exception_is_shown_below_the_text_and_as_a_field_of_json() -> None:
    text = TextFormatter().format(record("failed", exc_info=failing()))
    assert text.splitlines()[1:] == ["ValueError: a\\x1b[31m", "b"]
    value = json.loads(JsonFormatter().format(record("failed", exc_info=failing())))
    assert value["exception"] == "ValueError: a\x1b[31m\nb"


def test_json_leaves_out_what_is_not_known() -> None:
    assert json.loads(JsonFormatter().format(record("%d files", 3, evid=5))) == {
        "time": "2023-11-14T22:13:20.250+00:00",
        "level": "WARNING",
        "logger": "hive_replication.copy.copy_file",
        "message": "3 files",
        "evid": 5,
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "http://dn:9864/webhdfs/v1/a?op=CREATE&delegation=SECRET&x=1",
            "http://dn:9864/webhdfs/v1/a?op=CREATE&delegation=***&x=1",
        ),
        ("/webhdfs/v1/?op=RENEWDELEGATIONTOKEN&token=SECRET", "/webhdfs/v1/?op=RENEWDELEGATIONTOKEN&token=***"),
        ("https://user:SECRET@store/bucket", "https://***@store/bucket"),
        ("https://store/a?X-Amz-Signature=SECRET", "https://store/a?X-Amz-Signature=***"),
        ("thrift://host:9083, user=a@b", "thrift://host:9083, user=a@b"),
    ],
)
def test_tokens_and_passwords_in_urls_are_not_written(text: str, shown: str) -> None:
    assert TextFormatter().format(record(text)).endswith(f": {shown}")
    assert json.loads(JsonFormatter().format(record("%s", text)))["message"] == shown


CALLED = "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
TRACEBACK = 'Traceback (most recent call last):\n  File "worker.py", line 1, in main\n    process()\n    ~~~~~~~^^\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Permission denied: user=x\n\tat org.apache.hadoop", "Permission denied: user=x"),
        (
            f"{CALLED}: org.apache.spark.SparkException: Job aborted\n\tat org.apache",
            "org.apache.spark.SparkException: Job aborted",
        ),
        (f"{CALLED.strip()} Trace:\npy4j.Py4JException: no such method\n\tat py4j", "py4j.Py4JException: no such method"),
        (
            f"{CALLED}: SparkException: lost: {TRACEBACK}ModuleNotFoundError: No module\n\n\tat org.apache",
            "ModuleNotFoundError: No module",
        ),
        (
            f"A worker raised:\n{TRACEBACK}OSError: a\n\nThe above was the cause:\n\n{TRACEBACK}ValueError: b\nand more",
            "ValueError: b",
        ),
        (CALLED, CALLED.strip()),
        (f"cut off: {TRACEBACK}", "cut off: Traceback (most recent call last):"),
    ],
)
def test_the_reason_of_an_error_of_spark_is_not_the_call_that_failed(text: str, told: str) -> None:
    assert reason(RuntimeError(text)) == told


def test_each_repeated_attempt_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise OSError("no answer\n\tat org.apache.hadoop")

    log = logging.getLogger("hive_replication.test")
    before_sleep = repeats(log, "a call of %s", "x", extra=about("sales", "orders", 4))
    with pytest.raises(RetryError):
        Retrying(stop=stop_after_attempt(3), wait=wait_none(), before_sleep=before_sleep)(fail)
    assert [one.getMessage() for one in caplog.records] == [
        f"a call of x failed in attempt {number} and is tried again in 0.0 s: no answer" for number in (1, 2)
    ]
    assert [(one.database, one.table, one.evid) for one in caplog.records] == [("sales", "orders", 4)] * 2  # type: ignore[attr-defined]


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY.format(tmp_path))
    return path


def test_the_command_line_is_quiet_by_default(policy: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, "--config", policy, "REPL", "STATUS", "sales", "--json"], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""


def test_verbose_shows_retries_and_ends_with_the_command(
    policy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    run(["-v", "--config", str(policy), "REPL", "STATUS", "sales", "--json"])
    shown = capsys.readouterr().err
    assert "WARNING hive_replication.metastore.connection: get_database sales at thrift://localhost:1," in shown
    assert "the metastore thrift://localhost:1 does not answer; the next address is tried" in shown
    assert "DEBUG" not in shown
    logger = logging.getLogger("hive_replication")
    assert logger.level == logging.NOTSET
    assert [type(one) for one in logger.handlers] == [logging.NullHandler]


def test_json_is_an_object_a_line_by_options_and_by_the_environment(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    argv = ["-vv", "--log-format", "json", "--config", str(policy)]
    for options in (argv, argv[3:]):
        done = subprocess.run(
            [*PROGRAM, *options, "REPL", "STATUS", "sales", "--json"], capture_output=True, text=True, check=False
        )
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        assert {"INFO", "WARNING"} == {line["level"] for line in lines}
        assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
        monkeypatch.setenv("HIVE_REPL_VERBOSE", "2")
        monkeypatch.setenv("HIVE_REPL_LOG_FORMAT", "json")
