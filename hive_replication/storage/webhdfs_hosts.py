"""Which hosts belong to the cluster of a WebHDFS address: its NameNodes, their live DataNodes, and those that the policy names.

Whoever can answer in place of the NameNode could otherwise send files, and requests, anywhere.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from typing import Any, cast
from urllib.parse import urlsplit

import urllib3

from hive_replication.bounded_json import parsed
from hive_replication.errors import ReplicationError
from hive_replication.logs import without_secrets
from hive_replication.storage.bounded_body import TooLong, body_of

_LOG = logging.getLogger(__name__)

_JMX = "jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo"
_MOST = 64 << 20  # bytes of the list of DataNodes
_ASK_AGAIN = 1.0  # seconds between two looks at the list: a new DataNode is in it soon


class ClusterHosts:
    """Hosts to which a NameNode may redirect.

    Args:
        pool: makes the requests.
        addresses: of the NameNodes.
        named: further hosts, ``host`` or ``host:port``, from the policy.
    """

    def __init__(self, pool: urllib3.PoolManager, addresses: Iterable[str], named: Iterable[str]) -> None:
        self._pool, self._addresses = pool, tuple(addresses)
        self._named = {one.lower() for one in named} | {urlsplit(one).netloc.lower() for one in self._addresses}
        self._datanodes: dict[str, str] = {}  # their addresses for data by those for HTTP
        self._asked = 0.0
        self._lock = threading.Lock()  # who does not find a host waits for the list that another thread asks for

    def require(self, url: str) -> None:
        """Makes sure that a redirect leads to a host of the cluster.

        Raises:
            ReplicationError: it does not.
            OSError: no NameNode answers which DataNodes there are.
        """
        try:
            parts = urlsplit(url)
            netloc, host = parts.netloc.lower(), (parts.hostname or "").lower()
        except ValueError:
            parts, netloc, host = urlsplit(""), "", ""
        if parts.scheme == "http" and any(address.startswith("https:") for address in self._addresses):
            raise ReplicationError(
                f"WebHDFS at {', '.join(self._addresses)} redirects to {netloc} without TLS, which is not followed: set "
                "dfs.http.policy=HTTPS_ONLY for its DataNodes too"
            )
        if parts.scheme in ("http", "https") and "@" not in netloc and ({netloc, host} & self._named or self._is_live(netloc)):
            return
        shown = netloc or without_secrets(url)
        raise ReplicationError(
            f"WebHDFS at {', '.join(self._addresses)} redirects to {shown!r}, which is no live DataNode of its cluster: "
            "if it is to be believed, add the host to webhdfs_hosts of the storage root in the policy"
        )

    def live(self) -> tuple[str, ...]:
        """HTTP addresses of the live DataNodes, as the NameNodes list them now."""
        return tuple(sorted({name for address in self._addresses for name in self._listed(address) or ()}))

    def transfer_address(self, url: str) -> str | None:
        """The address for data (``ip:port``) of the DataNode that a redirect led to; None where it is in no list."""
        return self._datanodes.get(urlsplit(url).netloc.lower())

    def _is_live(self, netloc: str) -> bool:
        if netloc in self._datanodes:
            return True
        with self._lock:
            if netloc not in self._datanodes and (not self._asked or time.monotonic() - self._asked > _ASK_AGAIN):
                found = [self._listed(address) for address in self._addresses]
                if all(one is None for one in found):
                    raise OSError(f"no answer from {', '.join(self._addresses)} about the DataNodes")
                self._datanodes = {name: data for one in found for name, data in (one or {}).items()}
                self._asked = time.monotonic()
        return netloc in self._datanodes

    def _listed(self, address: str) -> dict[str, str] | None:
        """Live DataNodes as a NameNode lists them, by HTTP address; none where it does not tell, None without an answer."""
        try:
            response = self._pool.request("GET", f"{address}/{_JMX}", redirect=False, preload_content=False)
            answer = parsed(body_of(response, _MOST), most=_MOST)
            nodes = cast("dict[str, dict[str, Any]]", parsed(answer["beans"][0]["LiveNodes"].encode(), most=_MOST))
            return {name: str(node.get("xferaddr") or key) for key, node in nodes.items() for name in _addresses(key, node)}
        except urllib3.exceptions.HTTPError as error:
            _LOG.debug("%s does not answer which DataNodes it has: %s", address, error)
            return None
        except (TooLong, ValueError, LookupError, TypeError, AttributeError) as error:
            _LOG.debug("%s does not list its DataNodes: %s", address, error)
            return {}


def _addresses(key: str, node: dict[str, Any]) -> Iterable[str]:
    """A DataNode's HTTP and HTTPS addresses, by its name and by its number."""
    host = key.rpartition(":")[0]
    for kind in ("infoAddr", "infoSecureAddr"):
        number, _, port = str(node.get(kind) or "").rpartition(":")
        if port and port != "0":
            yield from (f"{host}:{port}".lower(), f"{number}:{port}".lower())
