"""Addresses of servers in a policy: the one place where names of hosts and ports are checked (pure)."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from hive_replication.logs import without_secrets

_METASTORE = "is not a metastore such as thrift://host:9083, or https://host:9083/metastore for Hive 4 over HTTP"
_WEBHDFS = "is not a WebHDFS address such as http://namenode:9870, or several between commas"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Address(NamedTuple):
    """Where a metastore listens; ``path`` only over HTTP (Hive's ``metastore.server.thrift.http.path``)."""

    scheme: str
    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}{self.path}"


def require_host(authority: str) -> None:
    """Makes sure that ``host``, ``host:port`` or ``[::1]:port`` can be looked up; what stands before an @ is left out.

    Raises:
        ValueError: it names no host, the name is none, or the port is none that a server listens at.
    """
    require_printable(authority.rpartition("@")[2])
    parts = urlsplit(f"//{authority}")
    if not parts.hostname or parts.netloc != authority:
        raise ValueError("it names no host")
    if parts.port == 0:
        raise ValueError("no server listens at port 0")
    try:
        parts.hostname.encode("idna")  # as Python does before it looks a name up
    except UnicodeError as error:
        raise ValueError(f"{parts.hostname!r} is no host: a name has 1 to 63 characters between its dots") from error


def require_printable(authority: str) -> None:
    """Makes sure that the name of a host or store can be written down.

    Raises:
        ValueError: it holds a blank or a control character.
    """
    if " " in authority or not authority.isprintable():
        raise ValueError("the name of a host has no blanks and no control characters")


def metastore_addresses(uri: str) -> tuple[Address, ...]:
    """Those of ``thrift://host:9083,thrift://host2:9083`` (Hive's ``hive.metastore.uris``); the default of the port is 9083.

    Raises:
        ValueError: a part is not such an address.
    """
    found: list[Address] = []
    for part in uri.split(","):
        url = _address(part, ("thrift", "http", "https"), _METASTORE)
        http, host = url.scheme != "thrift", url.hostname or ""
        if "@" in url.netloc:
            raise ValueError(f"{_shown(part)} {_METASTORE}")
        if http and url.port is None:
            raise ValueError(f"{_shown(part)} names no port: write it, as in {url.scheme}://{host}:9083/metastore")
        found.append(Address(url.scheme, host, url.port or 9083, (url.path.rstrip("/") or "/metastore") if http else ""))
    return tuple(found)


def valid_metastore(uri: str) -> str:
    """The addresses of a metastore, as they are written.

    Raises:
        ValueError: see :func:`metastore_addresses`; or one has a query or fragment, which would be left out.
    """
    metastore_addresses(uri)
    _require_no_query(uri, _METASTORE)
    return uri


def valid_webhdfs(addresses: str) -> str:
    """The addresses of NameNodes over HTTP, as they are written.

    Raises:
        ValueError: one is none.
    """
    for part in addresses.split(","):
        _address(part, ("http", "https"), _WEBHDFS)
    _require_no_query(addresses, _WEBHDFS)
    return addresses


def valid_place(uri: str) -> str:
    """The URI of a directory that a storage takes as it is written.

    Raises:
        ValueError: its host is none, or a segment of its path could mean another place.
    """
    require_store(uri)
    path = uri.partition("://")[2].rstrip("/").partition("/")[2]
    if _CONTROL.search(path) or (path and any(segment in ("", ".", "..") for segment in path.split("/"))):
        raise ValueError(f"{uri!r} has an empty segment, '.', '..', a line break or another control character")
    return uri


def without_empty_segments(uri: str) -> str:
    """The URI of a directory, by its path as Hadoop's ``Path`` has it where it was written with ``//``."""
    scheme, _, rest = uri.partition("://")
    store, slash, path = rest.partition("/")
    return f"{scheme}://{store}{slash}{'/'.join(filter(None, path.split('/')))}"


def require_store(uri: str) -> None:
    """Makes sure that a URI of a directory names a store that there can be: of HDFS and HTTP a host.

    Raises:
        ValueError: it does not.
    """
    scheme, _, rest = uri.partition("://")
    store = rest.partition("/")[0]
    try:
        require_printable(store)
        if store and scheme.lower() in ("hdfs", "http", "https"):
            require_host(store)
    except ValueError as error:
        raise ValueError(f"{uri!r} is not a directory such as hdfs://namenode:8020/lake: {error}") from error


def _require_no_query(addresses: str, shape: str) -> None:
    for part in addresses.split(","):
        if "?" in part or "#" in part:  # also where nothing stands behind it
            raise ValueError(f"{_shown(part)} {shape}: it has no ? and no #")


def _address(text: str, schemes: tuple[str, ...], shape: str) -> SplitResult:
    try:
        return _parts(text, schemes)
    except ValueError as error:
        raise ValueError(f"{_shown(text)} {shape}: {error}") from error


def _parts(text: str, schemes: tuple[str, ...]) -> SplitResult:
    text = text.strip()  # several addresses may stand on lines of their own
    if not text.isprintable():  # urlsplit leaves some out
        raise ValueError("it holds control characters")
    url = urlsplit(text)
    if url.scheme not in schemes:
        raise ValueError(f"it begins with none of {', '.join(f'{scheme}://' for scheme in schemes)}")
    require_host(url.netloc)
    return url


def _shown(text: str) -> str:
    return repr(without_secrets(text))
