"""Gives a replica the access and the extended attributes of its source, as far as the account may (policy ``preserve``).

Where the group cannot be kept, its bits are left to those who have them in both classes; an ACL that cannot be kept narrows the
mode likewise (:mod:`hive_replication.storage.access`). What is new is for its owner alone until it has all that it gets, so that
nobody may read it for a moment who may not afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from hive_replication.policy import Preserved
from hive_replication.storage import FileStatus, Storage, paths
from hive_replication.storage.access import Access
from hive_replication.storage.hdfs_xattrs import read_xattrs, set_xattrs
from hive_replication.storage.webhdfs_answers import Answered, Failing

_XATTR = ":xattr"


@dataclass
class Preserve:
    """What is kept, and what has turned out not to be possible. Threads may share it; picklable.

    Args:
        what: of the policy.

    Attributes:
        refused: why something is not kept, a sentence for owners, for ACLs, for extended attributes and for each group; their
            keys begin with a colon.
    """

    what: frozenset[Preserved]
    refused: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, what: Iterable[Preserved]) -> Preserve:
        """By the policy's setting."""
        return cls(frozenset(what))

    def __bool__(self) -> bool:
        """Whether anything is kept."""
        return bool(self.what)

    def attainable(self, wanted: Access, present: Access) -> Access:
        """What a file or directory can get, whose owner and group are ``present`` as long as nobody changes them."""
        if "acl" not in self.what or ":acl" in self.refused:
            wanted = wanted.without_acl()
        if wanted.group != present.group and not self._keeps("group", wanted.group):
            wanted = replace(wanted.without_group(), group=present.group)
        if wanted.owner != present.owner and not self._keeps("owner", ""):
            wanted = replace(wanted, owner=present.owner)
        return wanted

    def give(self, storage: Storage, uri: str, wanted: Access, present: Access, *, is_dir: bool) -> Access:
        """Changes what differs.

        Args:
            storage: of the replica.
            uri: of a file or directory.
            wanted: what its source has.
            present: what it has.
            is_dir: whether it is a directory.

        Returns:
            What it has now.
        """
        goal = self.attainable(wanted, present)
        listed = goal.has_acl or present.has_acl
        # Else another group would have its bits for a moment; and what sets an ACL leaves the sticky bit as it is.
        if (goal.group != present.group and present.mode & 0o70) or (listed and goal.sticky != present.sticky):
            present = replace(present.closed(), sticky=goal.sticky)
            first = present.mode
            storage.about_access(uri, lambda store, path: store.set_mode(path, first))
        if (goal.owner, goal.group) != (present.owner, present.group):
            if not self._owned(storage, uri, goal, present):
                return self.give(storage, uri, wanted, present, is_dir=is_dir)
            present = replace(present, owner=goal.owner, group=goal.group)
        if listed:
            if goal != present and not self._listed(storage, uri, goal, is_dir=is_dir):
                return self.give(storage, uri, wanted, present, is_dir=is_dir)
        elif goal.mode != present.mode:
            storage.about_access(uri, lambda store, path: store.set_mode(path, goal.mode))
        return goal

    def give_xattrs(self, source: Storage, origin: str, storage: Storage, uri: str) -> None:
        """Gives a replica the extended attributes of its source, if they are kept; others stay, as with ``distcp -px``.

        Args:
            source: storage of the source.
            origin: its file or directory.
            storage: of the replica.
            uri: of the replica.

        Raises:
            FileNotFoundError: the source is gone.
            ReplicationError: one of the sides does not answer as it should; OSErrors likewise.
        """
        if "xattr" not in self.what or _XATTR in self.refused:
            return
        try:
            values = source.about_webhdfs(origin, read_xattrs, again=True)
            done = values is not None and storage.about_webhdfs(uri, lambda web, path: set_xattrs(web, path, values), again=True)
            why = "" if done else "they are read and set over WebHDFS: set webhdfs of both sides' storage roots in the policy"
        except PermissionError as error:
            why = error.strerror
        except Answered as error:
            if isinstance(error, Failing) or not _tells_of_xattrs(str(error), origin, uri):
                raise
            why = str(error)  # one of the sides has none, or not so many
        if why:
            self.refused[_XATTR] = f"extended attributes are not kept: {why}"

    def _owned(self, storage: Storage, uri: str, goal: Access, present: Access) -> bool:
        """Sets owner and group; False where the account may not, which is remembered."""
        owner = goal.owner if goal.owner != present.owner else None
        group = goal.group if goal.group != present.group else None
        try:
            storage.about_access(uri, lambda store, path: store.set_owner(path, owner, group))
        except PermissionError as error:
            what = f"the owner of what the source has, such as {owner}" if owner else f"the group {group}"
            self.refused[":owner" if owner else f":group {group}"] = f"{what}, is not kept: {error.strerror}"
            return False
        return True

    def _listed(self, storage: Storage, uri: str, goal: Access, *, is_dir: bool) -> bool:
        """Sets mode and ACL; False where the store has none, which is remembered.

        Threads that share this may all have set out with an ACL before the first of them learned that.

        Raises:
            PermissionError: there is none to be set, but an inherited one to be taken away.
        """
        try:
            storage.about_access(uri, lambda store, path: store.set_acl(path, goal, is_dir=is_dir))
        except PermissionError as error:
            if not goal.has_acl:
                raise
            self.refused[":acl"] = (
                f"ACLs are not kept on the target, and who has more by one than by the mode has not: {error.strerror}"
            )
            return False
        return True

    def _keeps(self, what: Preserved, name: str) -> bool:
        return what in self.what and f":{what} {name}".strip() not in self.refused


