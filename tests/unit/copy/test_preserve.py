"""What a target refuses to keep is not asked of it again, and leaves nobody more than at the source."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, cast

import pytest

from hive_replication.copy.preserve import Place, Preserve
from hive_replication.errors import ReplicationError
from hive_replication.storage import Storage
from hive_replication.storage.access import Access, AclEntry
from hive_replication.storage.webhdfs_answers import Answered, error_of
from tests.guarded_files import ROOT, WIDE, GuardedFiles


class _WithoutAcls:
    """A store with ``dfs.namenode.acls.enabled=false``."""

    def __init__(self) -> None:
        self.modes: list[int] = []
        self.asked = 0

    def about_access(self, _: str, do: Callable[[Any, str], object]) -> object:
        return do(self, "/f")

    def set_acl(self, path: str, *_: object, **__: object) -> None:
        self.asked += 1
        raise PermissionError(errno.EACCES, "ACLs are disabled", path)

    def set_mode(self, _: str, mode: int) -> None:
        self.modes.append(mode)


def test_a_target_without_acls_narrows_the_mode_and_is_asked_once() -> None:
    store, preserve = _WithoutAcls(), Preserve.of(["mode", "group", "acl"])
    wanted = Access("etl", "finance", 7, 0, 0, named=(AclEntry("user", "bob", 5),))
    for _ in range(2):
        given = preserve.give(cast("Storage", store), "hdfs://t/f", wanted, Access("etl", "finance", 7, 5, 5), is_dir=True)
        assert (given.mode, given.has_acl) == (0o700, False)
    assert (store.asked, store.modes) == (1, [0o700, 0o700])
    assert list(preserve.refused) == [":acl"]


class _AllAtOnce(_WithoutAcls):
    """The same, asked by four threads before it answers the first."""

    def __init__(self) -> None:
        super().__init__()
        self._barrier = threading.Barrier(4, timeout=30)

    def set_acl(self, path: str, *_: object, **__: object) -> None:
        self._barrier.wait()
        super().set_acl(path)


def test_threads_that_learn_at_once_that_a_target_has_no_acls_all_go_on_without() -> None:
    """All but the first held their lanes."""
    store, preserve = _AllAtOnce(), Preserve.of(["mode", "group", "acl"])
    wanted = Access("etl", "finance", 7, 0, 0, named=(AclEntry("user", "bob", 5),))

    def give(number: int) -> Access:
        present = Access("etl", "finance", 7, 5, 5)
        return preserve.give(cast("Storage", store), f"hdfs://t/{number}", wanted, present, is_dir=True)

    with ThreadPoolExecutor(4) as threads:
        assert [(given.mode, given.has_acl) for given in threads.map(give, range(4))] == [(0o700, False)] * 4
    assert list(preserve.refused) == [":acl"]


def test_an_inherited_acl_that_may_not_be_taken_away_is_an_error() -> None:
    store, preserve = _WithoutAcls(), Preserve.of(["mode", "group", "acl"])
    present = Access("etl", "finance", 7, 5, 5, default=(AclEntry("user", "bob", 7),))
    with pytest.raises(PermissionError):
        preserve.give(cast("Storage", store), "hdfs://t/f", Access("etl", "finance", 7, 0, 0), present, is_dir=True)


_BOB = (AclEntry("user", "bob", 7),)


@pytest.mark.parametrize("group", ["staff", "finance"])
@pytest.mark.parametrize(
    ("wanted", "present"),
    [
        (Access("repl", "finance", 7, 7, 7, sticky=True, named=_BOB), WIDE),
        (Access("repl", "finance", 7, 7, 7, sticky=True), Access("repl", "staff", 7, 5, 5, named=_BOB)),
        (Access("repl", "finance", 7, 7, 7, named=_BOB), Access("repl", "staff", 7, 7, 7, sticky=True, default=_BOB)),
        (Access("repl", "finance", 7, 5, 0), Access("repl", "staff", 7, 5, 0, named=_BOB)),
        (Access("repl", "finance", 7, 7, 7, sticky=True), WIDE),
    ],
    ids=["given with an ACL", "given where one goes", "taken with an ACL", "an ACL goes", "without an ACL"],
)
def test_sticky_bits_and_acls_are_those_of_the_source(wanted: Access, present: Access, group: str) -> None:
    """What sets an ACL leaves the sticky bit: everybody could remove what others have in a directory of 1777."""
    files, wanted = GuardedFiles({"t": present}), replace(wanted, group=group)
    given = Preserve.of(["owner", "group", "mode", "acl"]).give(cast("Storage", files), f"{ROOT}/t", wanted, present, is_dir=True)
    assert (given, files.access[f"{ROOT}/t"]) == (wanted, wanted)


def test_a_directory_is_open_to_all_only_with_its_sticky_bit() -> None:
    seen: list[Access] = []

    class Watched(GuardedFiles):
        def about_access(self, uri: str, call: Callable[[Any, str], Any]) -> Any:
            super().about_access(uri, call)
            seen.append(self.access[uri])

    wanted = Access("etl", "finance", 7, 7, 7, sticky=True, named=_BOB)
    present = Access("repl", "staff", 7, 5, 5, named=_BOB)
    files = cast("Storage", Watched({"t": present}))
    Preserve.of(["owner", "group", "mode", "acl"]).give(files, f"{ROOT}/t", wanted, present, is_dir=True)
    assert seen[-1] == wanted
    assert [one for one in seen if one.other & 2 and not one.sticky] == []


@pytest.mark.parametrize("refused", [":owner", ":group finance"])
def test_a_file_that_was_made_before_others_learned_what_is_refused_gets_its_mode(refused: str) -> None:
    """It stayed for its owner alone, as it was made."""
    files, new = GuardedFiles({}), Access("repl", "staff", 6, 0, 0)
    wanted = Access("etl" if refused == ":owner" else "repl", "staff" if refused == ":owner" else "finance", 6, 4, 4)
    place = Place(Preserve.of(["owner", "group", "mode"]), new)
    mode = place.first_mode(wanted)
    files.access[f"{ROOT}/f"] = Access.of_mode("repl", "staff", mode)
    assert mode == 0o600
    place.preserve.refused[refused] = "may not"
    storage = cast("Storage", files)
    place.finish(storage, f"{ROOT}/origin", storage, f"{ROOT}/f", wanted, mode)
    assert files.access[f"{ROOT}/f"].mode == 0o644


class _Web:
    """A store whose WebHDFS answers the same each time; None: it has none."""

    def __init__(self, answer: Mapping[str, str] | Exception | None) -> None:
        self.answer, self.asked = answer, 0

    def about_webhdfs(self, *_: object, **__: object) -> object:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("source", "target", "why"),
    [
        ({"user.a": "0x31"}, PermissionError(errno.EACCES, "etl may not write", "/f"), "etl may not write"),
        (Answered("Support for XAttrs is off (dfs.namenode.xattrs.enabled)"), None, "dfs.namenode.xattrs.enabled"),
        (None, None, "set webhdfs of both sides' storage roots"),
    ],
)
def test_extended_attributes_that_cannot_be_kept_are_asked_for_once(source: Any, target: Any, why: str) -> None:
    preserve, ours, theirs = Preserve.of(["mode", "xattr"]), _Web(source), _Web(target)
    for _ in range(2):
        preserve.give_xattrs(cast("Storage", ours), "hdfs://s/f", cast("Storage", theirs), "hdfs://t/f")
    assert ours.asked == 1
    assert why in preserve.refused[":xattr"]


@pytest.mark.parametrize(
    ("path", "status", "answer"),
    [
        ("/w/t/f", 503, "no answer"),
        ("/w/xattr_log/f", 503, "no answer"),
        ("/w/xattr_log/f", 500, '{"RemoteException": {"message": "no answer: GETXATTRS timed out"}}'),
        ("/w/xattr_log/XAttr=1", 403, '{"RemoteException": {"message": "no answer about /w/xattr_log/XAttr=1 of /w/xattr_log"}}'),
    ],
)
def test_extended_attributes_are_not_given_up_by_an_outage(path: str, status: int, answer: str) -> None:
    """A table of such a name gave them up for all that followed: it was looked for in the whole message."""
    preserve, source = Preserve.of(["mode", "xattr"]), cast("Storage", _Web(error_of(path, status, answer)))
    with pytest.raises((ReplicationError, OSError), match="no answer"):
        preserve.give_xattrs(source, f"hdfs://s{path}", source, "hdfs://t/f")
    assert preserve.refused == {}
