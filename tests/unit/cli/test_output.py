from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from hive_replication.cli import result_fields, settings
from hive_replication.cli.commands import lag
from hive_replication.cli.main import run
from hive_replication.cli.output import Output, drawn
from hive_replication.cli.words import arrange, statement
from hive_replication.copy.tasks import CopyResult, CopyTask, Proof
from hive_replication.dump.format.record_types import DumpResult
from hive_replication.errors import MetastoreError, Unreachable
from hive_replication.events.files import FileRef
from hive_replication.lag import Lag, LagReader
from hive_replication.load.copied_files import Copies
from hive_replication.load.replica.held_retries import Quarantine
from hive_replication.load.replica.repl_status import HeldTable
from hive_replication.load.report import Collapsed, Held, LoadReport, Skipped
from hive_replication.statements import ReplLoad, parse
from hive_replication.units import count_figure, duration_figure, size, size_figure, time_figure
from tests.bootstraps import header
from tests.lags import NOWHERE, POLICY, WELL

PROGRAM = [sys.executable, "-c", "from hive_replication.cli import main; main()"]
# The same where interrupts are heeded, which a shell's background jobs do not.
HEEDING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
INTERRUPTIBLE = [sys.executable, "-c", f"{HEEDING}; from hive_replication.cli import main; main()"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("REPL DUMP sales", ["REPL", "DUMP", "sales"]),
        ("repl dump sales", ["REPL", "dump", "sales"]),
        ("'repl dump sales'", ["REPL", "dump sales"]),
        ("' REPL  DUMP sales' --json", ["REPL", "DUMP sales", "--json"]),
        ("--config p.yaml --json repl status sales", ["--config", "p.yaml", "--json", "REPL", "status", "sales"]),
        ("--config=p.yaml 'REPL STATUS sales'", ["--config=p.yaml", "REPL", "STATUS sales"]),
        ("--config repl verify sales", ["--config", "repl", "verify", "sales"]),
        ("repl", ["REPL"]),
        ("-vv --log-format json repl status sales", ["-vv", "--log-format", "json", "REPL", "status", "sales"]),
        ("'repl\n  dump sales'", ["REPL", "dump sales"]),
        ("''", [""]),
        ("verify repl", ["verify", "repl"]),
        ("--json", ["--json"]),
        ("", []),
    ],
)
def test_statements_are_found_in_any_case_and_in_quotes(line: str, expected: list[str]) -> None:
    assert arrange(shlex.split(line)) == expected


@given(st.text(st.characters(exclude_characters="`", exclude_categories=("Cs",))))
def test_a_path_that_the_shell_protected_reaches_the_parser_whole(name: str) -> None:
    directory = f"hdfs://nn:8020/{name}"
    assert parse("REPL " + statement(["LOAD", "FROM", directory])) == ReplLoad(directory)


