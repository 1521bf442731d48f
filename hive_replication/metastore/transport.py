"""How a connection to a metastore is made and secured: where it leads, by which transport, with which TLS, as whom."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportBase, TTransportException

from hive_replication.errors import BadRequest, ReplicationError, Unreachable
from hive_replication.kerberos import tickets
from hive_replication.metastore.faults import from_thrift, is_transient
from hive_replication.metastore.http_transport import HttpTransport
from hive_replication.metastore.sasl import SaslTransport
from hive_replication.policy.addresses import Address, metastore_addresses
from hive_replication.policy.warehouse import Kerberos, Tls, Warehouse
from hive_replication.process import account
from hive_replication.tls import NotTrusted, context, not_trusted, speaks_tls

#: Thrift's own limit of 16 MB a string is less than the message of one large ADD_PARTITION.
NO_LIMIT = 2**31 - 1


def addresses(uri: str) -> tuple[Address, ...]:
    """Those of a metastore; see :func:`~hive_replication.policy.addresses.metastore_addresses`.

    Raises:
        BadRequest: a part is not such an address.
    """
    try:
        return metastore_addresses(uri)
    except ValueError as error:
        raise BadRequest(str(error)) from error


@dataclass(frozen=True)
class Access:
    """How to speak to a metastore.

    Args:
        use_ssl: ``thrift://`` is spoken over TLS (Hive's ``metastore.use.SSL``).
        tls: certificate authorities and client certificate, for this and for ``https://``.
        user: sent to an unsecured metastore (``set_ugi``), which then acts as this user, as for Hive's clients
            (``hive.metastore.execute.setugi``); None: this process's account.
        kerberos: the account of the policy; None: the metastore is asked without SASL.
    """

    use_ssl: bool = False
    tls: Tls | None = None
    user: str | None = None
    kerberos: Kerberos | None = None

    @classmethod
    def of(cls, side: Warehouse) -> Access:
        """As a side of the policy says."""
        return cls(use_ssl=side.metastore_ssl, tls=side.tls, kerberos=side.kerberos)

    @property
    def acting_user(self) -> str:
        """As whom a metastore without Kerberos acts."""
        return self.user or account()

    @property
    def known_as(self) -> str:
        """How the metastore calls the account that asks; without a principal in the policy its ticket's, where there is one."""
        if not self.kerberos:
            return self.acting_user
        principal = self.kerberos.principal
        with suppress(ReplicationError):
            principal = principal or tickets.ticket(self.kerberos)[0]
        return (principal or "of the ticket").partition("@")[0].partition("/")[0]  # as by Hadoop's rules, unless there are others

    @cached_property
    def trusted(self) -> ssl.SSLContext:
        """Made once: the system's certificate authorities take long to read."""
        return context(self.tls)


class Link(NamedTuple):
    """A transport, not open yet, and what sets the seconds that it waits."""

    transport: TTransportBase
    limit: Callable[[float], None]


def link(address: Address, access: Access) -> Link:
    """What connects to an address.

    Raises:
        BadRequest: a file of ``tls`` cannot be used, or Kerberos is asked for over HTTP.
    """
    if address.path and access.kerberos:
        raise BadRequest(f"{address} cannot be asked by Kerberos: name the metastore by thrift:// in the policy")
    if address.path:
        http = HttpTransport(str(address), access.trusted if address.scheme == "https" else None, access.acting_user)
        return Link(http, http.limit)
    if access.use_ssl:
        socket: TSocket = _TlsSocket(address.host, address.port, access.trusted)
    else:
        socket = TSocket(address.host, address.port, socket_keepalive=True)
    transport: TTransportBase = TBufferedTransport(socket, rbuf_size=64 * 1024)
    if access.kerberos:
        principal = tickets.host_principal(access.kerberos.metastore_principal, address.host)
        transport = SaslTransport(socket, access.kerberos, principal)

    def limit(seconds: float) -> None:
        socket.setTimeout(seconds * 1000)

    return Link(transport, limit)


def explained(address: Address, access: Access, error: Exception, timeout: float) -> Unreachable | None:
    """What no repeat helps against of a connection that failed: its TLS, or that nobody is there who takes the account.

    Args:
        address: of the metastore.
        access: how it was asked.
        error: what the connection failed with.
        timeout: seconds for which a second look may take.
    """
    server = f"{address.host}:{address.port}"
    if isinstance(error, UnicodeError):
        return Unreachable(f"{address} names no host that can be looked up ({error}): correct metastore in the policy")
    if isinstance(error, TException) and not isinstance(error, (TTransportException, TProtocolException)):
        return None if is_transient(error) else _refusal(address, access, error)
    plain = "set metastore_ssl: false in the policy" if not address.path else "write http:// for metastore in the policy"
    if found := not_trusted(error, server, plain):
        return found
    secured = access.use_ssl or address.scheme == "https"
    if isinstance(error, TTransportException) and error.type == TTransportException.NOT_OPEN and not access.kerberos:
        return None  # nobody listens: a second look would only wait once more
    if not secured and speaks_tls(address.host, address.port, timeout):
        change = "write https:// for metastore" if address.path else "set metastore_ssl: true"
        return NotTrusted(f"{server} speaks TLS, and the policy does not: {change} for this side of the policy")
    return None


def _refusal(address: Address, access: Access, answer: TException) -> Unreachable:
    """What a server answered when it was told the account (``set_ugi``), which every metastore takes."""
    if isinstance(answer, TApplicationException) and answer.type != TApplicationException.INTERNAL_ERROR:
        advice = "check metastore in the policy (HiveServer2 listens at another port)"
        return Unreachable(f"{address} speaks Thrift and is no metastore: {advice}")
    return Unreachable(
        f"{address} does not take the account {access.acting_user}: {from_thrift('set_ugi', str(address), answer)}"
    )


class _TlsSocket(TSocket):
    """Thrift's own socket for TLS hides why a certificate is refused, and waits for the other side when it closes."""

    def __init__(self, host: str, port: int, trusted: ssl.SSLContext) -> None:
        super().__init__(host, port, socket_keepalive=True)
        self._host, self._trusted = host, trusted

    def open(self) -> None:
        """Connects, and verifies the certificate with the host's name."""
        super().open()
        try:
            self.handle = self._trusted.wrap_socket(self.handle, server_hostname=self._host)
        except OSError as error:
            self.close()
            advice = "if it does not speak TLS, set metastore_ssl: false in the policy"
            raise TTransportException(message=f"TLS's handshake failed ({error}): {advice}", inner=error) from error

    def write(self, buff: bytes) -> None:
        """Sends; a server that misses a client certificate says so after the handshake, and may be gone before the first call."""
        try:
            super().write(buff)
        except TTransportException as error:
            if isinstance(getattr(error, "inner", None), ssl.SSLEOFError | ConnectionError) and (said := self._last_alert()):
                raise TTransportException(message=str(said), inner=said) from error
            raise

    def _last_alert(self) -> ssl.SSLError | None:
        try:
            self.handle.recv(1)
        except OSError as said:
            return said if isinstance(said, ssl.SSLError) and not isinstance(said, ssl.SSLEOFError) else None
        return None
