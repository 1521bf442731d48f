"""What a target refuses to keep is not asked of it again, and leaves nobody more than at the source."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any, cast

from hive_replication.copy.preserve import Preserve
from hive_replication.storage import Storage
from hive_replication.storage.access import Access, AclEntry


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