@pytest.mark.parametrize("quoted", ["it's", 'say "x"', "a `b`", 'it\'s "x"'])
def test_quotes_in_paths_survive(quoted: str) -> None:
    directory = f"file:///{quoted}"
    assert parse("REPL " + statement(["LOAD", "FROM", directory])) == ReplLoad(directory)


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["REPL"], 2, "expected DUMP or LOAD or STATUS"),
        (["REPL DUMP a.b.c"], 2, "'a.b.c' is not a name"),
        (["plan", "REPL", "DUMP", "sales"], 2, "only a REPL LOAD has a plan"),
        (["plan", "FROM"], 2, "expected the dump directory"),
        (["verify", "a.b.c"], 2, "'a.b.c' is not a name"),
        (["verify"], 2, "Missing argument 'DB[.TABLE]'"),
        (["nothing"], 2, "No such command 'nothing'"),
        (["--wrong"], 2, "No such option: --wrong"),
        (["lag", "--config", "/absent.yaml"], 2, "cannot read the policy /absent.yaml"),
        (["--config", "/absent.yaml", "REPL", "STATUS", "sales"], 2, "cannot read the policy /absent.yaml"),
        (["REPL DUMP sales.orders REPLACE sales.'a.*' FROM 5"], 2, "the dump is of sales.orders alone"),
        (["REPL", "LOAD", "FROM", "hdfs://nn/dumps/sales/\udcff"], 2, "'hdfs://nn/dumps/sales/\\udcff' is not text in UTF-8"),
        (["drift", "sales", "--settle", "-1"], 2, "Invalid value for '--settle'"),
        (["drift", "sales", "--settle", "nan"], 2, "Invalid value for '--settle'"),
        (["drift", "sales", "--settle", "1e300"], 2, "Invalid value for '--settle'"),
        (["lag", "--watch", "inf"], 2, "Invalid value for '--watch'"),
        (["metrics", "--every", "inf"], 2, "Invalid value for '--every'"),
        (["failover", "start", "sales", "--wait", "inf"], 2, "Invalid value for '--wait'"),
    ],
)
def test_a_bad_request_is_one_line_and_exit_code_2(
    argv: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(argv) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("hive-repl: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err

    assert run([*argv, "--json"]) == code
    captured = capsys.readouterr()
    assert captured.err == ""
    answer = json.loads(captured.out)
    assert message in answer["error"]
    assert answer["exit_code"] == code


def test_a_config_after_the_command_wins_over_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HIVE_REPL_CONFIG", "/from-environment.yaml")
    assert run(["lag"]) == 2
    assert "/from-environment.yaml" in capsys.readouterr().err
    assert run(["--config", "/before.yaml", "lag"]) == 2
    assert "/before.yaml" in capsys.readouterr().err
    assert run(["--config", "/before.yaml", "lag", "--config", "/after.yaml"]) == 2
    assert "/after.yaml" in capsys.readouterr().err


def test_without_words_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    shown = capsys.readouterr().out
    for command in ("REPL", "plan", "verify", "lag", "--install-completion"):
        assert f"  {command} " in shown


def test_help_loads_nothing_heavy() -> None:
    heavy = ["pydantic", "yaml", "thrift", "pyarrow", "fsspec", "hdfs_native", "rich", "requests", "dagster", "pyspark"]
    code = (
        f"import sys; from hive_replication.cli.main import run; run(['--help']); print([m for m in {heavy} if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[-1] == "[]"


def test_an_interrupt_is_one_line_and_exit_code_130(tmp_path: Path) -> None:
    fifo = tmp_path / "policy.yaml"
    os.mkfifo(fifo)
    with (
        subprocess.Popen([*INTERRUPTIBLE, "--config", fifo, "lag"], stderr=subprocess.PIPE, text=True) as process,
        fifo.open("w"),  # opens once the program reads its policy, and keeps it waiting there
    ):
        reader = psutil.Process(process.pid)
        while reader.status() != psutil.STATUS_SLEEPING:  # an interrupt just before it reads would not end the read
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=30)
    assert (process.returncode, error) == (130, "hive-repl: interrupted\n")


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["Ctrl-C", "Ctrl-D"])
def test_a_prompt_that_is_left_is_one_line_and_exit_code_130(key: str, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = ["setsid", "--ctty", *INTERRUPTIBLE, "policy", "init", "--config", str(tmp_path / "policy.yaml")]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while process.stderr.read(1) != ":":
            pass
        os.write(ours, key.encode())
        _, error = process.communicate(timeout=30)
    os.close(ours)
    os.close(theirs)
    assert (process.returncode, error.splitlines()[-1]) == (130, "hive-repl: interrupted")
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("words", "unbuffered", "code"), [("--version", "", 0), ("--json nothing", "1", 1), ("--json nothing", "", 2)]
)
def test_a_reader_that_has_gone_is_no_error(words: str, unbuffered: str, code: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run([*PROGRAM, *words.split()], stdout=writing, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (code, b"")


@pytest.mark.parametrize("json_too", [True, False])
def test_a_watch_of_lags_outlives_an_outage(
    json_too: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.model_dump_json(exclude_defaults=True))
    answers: list[list[Lag] | Exception] = [Unreachable("nobody answers"), [WELL], MetastoreError("it starts"), [WELL]]

    def read(_: LagReader) -> list[Lag]:
        if isinstance(answer := answers.pop(0) if answers else KeyboardInterrupt(), BaseException):
            raise answer
        return answer

    monkeypatch.setattr(LagReader, "read", read)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    assert run(["--config", str(policy), "lag", "--watch", "1", *(["--json"] if json_too else [])]) == 130
    shown = capsys.readouterr()
    if json_too:
        *found, end = map(json.loads, shown.out.splitlines())
        said = [one["error"] if isinstance(one, dict) else one[0]["database"] for one in found]
        assert said == ["nobody answers", "sales", "it starts", "sales"]
        assert end == {"error": "interrupted", "exit_code": 130}
    else:
        assert [line.split("\t")[0] for line in shown.out.splitlines()] == ["sales"] * 2
        assert shown.err.splitlines() == ["nobody answers", "it starts", "hive-repl: interrupted"]


def test_a_watch_of_lags_tells_of_a_server_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The figures of before stood there for twenty minutes."""
    monkeypatch.setattr(settings, "BRIEF_TIMEOUT", 0.2)
    monkeypatch.setattr(lag, "time", SimpleNamespace(sleep=Mock(side_effect=KeyboardInterrupt)))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        policy, there = tmp_path / "policy.yaml", f"thrift://127.0.0.1:{silent.getsockname()[1]}"
        policy.write_text(POLICY.model_dump_json(exclude_defaults=True).replace(NOWHERE, there))
        assert run(["--config", str(policy), "lag", "--watch", "1", "--json"]) == 130
    assert "check that the metastore runs" in json.loads(capsys.readouterr().out.splitlines()[0])["error"]


def test_columns_of_figures_are_right_aligned() -> None:
    made = drawn(("table", "size", "files", "hash"), [("t", "1.5 MB", 12, "1a"), ("u", "", 3, "22")])
    assert [column.justify for column in made.columns] == ["left", "right", "right", "left"]


def test_words_stay_whole_and_empty_columns_away(monkeypatch: pytest.MonkeyPatch) -> None:
    columns, row = ("database", "events waiting", "remarks", "why"), ("ledger_2026", 12, None, "long " * 30)
    monkeypatch.setenv("COLUMNS", "60")
    made = drawn(columns, [row])
    assert [(column.header, column.no_wrap) for column in made.columns] == [
        ("database", True),
        ("events\nwaiting", True),
        ("why", False),
    ]
    monkeypatch.setenv("COLUMNS", "40")  # too narrow for sentences: they go below the table
    made = drawn(columns, [row])
    assert [column.header for column in made.columns] == ["database", "events\nwaiting"]
    assert str(made.caption) == "ledger_2026: " + "long " * 30
    monkeypatch.setenv("COLUMNS", "15")  # too narrow: cells are folded, never cut
    assert not any(column.no_wrap for column in drawn(columns, [row]).columns)


def test_a_pipe_gets_tabs_a_terminal_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json=False).table(("dir-name", "last-evid"), [("hdfs://d/1", 7), ("a\tb\nc", None)], {})
    assert capsys.readouterr().out == "hdfs://d/1\t7\na b c\t\n"
    Output(json=True).table(("dir-name",), [("x",)], {"dir-name": "naïve"})
    assert capsys.readouterr().out == '{"dir-name": "naïve"}\n'

    code = "from hive_replication.cli.output import Output; Output(json=False).table(('dir-name',), [('[red]x',)], {})"
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-c", code], stdout=theirs, check=True, env={**os.environ, "TERM": "xterm", "COLUMNS": "80"})
    os.close(theirs)
    shown = os.read(ours, 10_000).decode()
    assert "dir-name" in shown
    assert "[red]x" in shown


def test_data_without_a_table_is_for_programs_only(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json=False).data({"paused": True})
    assert capsys.readouterr().out == ""
    Output(json=True).data({"paused": True})
    assert capsys.readouterr().out == '{"paused": true}\n'


def test_figures_are_bare_in_a_pipe_and_have_units_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    row = (size_figure(2048), duration_figure(90.0), count_figure(1200), time_figure(0.0), time_figure(1e9), size_figure(None))
    Output(json=False).table(tuple("abcdef"), [row], None)
    assert capsys.readouterr().out == "2048\t90.0\t1200\t\t2001-09-09T01:46:40+00:00\t\n"
    assert list(map(str, row)) == ["2.0 KiB", "1 min 30 s", "1,200", "", "2001-09-09 01:46:40 UTC", "unknown"]


def test_a_dump_tells_what_the_metastore_did_not_show_beside_what_it_leaves_out() -> None:
    head = header(9, skipped={"i": "it is an Iceberg table"}, unshown={"v": "Permission denied"})
    dump = DumpResult("hdfs://d/1", 9, head, 1, 0, 0, 0)
    said = {"i": "it is an Iceberg table", "v": "the metastore did not show it: Permission denied"}
    assert result_fields.dump_data(dump)["left_out"] == said


def test_keys_are_of_one_kind_beside_those_of_earlier_versions() -> None:
    report = LoadReport("hdfs://d/1", "sales", 5, 9, window="5-9", kept="hdfs://d/r.parquet")
    old = {"from-evid", "to-evid", "bytes-copied", "changed-on-target", "broken-views"}
    data = result_fields.load_data(report)
    assert {key for key in data if "-" in key} == old
    assert all(data[key] == data[key.replace("-", "_")] for key in old)
    held = result_fields.held_data(HeldTable("t", 5, "no", Quarantine(7, 1_000_000_000, 2, 1_000_000_100), 1_000_000_220))
    assert (held["since"], held["next_attempt"]) == ("2001-09-09T01:46:40+00:00", "2001-09-09T01:50:20+00:00")
    assert held["next-attempt"] == held["next_attempt"]


def test_a_load_is_described_for_people_and_programs() -> None:
    task = CopyTask(FileRef("hdfs://s/f", "abc"), "hdfs://t/f", 7, "sales.orders")
    copies = Copies(
        CopyResult(task, origin, 2048, Proof("MD5", "abc", recorded=True), attempts)
        for origin, attempts in [("cmroot", 1), ("present", 0)]
    )
    report = LoadReport(
        "hdfs://d/1",
        "sales",
        5,
        9,
        {"AddPartitions": 2},
        copies,
        (Skipped(6, "sales.old", "dropped at 8"),),
        (Held(("items",), 5, 7, "both gone", refused=True),),
        collapsed=Collapsed(events=4, operations=1, files=3, bytes=2048),
    )
    assert list(result_fields.load_lines(report)) == [
        "sales loaded from event 5 to 9: 2 AddPartitions",
        "files: 2 (1 from cmroot, 1 present already), 2.0 KiB copied, all proven",
        "collapsed: 4 events applied by 1 operation; not copied: 3 files (2.0 KiB) that later events replace or drop",
        "skipped: event 6 on sales.old: dropped at 8",
        "held: items at event 5, event 7 failed: both gone",
    ]
    data = json.loads(json.dumps(result_fields.load_data(report)))
    assert data["files"] == {"cmroot": 1, "present": 1}
    assert data["copies"][0]["proof"] == {"algorithm": "MD5", "value": "abc", "recorded": True}
    assert data["exit_code"] == 3


@pytest.mark.parametrize(
    ("collapsed", "told"),
    [
        (Collapsed(2, 1, 0, 0), "2 events applied by 1 operation"),
        (Collapsed(1200, 2, 1, -1), "1,200 events applied by 2 operations; not copied: 1 file that later events replace or drop"),
    ],
)
def test_what_collapsing_spared_in_words(collapsed: Collapsed, told: str) -> None:
    assert str(collapsed) == told


@pytest.mark.parametrize(
    ("number", "shown"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 * 2**40, "3.0 TiB"), (2**52, "4096.0 TiB")]
)
def test_sizes(number: int, shown: str) -> None:
    assert size(number) == shown


ODD = "evil\x1b]0;owned\x07\x9b31m\u202e\rname"


def test_names_do_not_steer_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Escapes in names and reasons are spelled out, in tables, in remarks, in errors and in JSON."""
    Output(json=False).table(["name"], [[ODD]], None)
    Output(json=False).remark(f"held: {ODD}", "two\nlines")
    Output(json=True).table([], [], {"name": ODD})
    assert run([f"REPL {ODD}"]) == 2
    console = Console(width=200)
    console.print(drawn(["name"], [[ODD]]))
    shown = "".join(capsys.readouterr())
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown)
    assert shown.count("evil\\x1b]0;owned\\x07\\x9b31m\\u202e") >= 3
    assert '"evil\\u001b]0;owned\\u0007\\u009b31m\\u202e' in shown
    assert "two\nlines\n" in shown


def test_a_thread_that_waits_on_leaves_the_exit_code_as_it_is() -> None:
    """It may be in a library that is not Python: where it comes back while Python ends, the process aborts."""
    program = """
import threading
from hive_replication.cli import main

class Torn:
    def __del__(self):
        print("Python ended below the thread")

torn = Torn()
threading.Thread(target=threading.Event().wait, daemon=True).start()
main()
"""
    ended = subprocess.run([sys.executable, "-c", program, "nothing"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "nothing" in ended.stderr
