"""URIs of files, taken literally: nothing is percent-decoded, ``#``, ``?``, ``%`` and ``*`` are ordinary characters of names.

``urllib.parse`` and most URI libraries would lose such names; Hadoop's ``Path.toString`` writes them unescaped.
"""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache

from hive_replication.errors import Refused

_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<authority>[^/]*))?(?P<path>/.*)?", re.DOTALL)


@lru_cache(10_000)  # of each file many calls are about the same few
def split(uri: str) -> tuple[str, str, str]:
    """Scheme (lowercase), authority and absolute path without trailing slash; ``file:/x`` is ``file:///x``, as Hadoop writes it.

    Raises:
        Refused: not a full URI, or one of a file on another host, or the path has empty, ``.`` or ``..`` segments or a NUL: it
            could mean a place outside its root.
    """
    match = _URI.fullmatch(uri)
    if not match or (match["authority"] is None and not match["path"]):
        raise Refused(f"{uri!r} is not a full URI such as hdfs://namenode:8020/path")
    path = match["path"] or "/"
    path = path[:-1] if path.endswith("/") and path != "/" else path
    if path != "/" and any(segment in ("", ".", "..") for segment in path[1:].split("/")):
        raise Refused(f"{uri!r} has an empty, '.' or '..' segment; such paths are refused")
    if not is_text(path):
        raise Refused(f"{uri!r} holds a NUL character")
    scheme, authority = match["scheme"].lower(), match["authority"] or ""
    if scheme == "file" and authority:
        raise Refused(f"{uri!r} names the host {authority!r}: local files have none, write file:///path")
    return scheme, authority, path


def normalise(uri: str) -> str:
    """The one spelling of a URI that the rest of the system compares.

    Raises:
        Refused: see :func:`split`.
    """
    scheme, authority, path = split(uri)
    return f"{scheme}://{authority}{path}"


def collapsed(uri: str) -> str:
    """A URI as Hadoop takes it, whose ``Path`` leaves out empty and ``.`` segments, and ``x/..``; what is no URI stays as it is.

    For locations that somebody else has set, to compare them with what a load or retention is about to change.
    """
    match = _URI.fullmatch(uri)
    path = (match and match["path"]) or ""
    return uri[: len(uri) - len(path)] + posixpath.normpath(f"/{path.lstrip('/')}") if path else uri


def parent(uri: str) -> str:
    """URI of the directory that holds a file or directory; the root is its own parent."""
    scheme, authority, path = split(uri)
    return f"{scheme}://{authority}{path.rpartition('/')[0] or '/'}"


def name(uri: str) -> str:
    """The last segment of a URI, "" for the root."""
    return split(uri)[2].rpartition("/")[2]


def is_under(uri: str, root: str) -> bool:
    """Whether a normalised URI is a normalised root itself or lies below it."""
    return uri == root or uri.startswith(root if root.endswith("/") else root + "/")


def moved(location: str | None, before: str | None, after: str | None) -> str:
    """The URI of a file or directory after the directory ``before`` was renamed to ``after``; unchanged outside of ``before``."""
    location = location or ""
    return (after or "") + location[len(before) :] if before and (location + "/").startswith(before + "/") else location


def as_text(name: str) -> str:
    """A name of a local file as it can be written in UTF-8: each byte that is none becomes a NUL and two hex digits.

    No file can be asked for by such a name (:func:`split`), and no other file has it.
    """
    return "".join(f"\0{ord(one) - 0xDC00:02x}" if "\udc80" <= one <= "\udcff" else one for one in name)


def is_text(uri: str) -> bool:
    """Whether a URI is one that a file can have: see :func:`as_text`."""
    return "\0" not in uri


def is_usable(uri: str) -> bool:
    """Whether a file can be asked for by its URI: an object store has names with ``//`` too, which :func:`split` refuses."""
    try:
        split(uri)
    except Refused:
        return False
    return True


def is_hidden(relative: str) -> bool:
    """Whether Hive ignores a file as data: a segment of its path below the table's directory starts with ``.`` or ``_``."""
    return any(segment.startswith((".", "_")) for segment in relative.split("/"))
