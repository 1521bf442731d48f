"""Rules for the shape of the code: sizes of modules and functions, no circular imports, docstrings of packages.

Which package may import which is in the contracts of import-linter (``pyproject.toml``), which ``make lint`` checks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in ("hive_replication", "repl_assets", "sensors", "resources", "demo")
    for path in sorted((ROOT / package).rglob("*.py"))
}
PACKAGES = {name: path for name, path in MODULES.items() if path.name == "__init__.py"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def test_modules_are_of_a_readable_size() -> None:
    sizes = {name: len(path.read_text().splitlines()) for name, path in MODULES.items() if name not in PACKAGES}
    assert {name: lines for name, lines in sizes.items() if lines > 320} == {}
    assert 60 <= median(sizes.values()) <= 200


def test_functions_fit_on_a_screen() -> None:
    sizes = {
        f"{module}.{node.name}": _lines_without_docstring(node)
        for module, path in MODULES.items()
        for node in ast.walk(_tree(path))
        if isinstance(node, Function)
    }
    assert {name: lines for name, lines in sizes.items() if lines > 60} == {}


def test_modules_do_not_import_each_other_in_circles() -> None:
    assert _circle(lambda module: module) is None


def test_packages_do_not_import_each_other_in_circles() -> None:
    assert _circle(_package) is None


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_says_what_belongs_there_and_what_does_not(package: str) -> None:
    docstring = ast.get_docstring(_tree(PACKAGES[package])) or ""
    assert "Keep out of here: " in docstring


def test_files_of_a_storage_are_read_up_to_a_bound() -> None:
    """Others may write there. Only the data files whose rows a comparison adds up are read whole (``verify.acid``)."""
    unbounded = [
        f"{module}:{call.lineno}"
        for module, call in _calls("read")
        if re.search("storage$|^(source|target|ours|theirs)$", _last_name(call.func))
        and not any(argument.arg == "most" for argument in call.keywords)
    ]
    assert unbounded == []


def test_json_from_outside_has_one_door() -> None:
    """Python's own reads any size, depth and number. Secrets of a policy, whose text is bounded, are looked for in it, too."""
    readers = {module for name in ("load", "loads") for module, call in _calls(name) if _last_name(call.func) == "json"}
    engine = {module for module in readers if module.startswith("hive_replication.")}
    assert engine == {"hive_replication.bounded_json", "hive_replication.policy.secrets"}


def _calls(name: str) -> Iterator[tuple[str, ast.Call]]:
    """All calls of methods, or functions of a module, of this name."""
    for module, path in MODULES.items():
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
                yield module, node


def _last_name(method: ast.expr) -> str:
    """What stands before the name of a method: ``_storage`` of ``self._storage.read``."""
    owner = method.value if isinstance(method, ast.Attribute) else None
    return owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _lines_without_docstring(function: Function) -> int:
    """Counts the lines of a function from ``def`` to its end, without its decorators and its docstring."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        docstring = function.body[0]
        lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return lines


def _imports(path: Path) -> Iterator[str]:
    """Yields the modules of this project that a module imports: at its top, in functions, and for type checking only."""
    for node in ast.walk(_tree(path)):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [full if (full := f"{node.module}.{alias.name}") in MODULES else node.module for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (name for name in names if name in MODULES)


def _package(module: str) -> str:
    """Returns the package of a module, or the module itself where subpackages lie beside it.

    ``load.window`` uses ``load.plan``, which uses ``load.report``: such modules stand on different sides of their neighbours.
    """
    package = module if module in PACKAGES else module.rpartition(".")[0]
    has_subpackages = any(name.rpartition(".")[0] == package for name in PACKAGES)
    return module if has_subpackages else package


def _circle(unit: Callable[[str], str]) -> list[str] | None:
    """Returns units that import each other in a circle, with the importing module of each step, or None."""
    importers: dict[str, dict[str, str]] = {}
    for module, path in MODULES.items():
        for imported in _imports(path):
            if unit(imported) != unit(module):
                importers.setdefault(unit(module), {})[unit(imported)] = f"{module} imports {imported}"
    try:
        TopologicalSorter(importers).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return [importers[importer][imported] for imported, importer in pairwise(circle)]
    return None
