"""The cmroot of each directory, as ``getCmRoot`` of Hive's ReplChangeManager chooses it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import pytest

from hive_replication.dump.cm_roots import CmRoots, cm_roots
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.events.files import FileRef

HDFS = "hdfs://s:8020"
PLAIN, DATABASE = f"{HDFS}/cm", f"{HDFS}/w/sales.db"


class Web:
    """A NameNode whose encryption zones begin at some directories; the database's directory has two tables."""

    def __init__(self, *zones: str) -> None:
        self.zones = tuple(map(PurePosixPath, zones))

    def about_webhdfs(self, uri: str, ask: Callable[[Any, str], Any], *, again: bool) -> Any:
        return ask(self, uri.removeprefix(HDFS))

    def asked(self, path: str, op: str, _: str, **__: str) -> dict[str, Any]:
        if op == "GETFILESTATUS":
            return self._status(PurePosixPath(path))
        tables = [{"pathSuffix": name, **self._status(PurePosixPath(path, name))} for name in ("secret", "t")]
        return {"partialListing": {"FileStatuses": {"FileStatus": tables}}, "remainingEntries": 0}

    def _status(self, path: PurePosixPath) -> dict[str, Any]:
        return {"type": "DIRECTORY", "encBit": any(path.is_relative_to(zone) for zone in self.zones)}


def setting(name: str, default: str) -> str:
    return {"hive.repl.cm.nonencryptionzone.rootdir": f"{HDFS}/plain"}.get(name, default)


@pytest.mark.parametrize(
    ("zones", "secret", "other"),
    [
        ((), PLAIN, PLAIN),
        (("/w/sales.db",), f"{DATABASE}/.cmroot", f"{DATABASE}/.cmroot"),
        (("/w",), f"{HDFS}/w/.cmroot", f"{HDFS}/w/.cmroot"),
        (("/w/sales.db/secret",), f"{DATABASE}/secret/.cmroot", PLAIN),
        (("/cm", "/w/sales.db/secret"), f"{DATABASE}/secret/.cmroot", f"{HDFS}/plain"),
        (("/",), PLAIN, PLAIN),
    ],
)
def test_cmroots(zones: tuple[str, ...], secret: str, other: str) -> None:
    found = cm_roots(Web(*zones), setting, PLAIN, [DATABASE])  # type: ignore[arg-type]
    assert (found.of(f"{DATABASE}/secret/ds=1"), found.of(f"{DATABASE}/t")) == (secret, other)
    assert found.of(f"{DATABASE}/secrets") == other


@pytest.mark.parametrize("error", [FileNotFoundError("no such file"), ReplicationError("not told")])
def test_what_is_not_told_is_in_no_zone(error: Exception) -> None:
    class Silent(Web):
        def about_webhdfs(self, *_: object, **__: object) -> Any:
            raise error

    assert cm_roots(Silent(), setting, PLAIN, [DATABASE]) == CmRoots(PLAIN)  # type: ignore[arg-type]


def test_a_namenode_that_does_not_answer_is_not_taken_for_one_without_zones() -> None:
    """A dump during a failover recorded the wrong cmroot for files of a zone, which no load found there later."""

    class Silent(Web):
        def about_webhdfs(self, *_: object, **__: object) -> Any:
            raise Unreachable("no NameNode answers")

    with pytest.raises(Unreachable):
        cm_roots(Silent(), setting, PLAIN, [DATABASE])  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "kept"), [(197, 254), (198, 255), (199, 254), (255, 254)])
def test_only_a_name_that_is_too_long_is_cut(name: int, kept: int) -> None:
    """HDFS takes names of 255 characters; of longer ones Hive leaves one more away than it has to."""
    file = FileRef(f"{DATABASE}/t/{'f' * name}", "0" * 56, PLAIN)
    assert len(PurePosixPath(file.cm_uri).name) == kept
