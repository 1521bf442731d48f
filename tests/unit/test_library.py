"""The public surface: what ``hive_replication.__all__`` names, all of it documented, and nothing imported before it is used."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import hive_replication
from hive_replication import api, errors
from tests.lags import POLICY

PAGE = (Path(__file__).parents[2] / "docs/library.md").read_text()
FAILOVER = {f"failover_{step}" for step in ("finish", "open", "plan", "reverse", "rollback", "start", "status")}
OPERATING = {"approve", "pause", "privileges", "release", "repair", "resume", "undo"}
OBSERVING = {"alarms", "doctor", "history", "lags", "policy_status", "reports"}
FUNCTIONS = {"connect", "dump", "load", "load_policy", "plan", "status", "verify"} | OPERATING | OBSERVING | FAILOVER
ERRORS = {name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, Exception)}


def test_the_surface_is_what_all_names() -> None:
    assert sorted(hive_replication.__all__) == hive_replication.__all__ == dir(hive_replication)
    assert {*api.__all__, *ERRORS} == {*hive_replication.__all__}
    for name in hive_replication.__all__:
        assert getattr(hive_replication, name) is getattr(api if name in api.__all__ else errors, name)
    assert {name for name in hive_replication.__all__ if inspect.isfunction(getattr(hive_replication, name))} == FUNCTIONS


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'dumps'"):
        _ = hive_replication.dumps  # type: ignore[attr-defined]


def test_a_program_may_import_subpackages_first() -> None:
    """The import system sets each subpackage as an attribute of the package; four have the name of a function."""
    code = (
        "import hive_replication.dump.command, hive_replication.verify.database\n"
        "from hive_replication import connect, dump, load, plan, status, verify\n"
        "import hive_replication.load.undo.undo\n"
        "from hive_replication.load import command\n"
        "import hive_replication as package\n"
        "assert all(map(callable, (connect, dump, load, verify, package.connect, package.dump, package.load, package.verify)))\n"
        "assert command.repl_load"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_package_alone_imports_no_engine() -> None:
    code = "import sys, hive_replication; print(*(name for name in sys.modules if name.startswith('hive_replication.')))"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.split() == ["hive_replication.errors"]


def test_the_manual_has_each_function_with_its_arguments() -> None:
    documented = dict(re.findall(r"^### (\w+)\((.*)\)$", PAGE, re.MULTILINE))
    assert documented.keys() == FUNCTIONS
    for name, arguments in documented.items():
        parameters = inspect.signature(getattr(hive_replication, name)).parameters.values()
        bare = [one.replace(annotation=inspect.Parameter.empty) for one in parameters]
        assert f"({arguments})" == str(inspect.Signature(bare))


def test_the_manual_has_each_type_and_error() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE, re.MULTILINE))
    for name in set(hive_replication.__all__) - FUNCTIONS:
        assert name in rows
    for name in ERRORS:
        assert rows[name].startswith(str(getattr(errors, name).exit_code))


@pytest.mark.parametrize(
    "name",
    [
        "DumpResult",
        "LoadReport",
        "PlanReport",
        "Status",
        "HeldTable",
        "TableComparison",
        "RepairResult",
        "Undo",
        "FailoverStatus",
        "FailoverStart",
        "FailoverPlan",
        "FailoverReverse",
        "PolicyStatus",
        "DatabaseStatus",
        "Alarm",
        "Lag",
        "Finding",
        "HistoryEntry",
        "Record",
        "Report",
        "ReportRow",
    ],
)
def test_the_documented_fields_exist(name: str) -> None:
    row = re.search(rf"^\| `{name}` \| (.*) \|$", PAGE, re.MULTILINE)
    assert row is not None
    documented = re.findall(r"`(\w+)(?:\(\))?`", re.sub(r"\([^)]*[` ][^)]*\)", "", row[1]))
    kind = getattr(hive_replication, name)
    assert documented
    assert [field for field in documented if not (field in kind.__dataclass_fields__ or hasattr(kind, field))] == []


def test_bad_windows_are_refused_before_a_server_is_called() -> None:
    nothing: hive_replication.Connection = None  # type: ignore[assignment]
    for arguments in ({"to_evid": 3}, {"batch": 3}, {"from_evid": 5, "to_evid": 4}):
        with pytest.raises(hive_replication.BadRequest, match="from_evid"):
            hive_replication.dump(nothing, "sales", **arguments)
    with pytest.raises(hive_replication.BadRequest, match=r"the dump is of sales\.orders alone"):
        hive_replication.dump(nothing, "sales.orders", from_evid=5, replaces="sales.'a.*'")
    for name in ("", "a.b.c", "sa-les"):
        with pytest.raises(hive_replication.BadRequest, match="is not a name like db or"):
            hive_replication.status(nothing, name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hr", "the policy 'default' has no database 'hr'; it has: sales"),
        ("hr.'.*'", "the policy 'default' has no database 'hr'; it has: sales"),
        ("HR.salaries", "the policy 'default' has no database 'hr'; it has: sales"),
        ("sales.Secret", "leave out sales.secret: a replica of it would become stale"),
    ],
)
@pytest.mark.parametrize("more", [{}, {"from_evid": 5}])
def test_what_the_policy_does_not_replicate_is_not_dumped(name: str, said: str, more: dict[str, Any]) -> None:
    """No server is called: the database is not marked, nor its transactions ended."""
    source = SimpleNamespace(policy=POLICY.model_copy(update={"exclude": ("secret",)}))
    connection: Any = SimpleNamespace(source=source)
    with pytest.raises(hive_replication.BadRequest, match=re.escape(said)):
        hive_replication.dump(connection, name, **more)
