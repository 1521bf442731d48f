"""Whether the servers of a side are spoken to by TLS, who vouches for them, and for how long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlsplit

from hive_replication.doctor.finding import Finding, error, ok, warning
from hive_replication.doctor.settings import DAY
from hive_replication.errors import BadRequest
from hive_replication.metastore.transport import addresses
from hive_replication.policy.warehouse import Tls, Warehouse
from hive_replication.storage.webhdfs_pool import addresses_of
from hive_replication.tls import certificate, context

_SOON = 30 * DAY  # seconds


def encryption(side: str, warehouse: Warehouse) -> Iterator[Finding]:
    """One finding for each metastore and each WebHDFS of a side that answers; why one does not, other checks say.

    Args:
        side: of the findings.
        warehouse: the side in the policy.
    """
    for address in addresses(warehouse.metastore):
        secured = warehouse.metastore_ssl if address.scheme == "thrift" else address.scheme == "https"
        yield from _finding(side, f"metastore {address}", (address.host, address.port) if secured else None, warehouse.tls)
    for root in warehouse.storage_roots:
        for address in filter(None, addresses_of(root.webhdfs or "")):
            url = urlsplit(address)
            server = (url.hostname or "", url.port or 443) if url.scheme == "https" else None
            yield from _finding(side, f"WebHDFS {address}", server, root.tls)


def _finding(side: str, what: str, server: tuple[str, int] | None, tls: Tls | None) -> Iterator[Finding]:
    check = "encryption"
    if server is None:
        yield ok(side, check, f"{what} is not encrypted")
        return
    try:
        found = certificate(*server, context(tls))
    except BadRequest as problem:
        yield error(side, check, f"{what}: {problem}", "correct tls of this server in the policy: without it nobody speaks to it")
        return
    except OSError:
        return
    ends = datetime.fromtimestamp(found.ends, UTC)
    shown = f"{what}: {found.version}, certificate of {found.issuer}, until {ends:%Y-%m-%d}"
    if found.ends - time.time() < _SOON:
        yield warning(side, check, shown, "install a new certificate at that server before this one ends")
    else:
        yield ok(side, check, shown)
