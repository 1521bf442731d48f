"""What a private directory protects is protected wherever it is moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from hive_replication.copy.preserve import Place
from hive_replication.load.layout import protected_moves
from hive_replication.load.layout.move_to_retired import retire
from hive_replication.load.layout.protected_moves import ProtectedMoves
from hive_replication.load.retention.removals import Removals
from hive_replication.storage import FileStatus, Storage, paths
from hive_replication.storage.access import Access, AclEntry
from tests.guarded_files import ROOT, WIDE, GuardedFiles

PRIVATE = Access.of_mode("etl", "finance", 0o750)
OPEN = Access.of_mode("etl", "finance", 0o644)
DB = f"{ROOT}/w/db"


def storage(files: GuardedFiles) -> Storage:
    return cast("Storage", files)


def _moved(files: GuardedFiles, path: str, place: str) -> None:
    ProtectedMoves(storage(files)).move(path, place)


def _swept(files: GuardedFiles, path: str, place: str) -> None:
    Removals(storage(files), 0.0).move("old data", path, place).carry_out()


@pytest.mark.parametrize("move", [_moved, _swept])
@pytest.mark.parametrize("there", [False, True], ids=["a new directory", "one that an earlier version made"])
def test_a_file_stays_as_private_as_its_directory(move: Callable[[GuardedFiles, str, str], None], *, there: bool) -> None:
    files = GuardedFiles({"w/db/t": PRIVATE, "w/db/t/f": OPEN, "w/db/t/g": OPEN})
    if there:
        files.mkdirs(f"{DB}/.repl/retired/7/t")
    for name in "fg":
        move(files, f"{DB}/t/{name}", f"{DB}/.repl/retired/7/t/{name}")
        assert files.access[f"{DB}/.repl/retired/7/t/{name}"] == OPEN
    assert files.allows(f"{DB}/.repl/retired/7/t") == Access.of_mode("etl", "finance", 0o750)
    assert files.access[f"{DB}/.repl/retired"] == WIDE


def test_directories_above_that_stay_behind_protect_it_too() -> None:
    files = GuardedFiles({"w/db/t": PRIVATE, "w/db/t/a": WIDE, "w/db/t/a/b": WIDE, "w/db/t/a/b/f": OPEN})
    _moved(files, f"{DB}/t/a/b/f", f"{DB}/.repl/retired/7/t/a/b/f")
    assert files.allows(f"{DB}/.repl/retired/7/t/a/b").mode == 0o750


def test_those_above_both_places_are_not_repeated() -> None:
    files = GuardedFiles({"w/db": PRIVATE, "w/db/t": WIDE, "w/db/t/f": OPEN})
    _moved(files, f"{DB}/t/f", f"{DB}/.repl/retired/7/t/f")
    assert files.access[f"{DB}/.repl/retired/7/t"] == WIDE


def test_data_of_another_directory_stays_private_too() -> None:
    files = GuardedFiles({"w/db": WIDE, "external": PRIVATE, "external/t": WIDE, "external/t/f": OPEN})
    _moved(files, f"{ROOT}/external/t/f", f"{DB}/.repl/retired/7/t/f")
    assert files.allows(f"{DB}/.repl/retired/7/t").mode == 0o750


def test_an_account_that_may_not_give_files_away_takes_rights_away() -> None:
    files = GuardedFiles({"w/db/t": PRIVATE, "w/db/t/f": OPEN}, superuser=False)
    _moved(files, f"{DB}/t/f", f"{DB}/.repl/retired/7/t/f")
    assert str(files.access[f"{DB}/.repl/retired/7/t"]) == "repl:staff 700"


def test_an_acl_is_kept() -> None:
    acl = Access("etl", "finance", 7, 0, 0, named=(AclEntry("user", "bob", 5),))
    files = GuardedFiles({"w/db/t": acl, "w/db/t/f": OPEN})
    _moved(files, f"{DB}/t/f", f"{DB}/.repl/retired/7/t/f")
    assert files.access[f"{DB}/.repl/retired/7/t"] == acl


def test_the_directory_of_a_foreign_table_in_another_one_stays_private() -> None:
    files = GuardedFiles({"w/db/own": PRIVATE, "w/db/own/t": WIDE, "w/db/own/t/f": OPEN})
    retire(storage(files), DB, f"{DB}/own/t", 170)
    (moved,) = (uri for uri in files.access if uri.endswith("/f"))
    assert "/.repl/retired/170/own/t-" in moved
    assert files.allows(paths.parent(moved)).mode == 0o750


@pytest.mark.parametrize("superuser", [True, False])
def test_a_file_that_has_to_be_copied_keeps_its_own_protection(monkeypatch: pytest.MonkeyPatch, *, superuser: bool) -> None:
    """The copy had what HDFS gives by itself, as long as it was kept."""
    own = Access.of_mode("etl", "finance", 0o600)
    files = GuardedFiles({"w/db": WIDE, "zone/t": WIDE, "zone/t/f": own}, superuser=superuser)
    made: list[Place | None] = []
    monkeypatch.setattr(protected_moves, "move_file", lambda *_, access, **__: made.append(access()))
    copy = f"{DB}/.repl/retired/7/external/zone/t/f"
    ProtectedMoves(storage(files)).move_file(f"{ROOT}/zone/t/f", copy, lambda: None)
    (place,) = made
    assert place is not None
    wanted = place.wanted(storage(files), FileStatus(f"{ROOT}/zone/t/f", 1, False, 0.0, access=own))
    assert wanted == own
    mode = place.first_mode(wanted)
    files.access[copy] = Access.of_mode(WIDE.owner, WIDE.group, mode)
    place.preserve.give(storage(files), copy, wanted, place.new, is_dir=False)
    assert (mode, files.access[copy].mode) == (0o600, 0o600)
    assert files.access[copy].owner == ("etl" if superuser else WIDE.owner)
