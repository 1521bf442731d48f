"""What `make install` takes from a registry is what the locks have the hashes of, and so is what builds it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted(path.name for path in ROOT.glob("*.lock"))
INSTALLS = re.findall(r"(?:pip|\$\(PIP\)) install ([^;\n]*)", (ROOT / "Makefile").read_text(encoding="utf-8"))


def test_what_the_makefile_installs() -> None:
    """Each lock is of some line, and each line is of a lock or of this project."""
    named = {word for line in INSTALLS for word in line.split() if not word.startswith("-")}
    assert named == {*LOCKS, ":all:", "."}


@pytest.mark.parametrize("line", INSTALLS)
def test_no_line_of_the_makefile_fetches_what_has_no_hash(line: str) -> None:
    """pip looks at no hashes of what it fetches to build something: it may build with what is there already, or not at all."""
    options = set(line.split())
    assert "--no-deps" in options
    assert "--require-hashes" in options or {"-e", "."} <= options
    assert "--no-build-isolation" in options or {"--only-binary", ":all:"} <= options


@pytest.mark.parametrize("lock", LOCKS)
def test_each_requirement_of_a_lock_is_pinned_and_has_hashes(lock: str) -> None:
    assert requirements(lock)
    assert [name for name, rest in requirements(lock).items() if not re.match(r"==\S+.* --hash=sha256:[0-9a-f]{64}", rest)] == []


def test_what_builds_is_what_is_installed() -> None:
    """Else the second line of the Makefile would replace what the first one installed."""
    built, installed = requirements("requirements-build.lock"), requirements("requirements.lock")
    assert built["setuptools"] == installed["setuptools"]


def requirements(lock: str) -> dict[str, str]:
    """The requirements of a lock by name: versions, markers and hashes."""
    lines = re.sub(r" *\\\n *|\n *#.*", " ", (ROOT / lock).read_text(encoding="utf-8")).splitlines()
    found = (re.match(r"([A-Za-z0-9._-]+)(?:\[.*?\])?(.*?) *$", line) for line in lines)
    return {one[1]: one[2] for one in found if one}
