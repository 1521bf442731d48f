"""An HDFS in memory that knows owners, modes and ACLs, for tests of who may read what."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from hive_replication.storage import paths
from hive_replication.storage.access import Access, effective

ROOT = "hdfs://nn"
WIDE = Access.of_mode("repl", "staff", 0o755)


class GuardedFiles:
    """Files and directories by their URIs, used as a :class:`~hive_replication.storage.Storage`.

    Args:
        found: what there is, by paths without the first slash; with all above it.
        superuser: whether the account may give files away.
    """

    def __init__(self, found: Mapping[str, Access], *, superuser: bool = True) -> None:
        self._superuser = superuser
        self.access: dict[str, Access] = {f"{ROOT}/": WIDE}
        for path, access in found.items():
            self.mkdirs(f"{ROOT}/{path}")
            self.access[f"{ROOT}/{path}"] = access

    def allows(self, uri: str) -> Access:
        """What a directory and all above it allow together."""
        chain = [uri]
        while (above := paths.parent(chain[0])) != chain[0]:
            chain.insert(0, above)
        return effective(self.access[one] for one in chain)

    @property
    def threads(self) -> Any:
        return SimpleNamespace(map=map)

    def holds(self, uri: str) -> bool:
        return uri.startswith(ROOT)

    def has_directories(self, _: str) -> bool:
        return True

    def exists(self, uri: str) -> bool:
        return uri in self.access

    def files(self, _: str, **__: object) -> list[Any]:
        return []

    def mkdirs(self, uri: str, mode: int | None = None) -> None:
        if uri not in self.access:
            self.mkdirs(paths.parent(uri), mode)
            self.access[uri] = Access.of_mode(WIDE.owner, WIDE.group, WIDE.mode if mode is None else mode)

    def rename(self, source: str, target: str) -> None:
        self.mkdirs(paths.parent(target))
        for uri in [one for one in self.access if paths.is_under(one, source)]:
            self.access[target + uri[len(source) :]] = self.access.pop(uri)

    def about_access(self, uri: str, call: Callable[[Any, str], Any]) -> Any:
        return call(self, uri) if self.holds(uri) else None

    def read(self, uri: str) -> Access:
        if uri not in self.access:
            raise FileNotFoundError(errno.ENOENT, "it is absent", uri)
        return self.access[uri]

    def set_mode(self, uri: str, mode: int) -> None:
        """As HDFS: with an ACL the group's bits are its mask."""
        before, wanted = self.access[uri], Access.of_mode("", "", mode)
        mask = wanted.members
        named = tuple(replace(one, bits=one.bits & mask) for one in before.named)
        members = before.members & mask if before.named else mask
        self.access[uri] = replace(
            before, user=wanted.user, members=members, other=wanted.other, sticky=wanted.sticky, named=named
        )

    def set_owner(self, uri: str, owner: str | None, group: str | None) -> None:
        if not self._superuser:
            raise PermissionError(errno.EACCES, "only a superuser gives files away", uri)
        before = self.access[uri]
        self.access[uri] = replace(before, owner=owner or before.owner, group=group or before.group)

    def set_acl(self, uri: str, access: Access, *, is_dir: bool) -> None:
        """As HDFS: it leaves owner, group and the sticky bit."""
        assert is_dir or not access.default
        before = self.access[uri]
        self.access[uri] = replace(access, owner=before.owner, group=before.group, sticky=before.sticky)
