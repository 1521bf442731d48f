"""Class files of the embedded Hive are patched only where they say what is expected."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from resources.embedded.patches import Patch, patched

OLD, NEW = b"\x01\x00\x06parent", b"\x01\x00\x04root"


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "thing-1.0.jar"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("org/example/A$B.class", b"head" + OLD + b"\x01\x00\x0cparentOffset")
    return path


def test_constants_are_replaced_once_and_kept(jar: Path) -> None:
    patches = [Patch("thing", "org.example.A$B", (("parent", "root"),)), Patch("absent", "org.example.C", (("x", "y"),))]
    folder = patched([Path("other.jar"), jar], patches)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files == [folder / "org" / "example" / "A$B.class"]
    assert files[0].read_bytes() == b"head" + NEW + b"\x01\x00\x0cparentOffset"
    jar.unlink()
    assert patched([jar], patches) == folder, "made before: the jar is not read"


def test_an_unexpected_class_is_refused(jar: Path) -> None:
    with pytest.raises(ValueError, match=r"org\.example\.A\$B of .* has not one constant 'size'"):
        patched([jar], [Patch("thing", "org.example.A$B", (("size", "length"),))])
    assert not list(jar.parent.joinpath("cache").rglob("*.class"))


def test_instructions_are_replaced_where_they_are_once(jar: Path) -> None:
    head = b"head".hex()
    folder = patched([jar], [Patch("thing", "org.example.A$B", code=((head, "00000000"),))])
    assert (folder / "org" / "example" / "A$B.class").read_bytes().startswith(bytes(4) + OLD)
    for wrong in ((head, "00"), (b"parent".hex(), b"child!".hex())):  # of another length; twice
        with pytest.raises(ValueError, match="does not have the instructions"):
            patched([jar], [Patch("thing", "org.example.A$B", code=(wrong,))])
