"""Thrift over SASL with Kerberos, as a metastore with ``hive.metastore.sasl.enabled`` speaks it.

The messages are those of ``TSaslTransport`` of Thrift; the mechanism is GSSAPI (RFC 4752). Thrift's own ``TSaslClientTransport``
knows neither keytabs nor two accounts in one process.
"""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING

from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import CReadableTransport, TTransportBase, TTransportException

from hive_replication.kerberos import tickets
from hive_replication.policy.warehouse import Kerberos

if TYPE_CHECKING:
    import gssapi

_SETTING = "metastore_principal in the policy"
_START, _OK, _BAD, _ERROR, _COMPLETE = 1, 2, 3, 4, 5
_HEADER = struct.Struct(">BI")
_LENGTH = struct.Struct(">I")
_MOST = 1 << 20  # bytes of a message before the connection is secured
_LAYERS = (4, 2, 1)  # RFC 4752: privacy, integrity, none; the strongest that the server offers is taken
_BUFFER = 0xFFFFFF  # bytes of a message that this side takes: the most that the RFC can say


class SaslTransport(TTransportBase, CReadableTransport):
    """A connection on which the account has proven who it is, and the server too.

    Args:
        socket: to the metastore.
        account: of the policy.
        principal: of the metastore, with its host's name.
    """

    def __init__(self, socket: TSocket, account: Kerberos, principal: str) -> None:
        self._socket, self._account, self._principal = socket, account, principal
        self._context: gssapi.SecurityContext | None = None
        self._layer = 0
        self._read, self._written = io.BytesIO(), io.BytesIO()

    def isOpen(self) -> bool:  # noqa: N802
        """Whether it is connected."""
        return self._socket.isOpen()

    def open(self) -> None:
        """Connects and proves who both sides are, with a ticket that is good now.

        Raises:
            BadRequest: the extra kerberos is not installed.
            Unreachable: there is no ticket, or the metastore does not take it.
            TTransportException: the connection broke, or was not made.
        """
        context = tickets.context(self._account, self._principal, _SETTING)
        if not self._socket.isOpen():
            self._socket.open()
        try:
            self._negotiate(context)
        except BaseException:
            self._socket.close()
            raise
        self._context = context

    def close(self) -> None:
        """Disconnects."""
        self._socket.close()

    def read(self, sz: int) -> bytes:
        """At most so many bytes."""
        data = self._read.read(sz)
        if data or not sz:
            return data
        self._read = io.BytesIO(self._frame())
        return self._read.read(sz)

    def write(self, buf: bytes) -> None:
        """Keeps bytes until they are sent."""
        self._written.write(buf)

    def flush(self) -> None:
        """Sends what was written, in one frame."""
        data, self._written = self._written.getvalue(), io.BytesIO()
        if self._layer > 1 and self._context:
            data = self._context.wrap(data, self._layer == _LAYERS[0]).message
        self._socket.write(_LENGTH.pack(len(data)) + data)
        self._socket.flush()

    @property
    def cstringio_buf(self) -> io.BytesIO:
        """What is read and not used yet: Thrift's accelerated protocol reads there."""
        return self._read

    def cstringio_refill(self, partialread: bytes, reqlen: int) -> io.BytesIO:
        """What was used of the last frame too early, and the next frames, until there is enough."""
        while len(partialread) < reqlen:
            partialread += self._frame()
        self._read = io.BytesIO(partialread)
        return self._read

    def _frame(self) -> bytes:
        data = self._exactly(_LENGTH.unpack(self._exactly(_LENGTH.size))[0])
        return self._context.unwrap(data).message if self._layer > 1 and self._context else data

    def _negotiate(self, context: gssapi.SecurityContext) -> None:
        self._send(_START, b"GSSAPI")
        with tickets.told(self._account, self._principal, _SETTING):
            self._send(_OK, context.step() or b"")
            while not context.complete:
                self._send(_OK, context.step(self._received()) or b"")
            offered = context.unwrap(self._received()).message
            self._layer = next((layer for layer in _LAYERS if offered[0] & layer), 1)
            # No name to act for follows: the account acts as itself.
            self._send(_OK, context.wrap(struct.pack(">I", self._layer << 24 | _BUFFER), False).message)
        self._received()

    def _send(self, status: int, payload: bytes) -> None:
        self._socket.write(_HEADER.pack(status, len(payload)) + payload)
        self._socket.flush()

    def _received(self) -> bytes:
        status, size = _HEADER.unpack(self._exactly(_HEADER.size))
        if size > _MOST or status not in (_OK, _COMPLETE, _BAD, _ERROR):
            raise TTransportException(
                TTransportException.NOT_OPEN, "no SASL is spoken there: check hive.metastore.sasl.enabled of the metastore"
            )
        payload = self._exactly(size)
        if status in (_BAD, _ERROR):
            words = payload.decode(errors="replace")
            raise TTransportException(
                TTransportException.NOT_OPEN,
                f"the metastore refused the ticket ({words}), as it does of another service or by other clocks",
            )
        return payload

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.read(size - len(data))
            if not piece:
                raise TTransportException(TTransportException.END_OF_FILE, "the metastore closed the connection")
            data += piece
        return bytes(data)
