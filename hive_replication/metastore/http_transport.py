"""Thrift over HTTP, as Hive 4's metastore speaks it (``metastore.server.thrift.transport.mode=http``).

Thrift's own client for HTTP opens a connection for each call; with TLS that would be most of a call's time.
"""

from __future__ import annotations

import io
import ssl

import urllib3
from thrift.transport.TTransport import TTransportBase, TTransportException

_TEXT = 200  # characters of an answer that are shown


class HttpTransport(TTransportBase):
    """One connection, kept open: each flush is one request.

    Args:
        url: of the metastore, with its path.
        trusted: for ``https://``.
        user: as whom. Hive expects it in ``x-actor-username``.
    """

    def __init__(self, url: str, trusted: ssl.SSLContext | None, user: str) -> None:
        self._url, self._timeout = url, 600.0
        self._pool = urllib3.PoolManager(1, maxsize=1, retries=False, ssl_context=trusted)
        self._headers = {
            "Content-Type": "application/x-thrift",
            "Accept": "application/x-thrift",
            "x-actor-username": user,
        }
        self._request, self._answer = io.BytesIO(), io.BytesIO()
        self._open = False

    def limit(self, seconds: float) -> None:
        """Sets how long an answer may take."""
        self._timeout = seconds

    def open(self) -> None:
        """Connects and makes TLS's handshake, so that an address that is down is left for the next one.

        Raises:
            TTransportException: nobody answers.
        """
        try:
            self._pool.request("HEAD", self._url, timeout=self._timeout, headers=self._headers, redirect=False)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise TTransportException(message=str(error), inner=error) from error
        self._open = True

    def isOpen(self) -> bool:  # noqa: N802 (Thrift's name)
        """Whether calls can be made."""
        return self._open

    def close(self) -> None:
        """Ends the connection."""
        self._open = False
        self._pool.clear()

    def read(self, sz: int) -> bytes:
        """A part of the answer."""
        return self._answer.read(sz)

    def write(self, buf: bytes) -> None:
        """A part of the call."""
        self._request.write(buf)

    def flush(self) -> None:
        """Sends the call and reads the whole answer.

        Raises:
            TTransportException: there is none, or another one than the metastore's.
        """
        call, self._request = self._request.getvalue(), io.BytesIO()
        try:
            # No redirect is followed: it could lead anywhere, also down to plain HTTP.
            answer = self._pool.request(
                "POST", self._url, body=call, headers=self._headers, timeout=self._timeout, redirect=False
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise TTransportException(message=str(error), inner=error) from error
        if answer.status != 200:
            text = " ".join(answer.data[:_TEXT].decode(errors="replace").split())
            raise TTransportException(message=f"HTTP status {answer.status} instead of a metastore's answer: {text}")
        self._answer = io.BytesIO(answer.data)

    # TBinaryProtocolAccelerated reads from these.
    @property
    def cstringio_buf(self) -> io.BytesIO:
        """What the accelerated protocol reads."""
        return self._answer

    def cstringio_refill(self, partialread: bytes, reqlen: int) -> io.BytesIO:
        """Called where the answer is shorter than it says: it was read whole."""
        raise EOFError(f"the metastore's answer ends {reqlen - len(partialread)} bytes too early")
