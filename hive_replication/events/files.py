"""Data files as Hive's messages and ``_files`` name them: ``uri#checksum#cmroot#subdirectory``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

_ENCODED = {code: f"%{code:02X}" for code in (*range(0x20), 0x7F, *map(ord, "#%"))}
_BARRED = "barred"
_DENIED = "denied"
_MIXED = "mixed"
_RENAMED = "renamed"
_UNNOTED = "unnoted"
_UNSHOWN = "unshown"
_HEX = re.compile("%([0-9A-F]{2})")
_STORE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?")


@dataclass(frozen=True, slots=True)
class FileRef:
    """One data file of the source at the time of an event.

    Args:
        uri: where the file lay, e.g. ``hdfs://nn:8020/warehouse/sales.db/orders/ds=1/part-0``.
        checksum: lowercase hex of Hadoop's ``getFileChecksum`` bytes recorded at the event, or "" where none was.
        cm_root: URI of the cmroot directory that keeps the file once Hive deletes it, or "". A metastore of Hive 2 keeps it under
            its checksum alone: then the URI of the file itself.
        subdir: path below the table's or partition's directory for nested files, or "" (ACID: ``delta_...``).

    A URI that ends with a slash is no file, but the directory of a table or partition that was missing when it was to be listed,
    or, where ``subdir`` is ``denied``, that could not be listed, or, where it is ``mixed``, that has rows of aborted
    transactions between others, or, where it is ``renamed``, whose rows would get other ids on the target, or, where it is
    ``unnoted``, that a transaction wrote of whose files the metastore was told nothing (there it is the directory of that
    write), or, where it is ``unshown``, whose table the metastore did not show, or, where it is ``barred``, that the policy did
    not allow to be read (there it may also be a resource of a function). It cannot be copied, so that nothing is emptied for it.
    """

    uri: str
    checksum: str = ""
    cm_root: str = ""
    subdir: str = ""

    @classmethod
    def _standing(cls, uri: str, kind: str) -> FileRef:
        return cls(f"{uri.rstrip('/')}/", subdir=kind)

    def _stands_as(self, kind: str) -> bool:
        return self.is_unlisted_directory and self.subdir == kind

    @classmethod
    def missing_directory(cls, location: str) -> FileRef:
        """What stands for all files of a directory that is missing."""
        return cls._standing(location, "")

    @classmethod
    def unreadable_directory(cls, location: str) -> FileRef:
        """What stands for all files of a directory that could not be listed: the account may not, or it changes all the time."""
        return cls._standing(location, _DENIED)

    @classmethod
    def barred(cls, uri: str) -> FileRef:
        """What stands for what lies at a place that the policy did not allow to be read."""
        return cls._standing(uri, _BARRED)

    @classmethod
    def mixed_directory(cls, location: str) -> FileRef:
        """What stands for all files of a directory that has rows of committed and of aborted transactions in one."""
        return cls._standing(location, _MIXED)

    @classmethod
    def renamed_directory(cls, location: str) -> FileRef:
        """What stands for all files of a directory whose rows get their ids from names that are others on the target."""
        return cls._standing(location, _RENAMED)

    @classmethod
    def unnoted_directory(cls, uri: str) -> FileRef:
        """What stands for the files of a write of which the metastore was told nothing, by its directory."""
        return cls._standing(uri, _UNNOTED)

    @classmethod
    def unshown_table(cls, location: str) -> FileRef:
        """What stands for all that a table has, of which the metastore does not show the account what it asked for."""
        return cls._standing(location, _UNSHOWN)

    @property
    def is_unshown_table(self) -> bool:
        """Whether it stands for a table that the metastore did not show."""
        return self._stands_as(_UNSHOWN)

    @property
    def is_barred(self) -> bool:
        """Whether it stands for what the policy did not allow to be read."""
        return self._stands_as(_BARRED)

    @property
    def is_mixed_directory(self) -> bool:
        """Whether it stands for a directory with rows of aborted transactions between others."""
        return self._stands_as(_MIXED)

    @property
    def is_renamed_directory(self) -> bool:
        """Whether it stands for a directory whose rows would get other ids on the target."""
        return self._stands_as(_RENAMED)

    @property
    def is_unnoted_directory(self) -> bool:
        """Whether it stands for a write of which the metastore was told nothing."""
        return self._stands_as(_UNNOTED)

    @property
    def is_unlisted_directory(self) -> bool:
        """Whether it stands for a directory that was not listed."""
        return self.uri.endswith("/")

    @property
    def is_missing_directory(self) -> bool:
        """Whether it stands for a directory that is missing."""
        return self._stands_as("")

    @property
    def names_store(self) -> bool:
        """Whether it names its store, as all files do of which a client tells.

        Clients of Hive 2, as Spark's own, number the fields of an INSERT otherwise (``metastore/hive2_insert.py``): a metastore
        of a later Hive takes their checksums for the files, and all of their INSERTs for overwrites.
        """
        return _STORE.match(self.uri) is not None

    @property
    def name(self) -> str:
        """The file's own name."""
        return PurePosixPath(self.uri).name

    @property
    def relative(self) -> str:
        """Path of the replica below its table's or partition's directory."""
        return f"{self.subdir}/{self.name}" if self.subdir else self.name

    @property
    def cm_uri(self) -> str:
        """``<cmroot>/<name>_<checksum>``, a name of more than 255 characters cut to 254 as Hive does it; "" without cmroot."""
        if not (self.cm_root and self.checksum):
            return ""
        if self.cm_root.endswith(f"/{self.checksum}"):
            return self.cm_root
        name = f"{self.name}_{self.checksum}"
        return f"{self.cm_root.rstrip('/')}/{name if len(name) <= 255 else name[:254]}"

    def below(self, location: str | None) -> FileRef:
        """The file with its path below a table's or partition's directory: Hive names none but for transactional tables.

        Stores are not compared: Hive writes the URI of one directory in several ways. A file elsewhere stays as it is.
        """
        root, parent = _path(location or "").rstrip("/"), _path(self.uri).rpartition("/")[0]
        known = bool(self.subdir) or not root or not parent.startswith(f"{root}/")
        return self if known else replace(self, subdir=parent[len(root) + 1 :])

    def kept_by_hive2(self, cm_root: str) -> FileRef:
        """The file as a metastore of Hive 2 keeps it in its cmroot, which its messages do not name."""
        kept = cm_root and self.checksum and not self.is_unlisted_directory
        return replace(self, cm_root=f"{cm_root.rstrip('/')}/{self.checksum}") if kept else self

    def encode(self) -> str:
        """The line for ``_files``.

        ``#``, ``%`` and control characters in paths are percent-encoded. Hive leaves ``#``, and cannot read it back; a file's
        name may have a line's end in it.
        """
        return "#".join(part.translate(_ENCODED) for part in (self.uri, self.checksum, self.cm_root, self.subdir))

    @classmethod
    def decode(cls, line: str) -> FileRef:
        """Reads a line of ``_files`` as :meth:`encode` wrote it.

        Raises:
            ValueError: the line does not have four parts.
        """
        parts = line.split("#")
        if len(parts) != 4:
            raise ValueError(f"a line of _files has {len(parts)} parts instead of 4: {line!r}")
        return cls(*(_HEX.sub(lambda found: chr(int(found[1], 16)), part) for part in parts))

    @classmethod
    def from_message(cls, text: str) -> FileRef:
        """Reads a file of an event message, which Hive does not escape.

        Hive joins uri, checksum, cmroot and subdirectory with ``#``; a path may hold ``#`` itself. Where the text has more
        parts than four the checksum (hex digits or empty) and the cmroot (a URI) tell where the path ends. Of stores without
        checksums Hive names a cmroot that never keeps the file: it is left out.
        """
        parts = text.split("#")
        found = cls(*parts) if len(parts) <= 4 else cls("#".join(parts[:-3]), *parts[-3:])
        return found if found.checksum else replace(found, cm_root="")


def _path(uri: str) -> str:
    """The path of a URI, taken literally."""
    return _STORE.sub("", uri, count=1) if not uri.startswith("/") else uri
