"""Names below a target database's directory: what they are, and that nobody else writes them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hive_replication.load.layout import directories
from hive_replication.load.layout.directories import (
    Layout,
    is_staging,
    is_temporary,
    is_token,
    new_token,
    staging_name,
    token_time,
)

PROJECT = Path(__file__).parents[4]
LAYOUT = Layout("hdfs://dst:8020/w/sales.db/")
BASE = "hdfs://dst:8020/w/sales.db"
HIDDEN = re.compile(r"(?<![\w.])\.repl(?![\w.])|\brepl-$")


def test_paths_on_disk_are_those_of_all_versions() -> None:
    assert (LAYOUT.location, LAYOUT.journal, LAYOUT.listing) == (BASE, f"{BASE}/.repl/journal", f"{BASE}/.repl/listing")
    assert (LAYOUT.rates, LAYOUT.functions) == (f"{BASE}/.repl/rates.json", f"{BASE}/.repl/functions")
    assert (LAYOUT.external, LAYOUT.retired_root) == (f"{BASE}/.repl/external", f"{BASE}/.repl/retired")
    assert LAYOUT.dropped_databases == "hdfs://dst:8020/w/.repl/retired"
    assert LAYOUT.retired("7", f"{BASE}/orders/ds=1") == f"{BASE}/.repl/retired/7/orders/ds=1"
    assert LAYOUT.retired("7", f"{BASE}/.repl/5-0/ds=1") == f"{BASE}/.repl/retired/7/5-0/ds=1"


@pytest.mark.parametrize(
    "place", ["hdfs://dst:8020/e/x", "hdfs://dst:8020/ext/landing/clicks", "hdfs://dst:8020/w/sales.db2/orders", BASE]
)
def test_only_what_lies_below_has_a_name_made_of_its_place_below(place: str) -> None:
    """The rest of a shorter path, or of one that is no longer, is "" or begins with a slash: other tables' retired data."""
    assert not LAYOUT.holds(place)
    with pytest.raises(AssertionError, match="does not lie in"):
        LAYOUT.retired("7", place)


def test_files_from_outside_keep_their_paths() -> None:
    kept = LAYOUT.retired_from_outside("7", "hdfs://dst:8020/e/x/f")
    assert kept == f"{BASE}/.repl/retired/7/external/e/x/f"


@pytest.mark.parametrize(("transactional", "root"), [(False, f"{BASE}/.repl/170-3"), (True, f"{BASE}/repl-170-3")])
def test_staging(transactional: bool, root: str) -> None:
    name = staging_name(170, 3, transactional=transactional)
    assert (LAYOUT.staging(name), LAYOUT.staging(f"{name}-2", "ds=1")) == (root, f"{root}-2/ds=1")
    assert is_staging(root)
    assert is_staging(f"{root}-2")
    assert paths_of_staging() == {f"{BASE}/.repl", BASE}


def paths_of_staging() -> set[str]:
    return set(LAYOUT.staging_roots)


@pytest.mark.parametrize("name", ["2020-11", "orders", "repl-orders", ".repl/repl-5-0", ".repl/journal", ".repl/5", "170-3"])
def test_what_is_no_staging_directory(name: str) -> None:
    assert not is_staging(f"{BASE}/{name}")


@pytest.mark.parametrize(
    ("name", "temporary"),
    [
        (".part-0.0123456789abcdef.tmp", True),
        (".0.json.0123456789abcdef.new", True),
        ("part-0.0123456789abcdef.tmp", False),
        (".part-0.tmp", False),
    ],
)
def test_temporary_files(name: str, temporary: bool) -> None:
    assert is_temporary(f"{BASE}/orders/{name}") is temporary


def test_the_directory_of_a_dropped_database_says_since_when(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directories.time, "time_ns", lambda: 1_700_000_000_123 * 1_000_000)
    name = LAYOUT.dropped_database(170)
    assert re.fullmatch(r"hdfs://dst:8020/w/\.repl/retired/sales\.db-170-1700000000123[0-9a-f]{8}", name)
    assert LAYOUT.dropped(name) == directories.DroppedDatabase(170, 1_700_000_000.123)


def test_the_directory_of_a_dropped_database_as_earlier_versions_called_it() -> None:
    assert LAYOUT.dropped(f"{LAYOUT.dropped_databases}/sales.db-170-0a1b2c3d") == directories.DroppedDatabase(170, None)
    for other in ("sales.db", "sales.db-170", "sales2.db-170-0a1b2c3d", "sales.db-x-0a1b2c3d", "sales.db-1-0a1b2c3d4"):
        assert LAYOUT.dropped(f"{LAYOUT.dropped_databases}/{other}") is None


def test_tokens_sort_by_time() -> None:
    first = new_token()
    assert is_token(first)
    assert not is_token("170")
    assert abs(token_time(first) - token_time(new_token())) < 60


def strings(module: Path) -> Iterator[str]:
    """Strings of a module, docstrings left out."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements:
            yield node.value


def test_only_the_layout_writes_these_names() -> None:
    """``.repl`` as a name of a directory, or the beginning ``repl-``, stands in no other module."""
    found = {
        str(module.relative_to(PROJECT))
        for package in ("hive_replication", "repl_assets", "sensors", "resources")
        for module in (PROJECT / package).rglob("*.py")
        if any(HIDDEN.search(text) for text in strings(module))
    }
    # The source's side has to know which directory is not its own.
    assert found == {"hive_replication/load/layout/directories.py", "hive_replication/storage/boundary.py"}


def test_the_layout_imports_nothing_of_load() -> None:
    for module in (PROJECT / "hive_replication/load/layout").glob("*.py"):
        assert not re.search(r"^from hive_replication\.load(?!\.layout)", module.read_text(encoding="utf-8"), re.MULTILINE)
