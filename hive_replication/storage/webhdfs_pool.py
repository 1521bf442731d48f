"""HTTP connections to the NameNodes and DataNodes of a cluster: bounded, by TLS, and by Kerberos where a NameNode asks for it."""

from __future__ import annotations

import base64
import logging
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import urllib3

from hive_replication.bounded_json import parsed
from hive_replication.errors import ReplicationError
from hive_replication.kerberos import tickets
from hive_replication.logs import without_secrets
from hive_replication.policy import Root
from hive_replication.policy.warehouse import Account, Tls
from hive_replication.storage.bounded_body import TooLong, body_of
from hive_replication.tls import NotTrusted, context, not_trusted, speaks_tls

_HOSTS = 1024  # The NameNode redirects to any DataNode; connections to so many are kept.
_CONNECTIONS = 32  # To one host, at once: enough to keep it busy.
#: Seconds of a request, and bytes of its answer.
TIMEOUT, MOST = urllib3.Timeout(connect=5, read=60), 1 << 20
_RETRIES = urllib3.Retry(connect=0, read=0, other=0, redirect=0, raise_on_redirect=False)
_SETTING = "webhdfs in the policy, whose host the principal of dfs.web.authentication.kerberos.principal is named after"


def _shown(record: logging.LogRecord) -> bool:
    record.msg, record.args = without_secrets(record.getMessage()), ()
    return True


logging.getLogger("urllib3.connectionpool").addFilter(_shown)  # it logs URLs, and a token in one is as good as the account


def addresses_of(webhdfs: str) -> list[str]:
    """Addresses of NameNodes, as the policy joins them by commas; schemes in lower case: they tell what is encrypted."""
    parts = (address.strip().rstrip("/").partition(":") for address in webhdfs.split(","))
    return [f"{scheme.lower()}{colon}{rest}" for scheme, colon, rest in parts]


def connections(addresses: list[str], tls: Tls | None, account: Account | None) -> urllib3.PoolManager:
    """Connections to a cluster.

    Args:
        addresses: of the NameNodes.
        tls: for addresses with ``https://``.
        account: who proves who it is where a NameNode asks for a ticket; None: nobody does.
    """
    trusted = context(tls) if any(address.startswith("https:") for address in addresses) else None
    settings: dict[str, Any] = {"maxsize": _CONNECTIONS, "block": True, "timeout": TIMEOUT, "retries": _RETRIES}
    if account is None:
        return urllib3.PoolManager(_HOSTS, ssl_context=trusted, **settings)
    return _Negotiating(account, addresses, _HOSTS, ssl_context=trusted, **settings)


class _Negotiating(urllib3.PoolManager):
    """Answers a NameNode of the policy that asks for a ticket with one (SPNEGO, RFC 4559), and nobody else."""

    def __init__(self, account: Account, addresses: list[str], *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._account = account
        self._known = {urlsplit(address).netloc for address in addresses}

    def request(self, method: str, url: str, *args: Any, **arguments: Any) -> urllib3.BaseHTTPResponse:
        """Makes a request, and again with a ticket where it is answered with 401.

        Raises:
            BadRequest: the extra kerberos is not installed.
            Unreachable: there is no ticket.
            ReplicationError: the server does not prove who it is.
        """
        response = super().request(method, url, *args, **arguments)
        asked = urlsplit(url)
        if response.status != 401 or asked.netloc not in self._known or not asked.hostname:
            return response
        response.drain_conn()
        service = f"HTTP@{tickets.host_name(asked.hostname)}"
        context = tickets.context(self._account, service, _SETTING, spnego=True)
        with tickets.told(self._account, service, _SETTING):
            ticket = base64.b64encode(context.step() or b"").decode()
            arguments["headers"] = {**(arguments.get("headers") or {}), "Authorization": f"Negotiate {ticket}"}
            response = super().request(method, url, *args, **arguments)
            kind, _, proof = response.headers.get("WWW-Authenticate", "").partition(" ")
            if response.status != 401 and kind == "Negotiate" and proof:
                with suppress(ValueError):  # no Base64: it proves nothing
                    context.step(base64.b64decode(proof))
        if response.status != 401 and not context.complete:
            raise ReplicationError(f"{asked.netloc} takes a ticket and does not prove who it is: check webhdfs in the policy")
        return response


def namenode_setting(root: Root, name: str) -> str | None:
    """A setting of a NameNode's configuration; None where it is not set, or no NameNode tells it to this account."""
    for address in addresses_of(root.webhdfs or ""):
        pool = connections([address], root.tls, root.kerberos)
        try:
            headers = {"Accept": "application/json"}
            response = pool.request("GET", f"{address}/conf?name={name}", headers=headers, redirect=False, preload_content=False)
            found = parsed(body_of(response, MOST))["property"]["value"]
            return str(found) if response.status == 200 and found else None
        except (urllib3.exceptions.HTTPError, TooLong, ReplicationError, ValueError, LookupError, TypeError):
            continue
    return None


def explained(url: str, error: Exception) -> NotTrusted | None:
    """What is wrong with TLS where a request got no answer; None where it is something else."""
    parts = urlsplit(url)
    server, host, port = parts.netloc, parts.hostname or "", parts.port
    if found := not_trusted(error, server, "write http:// for webhdfs of the storage root in the policy"):
        return found
    if parts.scheme == "http" and port and speaks_tls(host, port):
        return NotTrusted(f"{server} speaks TLS: write https:// for webhdfs of the storage root in the policy")
    return None
