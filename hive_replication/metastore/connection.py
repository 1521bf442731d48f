"""Connections to a metastore: a limited number, opened when needed, repeated calls where a repeat is safe."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TypeVar

from hive_metastore.ThriftHiveMetastore import Client
from tenacity import Retrying, retry_if_exception, stop_after_attempt, stop_after_delay, wait_exponential, wait_random
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TTransport import TTransportBase, TTransportException

from hive_replication.errors import Unreachable
from hive_replication.logs import repeats
from hive_replication.metastore.faults import MetastoreError, from_thrift, is_transient
from hive_replication.metastore.transport import NO_LIMIT, Access, addresses, explained, link
from hive_replication.policy.addresses import Address

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

CALL_TIMEOUT = 600.0  # seconds
CALL_ATTEMPTS = 8
CONNECT_TIMEOUT = 10.0  # seconds; a call may take long, its connection may not
_ASSURED = 3  # times that a change is asked for which the metastore says is made, and which is not there


class _Lost(Exception):
    """A call did not get through, or its answer did not; ``again`` tells whether it may be repeated."""

    def __init__(self, again: bool):
        super().__init__()
        self.again = again


class _Connection:
    """An open connection; it closes when nobody has it any more or its owner closes it."""

    def __init__(self, transport: TTransportBase):
        self.transport = transport
        self.client = Client(TBinaryProtocolAccelerated(transport, string_length_limit=NO_LIMIT))
        self.close = weakref.finalize(self, transport.close)


class Connections:
    """Makes calls to one metastore, or to several that share one database.

    Args:
        uri: ``thrift://host:port``, or several joined by commas; the first that answers is used. Hive 4 over HTTP:
            ``https://host:port/metastore``.
        access: how they are secured, and as whom.
        timeout: seconds to wait for the answer of one call.
        retries: attempts of one call in all, with growing delays of 0.2 s to 10 s between them, within twice the timeout.
        connections: the most that there are: a metastore keeps a thread for each.
    """

    def __init__(
        self,
        uri: str,
        access: Access = Access(),
        *,
        timeout: float = CALL_TIMEOUT,
        retries: int = CALL_ATTEMPTS,
        connections: int = 64,
    ):
        self.uri = uri
        self._addresses: Sequence[Address] = addresses(uri)
        self.access = access
        self._timeout = timeout
        self._retries = retries
        self._slots = threading.BoundedSemaphore(connections)
        self._idle: list[_Connection] = []  # the last one used is the next one
        self._open: weakref.WeakSet[_Connection] = weakref.WeakSet()
        self._guard = threading.Lock()

    def close(self) -> None:
        """Closes all connections. A later call opens a new one."""
        with self._guard:
            connections, self._open, self._idle = list(self._open), weakref.WeakSet(), []
        for connection in connections:
            connection.close()

    def call(self, what: str, do: Callable[[Client], T], *, repeatable: bool = True) -> T:
        """Makes a call; repeats it after transient errors.

        Args:
            what: the call and its object for error messages, e.g. ``get_table sales.orders``.
            do: the call.
            repeatable: whether it may be made again when the connection is lost after sending. One that was certainly
                not sent is always repeated.

        Raises:
            Unreachable: no answer after all attempts, or at once where none helps; NotTrusted where TLS is the reason.
            MetastoreError: the metastore refused the call.
        """
        attempts = Retrying(
            stop=stop_after_attempt(self._retries) | stop_after_delay(2 * self._timeout),
            wait=wait_exponential(multiplier=0.2, max=10) + wait_random(0, 0.2),
            retry=retry_if_exception(lambda error: isinstance(error, _Lost) and error.again),
            before_sleep=repeats(_LOG, "%s at %s", what, self.uri),
            reraise=True,
        )
        try:
            return attempts(self._attempt, what, do, repeatable)
        except _Lost as lost:
            if isinstance(lost.__cause__, Unreachable):
                raise type(lost.__cause__)(f"{what} at {self.uri}: {lost.__cause__}") from lost.__cause__
            if isinstance(lost.__cause__, TApplicationException):  # it does answer
                raise from_thrift(what, self.uri, lost.__cause__) from lost.__cause__
            advice = "check that the metastore runs and that this machine can reach it"
            if not lost.again:
                advice = "the connection was lost during the call, which may have been carried out: look before repeating it"
            raise Unreachable(f"{what} at {self.uri}: {lost.__cause__}; {advice}") from lost.__cause__

    def write(
        self,
        what: str,
        do: Callable[[Client], object],
        *,
        done: Callable[[], bool],
        made: Callable[[], bool] | None = None,
    ) -> None:
        """Makes a call that changes something, once, and looks whether it is made.

        A repeat that is refused is fine if the first attempt had been carried out. Nor does a good answer say that it was: a
        metastore whose own database takes back the transaction (it lost a deadlock, or waited too long for the lock of the
        notification log) may roll all of it back, log that, and answer well (``ObjectStore.addNotificationEvent`` of 3.1.3).

        Args:
            what: as for :meth:`call`.
            do: the call.
            done: looks whether the state is as the call makes it.
            made: asked instead after a good answer, where somebody else cannot have done it.

        Raises:
            Unreachable: no answer after all attempts.
            MetastoreError: the metastore refused the call, or says each time that it is done, and it is not.
        """
        sent = 0

        def once(client: Client) -> None:
            nonlocal sent
            sent += 1
            do(client)

        for _ in range(_ASSURED):
            try:
                self.call(what, once)
            except MetastoreError:
                if sent < 2 or not done():
                    raise
                _LOG.info("%s at %s: carried out by an attempt whose answer was lost", what, self.uri)
                return
            if (made or done)():
                return
            _LOG.warning("%s at %s: answered as done, and it is not: the call is made again", what, self.uri)
        raise MetastoreError(
            f"{what} at {self.uri}: the metastore answers that it is done, and it is not: look into the metastore's log for a "
            "transaction that its database took back"
        )

    def _attempt(self, what: str, do: Callable[[Client], T], repeatable: bool) -> T:
        with self._slots:
            connection = self._connection()
            try:
                return self._answer(connection, what, do, repeatable)
            finally:
                if connection.close.alive:
                    with self._guard:
                        self._idle.append(connection)

    def _answer(self, connection: _Connection, what: str, do: Callable[[Client], T], repeatable: bool) -> T:
        try:
            return do(connection.client)
        except (TTransportException, TProtocolException, OSError, EOFError) as error:
            with self._guard:  # a server that went away took the idle ones with it: the next attempt needs a new one
                lost, self._idle = [connection, *self._idle], []
            _LOG.debug("%s at %s: %d connections are closed: %s", what, self.uri, len(lost), error)
            for one in lost:
                one.close()
            raise _Lost(again=repeatable) from error
        except TException as fault:
            if is_transient(fault):
                raise _Lost(again=repeatable) from fault
            raise from_thrift(what, self.uri, fault) from fault
        except BaseException:
            connection.close()  # interrupted half way: what comes next on this connection belongs to another call
            raise

    def _connection(self) -> _Connection:
        with self._guard:
            while self._idle:
                connection = self._idle.pop()
                if connection.close.alive and connection.transport.isOpen():
                    return connection
        connection = self._connect()
        with self._guard:
            self._open.add(connection)
        return connection

    def _connect(self) -> _Connection:
        problem: Exception | None = None
        for address in self._addresses:
            transport, limit = link(address, self.access)
            limit(min(CONNECT_TIMEOUT, self._timeout))
            connection = _Connection(transport)
            try:
                transport.open()
                if not (self.access.kerberos or address.path):
                    connection.client.set_ugi(self.access.acting_user, [])
                limit(self._timeout)
                _LOG.debug("connected to the metastore %s", address)
                return connection
            except (TException, OSError, EOFError, UnicodeError) as error:  # the last of a name that idna does not take
                connection.close()
                if len(self._addresses) > 1:
                    _LOG.info("the metastore %s does not answer; the next address is tried: %s", address, error)
                problem = explained(address, self.access, error, self._timeout) or error
        raise _Lost(again=not isinstance(problem, Unreachable)) from problem