def _tells_of_xattrs(text: str, *uris: str) -> bool:
    """Whether a message of HDFS is about extended attributes, whatever the names of paths; those of tables are in lower case."""
    for uri in uris:
        text = text.replace(paths.split(uri)[2], "")
    return "XAttr" in text or "XATTR" in text


@dataclass(frozen=True, slots=True)
class Place:
    """The directory of a replica's file.

    Args:
        preserve: what is kept.
        new: what a new file in it has: its owner, its group and, of the directory, the default ACL.
        asks: whether files of the source's directory may have ACLs, so that each is asked; else those alone whose mode tells
            the group from the others.
        within: what the source's directory allows, where this one allows more and the account may not change it.
        made: whether the load has made it just now, so that no file of it needs to be looked for.
        whose: what the source's directory has itself, without those above it; None where it is gone.
    """

    preserve: Preserve
    new: Access
    asks: bool = False
    within: Access | None = None
    made: bool = False
    whose: Access | None = None

    def wanted(self, source: Storage, status: FileStatus, *, from_cmroot: bool = False) -> Access | None:
        """What the replica of a source file should have; None where the source's store knows nothing of it.

        In cmroot a file is the metastore's: ``ReplChangeManager.recycle`` gives it owner and group of that account, and leaves
        the mode. So it gets those of its directory, whose group HDFS gave it when it was made, and no more than that allows.

        Args:
            source: storage of the source.
            status: of the file that is copied.
            from_cmroot: whether it lies there, and no more in its directory.
        """
        access = status.access
        if access is None:
            return None
        if self.asks or access.members != access.other:
            access = source.about_access(status.uri, lambda store, path: store.read(path)) or access
        access = replace(access, user=access.user | 4)  # it is read back to be proven
        if from_cmroot and self.whose is None:
            access = replace(access.private(), group=self.new.group)
        elif from_cmroot and self.whose is not None:
            access = replace(access, owner=self.whose.owner, group=self.whose.group).below(self.whose)
        return access if self.within is None else access.below(self.within)

    def first_mode(self, wanted: Access) -> int:
        """The mode with which a file is made: for its owner alone where something is to be changed afterwards."""
        goal = self.preserve.attainable(wanted, self.new)
        same = (goal.owner, goal.group) == (self.new.owner, self.new.group) and not (goal.has_acl or self.new.has_acl)
        return goal.mode if same else goal.private().mode

    def finish(self, source: Storage, origin: str, storage: Storage, uri: str, wanted: Access, mode: int) -> None:
        """Gives a file that was made with :meth:`first_mode` the rest.

        Args:
            source: storage of the source.
            origin: the file that was copied.
            storage: of the replica.
            uri: of the replica.
            wanted: what it should have.
            mode: with which it was made; by now it could be another, since other threads learn what is refused.
        """
        self.preserve.give_xattrs(source, origin, storage, uri)  # while the file is the account's
        first = Access.of_mode(self.new.owner, self.new.group, mode)
        self.preserve.give(storage, uri, wanted, replace(first, default=self.new.default), is_dir=False)
