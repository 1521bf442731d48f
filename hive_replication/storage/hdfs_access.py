"""Owner, group, mode and ACLs of one HDFS, through ``hdfs-native``."""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import hdfs_native

from hive_replication.storage.access import Access, AclEntry
from hive_replication.storage.failures import DENIED, plain

if TYPE_CHECKING:  # names of its stubs alone
    from hdfs_native._internal import AclEntryType, FsAction

_ACTIONS: tuple[FsAction, ...] = ("---", "--x", "-w-", "-wx", "r--", "r-x", "rw-", "rwx")  # by their bits
_NO_ACLS = "AclException"


class HdfsAccess:
    """Calls about access.

    Args:
        client: of the HDFS.
    """

    def __init__(self, client: hdfs_native.Client) -> None:
        self._client = client
        self._acls = True  # until it says that it has none

    def read(self, path: str) -> Access:
        """Owner, group, mode and ACL of a file or directory, in one call; ``.snapshot`` has those of the directory that it is in.

        Raises:
            FileNotFoundError: there is none.
        """
        path = path.removesuffix("/.snapshot") or "/"
        if self._acls:
            try:
                return _access(self._client.get_acl_status(path))
            except RuntimeError as error:
                if _NO_ACLS not in str(error):
                    raise
                self._acls = False  # dfs.namenode.acls.enabled=false
        return of_status(self._client.get_file_info(path))

    def set_mode(self, path: str, mode: int) -> None:
        """Sets the permission bits.

        Raises:
            PermissionError: the account may not.
        """
        with _denied(path):
            self._client.set_permission(path, mode)

    def set_owner(self, path: str, owner: str | None, group: str | None) -> None:
        """Sets owner and group, those that are given.

        Raises:
            PermissionError: only a superuser gives files away, and others give them only to groups that they are members of.
        """
        with _denied(path):
            self._client.set_owner(path, owner, group)

    def set_acl(self, path: str, access: Access, *, is_dir: bool) -> None:
        """Sets mode and ACL at once; what there was of an ACL goes.

        Raises:
            PermissionError: the account may not, or this HDFS has no ACLs.
        """
        with _denied(path):
            if is_dir and not access.default:  # which would stay
                self._client.remove_default_acl(path)
            self._client.set_acl(path, list(_entries(access)))


def of_status(status: hdfs_native.FileStatus) -> Access:
    """What a file's status tells, which is nothing of ACLs."""
    return Access.of_mode(status.owner, status.group, status.permission)


def _access(status: hdfs_native.AclStatus) -> Access:
    access = replace(Access.of_mode(status.owner, status.group, status.permission), sticky=status.sticky)
    mask, members = access.members, access.members
    named: list[AclEntry] = []
    default: list[AclEntry] = []
    for entry in status.entries:
        bits = _ACTIONS.index(entry.permissions)
        if entry.scope == "default":
            default.append(AclEntry(entry.type, entry.name or "", bits))
        elif entry.name and (entry.type == "user" or entry.type == "group"):
            named.append(AclEntry(entry.type, entry.name, bits & mask))
        elif entry.type == "group":
            members = bits & mask
    return replace(access, members=members, named=tuple(sorted(named)), default=tuple(sorted(default)))


def _entries(access: Access) -> Generator[hdfs_native.AclEntry]:
    def entry(kind: AclEntryType, bits: int, name: str | None = None) -> hdfs_native.AclEntry:
        return hdfs_native.AclEntry(kind, "access", _ACTIONS[bits], name)

    yield entry("user", access.user)
    yield entry("group", access.members)
    yield entry("other", access.other)
    yield from (entry(one.kind, one.bits, one.name) for one in access.named)
    for one in access.default:
        yield hdfs_native.AclEntry(one.kind, "default", _ACTIONS[one.bits], one.name or None)


@contextmanager
def _denied(path: str) -> Generator[None]:
    try:
        yield
    except RuntimeError as error:
        if DENIED in str(error) or _NO_ACLS in str(error):
            raise PermissionError(errno.EACCES, plain(str(error)), path) from error
        raise
