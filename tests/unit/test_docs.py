"""The manual: its links lead somewhere; the commands, files and messages in it exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from hive_replication.cli.command_table import COMMANDS, GROUPS
from resources.embedded.cli import app as embedded

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
_FENCES = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_COMMAND = re.compile(r"hive-repl ([A-Za-z]+)(?: ([a-z]+))?")
_PATH = re.compile(r"`((?:[\w<>]+/)*(?:[\w<>]+/|[\w<>]+\.(?:py|toml|json)))`")
#: Where the paths in pages for developers start.
_FOLDERS = ("", "hive_replication", "hive_replication/load", "hive_replication/load/plan", "hive_replication/dump", "repl_assets")
#: Messages of Hive's metastore that the manual quotes.
_OF_HIVE = {"types incompatible with the existing columns"}
#: What stands for anything in a quoted message; ``repl.source.for`` is a constant in the code.
_PLACEHOLDER = re.compile(r"<[^>]*>|\.\.\.|repl\.source\.for")


def _prose(page: Path) -> str:
    return _CODE.sub("", _FENCES.sub("", page.read_text()))


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", _FENCES.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    broken: list[str] = []
    for link in _LINK.findall(_prose(page)):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            broken.append(link)
    assert not broken


def test_each_page_is_in_the_index() -> None:
    index = set(_LINK.findall(_prose(ROOT / "docs/README.md")))
    assert {page.name for page in ROOT.glob("docs/*.md")} - {"README.md"} == index


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    groups = {**GROUPS, "embedded": embedded}
    code = " ".join([*_FENCES.findall(page.read_text()), *_CODE.findall(_FENCES.sub("", page.read_text()))])
    for verb, second in _COMMAND.findall(code):
        assert verb in COMMANDS or verb.upper() in COMMANDS or verb in groups, verb
        if verb in groups and second:
            assert second in _names(groups[verb]), f"{verb} {second}"


def _names(group: typer.Typer) -> set[str]:
    return {command.name or str(getattr(command.callback, "__name__", "")) for command in group.registered_commands}


@pytest.mark.parametrize("page", ["architecture.md", "threats.md"])
def test_files_and_packages_exist(page: str) -> None:
    paths = _PATH.findall((ROOT / "docs" / page).read_text())
    assert paths
    assert [path for path in paths if not _exists(re.sub(r"<\w+>", "*", path))] == []


def _exists(path: str) -> bool:
    """Whether a path, or a file name alone, is that of a file or folder of the project."""
    alone = "/" not in path and any(next((ROOT / folder).rglob(path), None) for folder in ("hive_replication", "repl_assets"))
    return alone or any(next((ROOT / folder).glob(path), None) for folder in _FOLDERS)


@pytest.mark.no_cover
def test_quoted_messages_are_those_of_the_code() -> None:
    """Literal parts of each message of Troubleshooting stand in this order in one text of the code."""
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs/troubleshooting.md").read_text(), re.MULTILINE)
    quoted = [part for row in rows for message in re.findall("`([^`]*)`", row) for part in message.split("; ")]
    texts = [*_OF_HIVE, *(text for folder in ("hive_replication", "resources") for text in _texts(ROOT / folder))]
    assert rows
    assert [message for message in quoted if not any(_stand_in(text, _literals(message)) for text in texts)] == []


def _literals(message: str) -> list[str]:
    """Returns the literal parts of a quoted message in their order."""
    return [part.strip() for part in _PLACEHOLDER.split(message) if re.search(r"\w", part)]


def _stand_in(text: str, parts: list[str]) -> bool:
    """Whether a text has all the parts, in this order."""
    for part in parts:
        _, found, text = text.partition(part)
        if not found:
            return False
    return True


def _texts(folder: Path) -> Iterator[str]:
    """Yields the texts of the modules below a folder, without docstrings; NUL stands for each value in an f-string."""
    for path in folder.rglob("*.py"):
        tree = ast.parse(path.read_text())
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield node.value
