"""HDFS over HTTP: small files, free space, and ``GETFILECHECKSUM``: the bytes of Hadoop's ``FileSystem.getFileChecksum``."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import count, cycle
from typing import Any, TypedDict
from urllib.parse import quote, urlencode, urljoin

import urllib3
from tenacity import stop_after_attempt, wait_random_exponential
from urllib3 import Timeout

from hive_replication import process
from hive_replication.bounded_json import parsed
from hive_replication.errors import ReplicationError
from hive_replication.logs import repeats, without_secrets
from hive_replication.policy.warehouse import Account, Tls
from hive_replication.retries import with_retries
from hive_replication.storage.bounded_body import TooLong, body_of
from hive_replication.storage.delegation import Delegation
from hive_replication.storage.file_status import FileChecksum, Space
from hive_replication.storage.webhdfs_answers import Busy, Failing, Slow, checksum_of, error_of, message, object_of
from hive_replication.storage.webhdfs_hosts import ClusterHosts
from hive_replication.storage.webhdfs_pool import MOST, TIMEOUT, addresses_of, connections, explained
from hive_replication.storage.webhdfs_requests import DataNode, Patience, Pieces

_LOG = logging.getLogger(__name__)

#: What :meth:`WebHdfs.examine` says of a NameNode.
ACTIVE, STANDBY = "active", "standby"
_REDIRECTS = 3  # one after another
_DATANODES = 5  # lost ones, until a file is given up
_ATTEMPTS = 4
_NO_TOKEN = ("InvalidToken", "Failed to obtain user group information")
_ASK_AGAIN = 50  # After so many checksums the NameNode is asked again, so that work goes to all DataNodes, new ones too.


class _Filesystem(TypedDict):
    CapacityTotal: int
    CapacityRemaining: int


class WebHdfs:
    """The WebHDFS of one cluster. Safe to use from many threads.

    ``requests`` would need three times the CPU per checksum, which is most of the CPU that copying a small file needs. So would
    asking the NameNode each time: it redirects to a DataNode, and half of the time goes there.

    Args:
        addresses: e.g. ``http://namenode:9870``; several, comma-separated, are tried in turn (standby NameNodes refuse).
        hosts: to which it may redirect besides its DataNodes.
        tls: for addresses with ``https://``.
        delegation: the token of the account, on an HDFS with Kerberos.
        account: who has it, where this process may ask for tickets: the NameNode tells its DataNodes only who has one.
    """

    def __init__(
        self,
        addresses: str,
        hosts: Iterable[str] = (),
        tls: Tls | None = None,
        delegation: Delegation | None = None,
        account: Account | None = None,
    ) -> None:
        self._addresses = addresses_of(addresses)
        self._delegation = delegation
        self._pool = connections(self._addresses, tls, account)
        self._hosts = ClusterHosts(self._pool, self._addresses, hosts)
        self._user = process.account()
        self._datanodes: dict[DataNode, None] = {}
        self._asked = count()

    def checksum(self, path: str) -> FileChecksum:
        """The checksum of a file's bytes as they lie in HDFS.

        Raises:
            FileNotFoundError: no such file (or a directory).
            PermissionError: the user may not read it.
            OSError: no answer after several attempts.
            StillOpen: the file is being written.
            ReplicationError: another answer, e.g. that blocks are lost.
        """
        addresses, patience = cycle(self._addresses), Patience(path, lambda: self.asked(path, "GETFILESTATUS", "FileStatus"))
        return with_retries(
            lambda: self._checksum_from(next(addresses), path, patience),
            lambda error: isinstance(error, Busy | Failing),
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_random_exponential(0.2, max=5),
            before_sleep=repeats(_LOG, "the checksum of %s by WebHDFS", path),
        )

    def space(self) -> Space | None:
        """Room on the cluster, from the NameNode's metrics (WebHDFS itself tells only from Hadoop 3.4 on); None where refused."""
        for address in self._addresses:
            with suppress(Busy, ReplicationError, ValueError, LookupError, TypeError):
                _, _, body = self._request("GET", f"{address}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystem")
                found: _Filesystem = parsed(body)["beans"][0]
                return Space(int(found["CapacityTotal"]), int(found["CapacityRemaining"]))
        return None

    def write(
        self,
        path: str,
        data: bytes | Iterator[bytes],
        *,
        overwrite: bool,
        block_size: int | None = None,
        replication: int | None = None,
        mode: int | None = None,
    ) -> None:
        """Writes a file; with HDFS's own block size (bytes), replication and mode where None.

        Content that is no bytes is read once, when a DataNode takes it.

        Raises:
            FileExistsError: there is one, and it is not to be replaced.
            PermissionError: the user may not write it.
            OSError: no answer.
            ReplicationError: another answer.
        """
        numbers = {name: str(value) for name, value in (("blocksize", block_size), ("replication", replication)) if value}
        # Without the second one the DataNode takes away what its own umask names.
        modes = {} if mode is None else {"permission": f"{mode:o}", "unmaskedpermission": f"{mode:o}"}
        query = _query("CREATE", overwrite=str(overwrite).lower(), **numbers, **modes)
        content, reasons = data if isinstance(data, bytes) else Pieces(data), list[str]()
        for address in self._addresses:
            try:
                status, body = self._sent(f"{address}/webhdfs/v1{quote(path)}?{self._with_account(query)}", content)
                if status == 201:
                    self._prefer(address)
                    return
                raise self._error(path, status, body)
            except Busy as error:
                if isinstance(content, Pieces) and content.begun:
                    raise
                reasons.append(f"{address} takes no files: {error}")
        raise Busy("; ".join(reasons))

    def examine(self) -> dict[str, str]:
        """Asks each NameNode for the status of the root directory; whoever answers something else is no WebHDFS.

        Returns:
            By address ``active``, ``standby`` or why it does not answer.

        Raises:
            PermissionError: the user may not ask.
            OSError: none is active.
            ReplicationError: another answer.
        """
        busy, found = Busy("it has no address"), dict[str, str]()
        for address in self._addresses:
            try:
                status, _, body = self._request("GET", f"{address}/webhdfs/v1/?{self._with_account(_query('GETFILESTATUS'))}")
                object_of("/", self._required("/", status, body), "FileStatus")
                found[address] = ACTIVE
            except Busy as error:
                busy = error
                found[address] = STANDBY if "StandbyException" in str(error) else str(error)
        if ACTIVE not in found.values():
            raise busy
        return found

    def asked(self, path: str, op: str, name: str, **parameters: str) -> Mapping[str, Any]:
        """What the NameNode tells of a path.

        Args:
            path: absolute.
            op: of WebHDFS, e.g. ``GETQUOTAUSAGE``.
            name: of the object in the answer.
            parameters: of the operation.

        Raises:
            FileNotFoundError: there is no such path.
            PermissionError: the user may not ask.
            OSError: no NameNode answers.
            ReplicationError: another answer, e.g. that this HDFS does not know the operation.
        """
        return object_of(path, self.told(path, op, parameters), name)

    def told(
        self, path: str, op: str, parameters: Mapping[str, str] | None = None, *, method: str = "GET", most: int = MOST
    ) -> bytes:
        """The body of what the NameNode answers to an operation, at most so many bytes; raises as :meth:`asked`."""
        busy = Busy("it has no address")
        for address in self._addresses:
            try:
                query = self._with_account(_query(op, **(parameters or {})))
                status, _, body = self._request(method, f"{address}/webhdfs/v1{quote(path)}?{query}", most)
                return self._required(path, status, body)
            except Busy as error:
                busy = error
        raise busy

    def live_datanodes(self) -> tuple[str, ...]:
        """HTTP addresses of the live DataNodes, as the NameNodes list them."""
        return self._hosts.live()

    def _with_account(self, query: str) -> str:
        """A query with who asks: by the token, or by the name that is believed without Kerberos."""
        if self._delegation:
            return f"{query}&delegation={self._delegation.text()}"
        return f"{query}&user.name={quote(self._user, safe='')}"

    def _prefer(self, address: str) -> None:
        """The NameNode that has answered is active: it is asked first from now on."""
        if self._addresses[0] != address:
            self._addresses = [address, *(other for other in self._addresses if other != address)]

    def _sent(self, url: str, data: bytes | Pieces) -> tuple[int, bytes]:
        """Status and body of what a DataNode, or who needs none, answers to a new file.

        For ten minutes after the end of a DataNode the NameNode still redirects to it: it is asked for another one.
        """
        lost: list[str] = []
        while True:
            sent = self._exchanged("PUT", f"{url}&excludedatanodes={','.join(lost)}" if lost else url)
            if sent.status != 307:
                return sent.status, self._body(sent)
            place = sent.headers.get("Location", "")
            self._body(sent)
            self._require(place)
            try:
                sent = self._exchanged("PUT", place, data)
                return sent.status, self._body(sent)
            except Busy as error:
                other = self._hosts.transfer_address(place)
                if (isinstance(data, Pieces) and data.begun) or len(lost) == _DATANODES or other is None or other in lost:
                    raise
                _LOG.debug("the DataNode %s does not take a file, another one is asked for: %s", other, error)
                lost.append(other)

    def _request(self, method: str, url: str, most: int = MOST, timeout: Timeout | None = None) -> tuple[int, str, bytes]:
        """Status, final URL and body; follows redirects within the cluster.

        Raises:
            Busy: no answer.
            ReplicationError: it leads out of the cluster, or has no end.
        """
        for _ in range(_REDIRECTS + 1):
            response = self._exchanged(method, url, timeout=timeout)
            body = self._body(response, most)
            if response.status not in (301, 302, 303, 307, 308):
                return response.status, url, body
            url = urljoin(url, response.headers.get("Location", ""))
            self._require(url)
        raise ReplicationError(f"WebHDFS redirects more than {_REDIRECTS} times: {without_secrets(url)}")

    def _require(self, url: str) -> None:
        try:
            self._hosts.require(url)
        except OSError as error:
            raise Busy(str(error)) from error

    def _exchanged(
        self, method: str, url: str, data: bytes | Pieces | None = None, timeout: Timeout | None = None, *, again: bool = True
    ) -> urllib3.BaseHTTPResponse:
        try:
            return self._pool.request(method, url, body=data, redirect=False, preload_content=False, timeout=timeout or TIMEOUT)
        except urllib3.exceptions.HTTPError as error:
            reason = getattr(error, "reason", error)
            if method == "GET" and again and isinstance(reason, urllib3.exceptions.ProtocolError):
                return self._exchanged(method, url, timeout=timeout, again=False)  # a server closed what lay idle just now
            kind = Slow if isinstance(reason, urllib3.exceptions.ReadTimeoutError) else Busy
            # Without its cause: Dagster stores an error with all that it came from, and this one tells the whole URL.
            raise explained(url, error) or kind(f"no answer from WebHDFS: {without_secrets(str(error))}") from None

    def _body(self, response: urllib3.BaseHTTPResponse, most: int = MOST) -> bytes:
        try:
            return body_of(response, most)
        except TooLong as error:
            raise ReplicationError(f"no WebHDFS answers at {', '.join(self._addresses)}: {error}") from error
        except urllib3.exceptions.HTTPError as error:
            raise Busy(f"no whole answer from WebHDFS: {without_secrets(str(error))}") from None

    def _checksum_from(self, address: str, path: str, patience: Patience) -> FileChecksum:
        known, number = list(self._datanodes), next(self._asked)
        datanode = known[number % len(known)] if known and number % _ASK_AGAIN else None
        try:
            if datanode:
                query = self._with_account(datanode.query) if self._delegation else datanode.query
                return self._asked_for(path, datanode.address, query, patience)
            found = self._asked_for(path, address, self._with_account(_query("GETFILECHECKSUM")), patience)
        except (Busy, Failing) as error:
            if datanode:
                _LOG.debug("the DataNode %s is not asked for checksums any more", datanode.address)
                self._datanodes.pop(datanode, None)  # the next attempt asks another one, or the NameNode
            patience.after(error)
            raise
        self._prefer(address)
        return found

    def _asked_for(self, path: str, address: str, query: str, patience: Patience) -> FileChecksum:
        status, url, body = self._request("GET", f"{address}/webhdfs/v1{quote(path)}?{query}", timeout=patience.timeout)
        found = checksum_of(path, self._required(path, status, body))
        if datanode := DataNode.of(url):
            self._datanodes[datanode] = None
        return found

    def _required(self, path: str, status: int, body: bytes) -> bytes:
        if status != 200:
            raise self._error(path, status, body)
        return body

    def _error(self, path: str, status: int, body: bytes) -> Exception:
        """What a refusal means; a token that is not taken any more is given up, so that the next attempt has another."""
        text = body.decode(errors="replace")
        if self._delegation and any(sign in text for sign in _NO_TOKEN):
            self._delegation.refused(self._delegation.text())
            return Busy(f"WebHDFS does not take the delegation token: {message(text) or text[:300]}")
        if status == 401 and not self._delegation:
            return PermissionError(errno.EACCES, "WebHDFS asks for Kerberos: set kerberos of this side in the policy", path)
        return error_of(path, status, text)


def _query(op: str, **parameters: str) -> str:
    return urlencode({"op": op, **parameters})
