"""HDFS's delegation tokens: had over WebHDFS with a ticket, and then used for all calls, of WebHDFS and of ``hdfs-native``.

``hdfs-native`` knows one ticket cache in a process, and tokens of any number of accounts (see ``token_file``). Executors of Spark
get a token, and neither a ticket nor a keytab.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import urllib3

from hive_replication.bounded_json import parsed
from hive_replication.errors import BadRequest, ReplicationError, Unreachable
from hive_replication.logs import without_secrets
from hive_replication.policy import Root
from hive_replication.policy.warehouse import Account
from hive_replication.storage.bounded_body import TooLong, body_of
from hive_replication.storage.token_file import FILE, times
from hive_replication.storage.webhdfs_answers import is_of_gateway
from hive_replication.storage.webhdfs_pool import addresses_of, connections, explained

_LOG = logging.getLogger(__name__)

_MOST = 1 << 20  # bytes of an answer
_AGAIN = 5.0  # seconds between two attempts to keep a token that is good
_ROUNDS = 3  # how often all NameNodes are asked for a token at least, a second after another
_PASSING = ("StandbyException", "RetriableException", "SafeModeException")


@dataclass(frozen=True, slots=True)
class Grant:
    """What another process needs to use an HDFS as the account of this one.

    Args:
        token: as WebHDFS writes it.
        hosts: DataNodes' HTTP addresses: the NameNode tells them only who has a ticket.
    """

    token: str = field(repr=False)
    hosts: tuple[str, ...]


#: By store, e.g. ``hdfs://namenode:8020``.
Grants = Mapping[str, Grant | None]


@dataclass(frozen=True, slots=True)
class Token:
    """A delegation token of this process; times are in seconds since 1970.

    Args:
        text: as WebHDFS writes it.
        renewed: when half of the time until it expires is over: then it is renewed.
        replaced: when half of its whole life is over: then there is another one.
        expires: the NameNode takes it no longer, unless it is renewed.
    """

    text: str = field(repr=False)
    renewed: float
    replaced: float
    expires: float


class Delegation:
    """The token of one account at one HDFS, which a thread renews and replaces in time. Threads may share it.

    Args:
        root: with the account, and the addresses of WebHDFS.
        service: see :meth:`.token_file.TokenFile.put`.
        given: a token from another process, which keeps it; no ticket is needed then.
    """

    def __init__(self, root: Root, service: str, given: str | None = None) -> None:
        self._addresses, self._service, self._given = addresses_of(root.webhdfs or ""), service, given
        self.account = root.kerberos or Account()
        self._pool = connections(self._addresses, root.tls, None if given else root.kerberos)
        self._rounds = max(_ROUNDS, round(root.patience))
        self._token: Token | None = None
        self._keeps = False
        self._lock = threading.RLock()
        if given:
            FILE.put(service, given)

    def text(self) -> str:
        """The token; ``hdfs-native`` finds it from now on.

        Raises:
            BadRequest: the extra kerberos is not installed.
            Unreachable: there is no ticket, or no NameNode answers.
            ReplicationError: the NameNode gives no token out.
        """
        if self._given:
            return self._given
        token = self._token  # without waiting for a renewal
        if token and time.time() < token.expires:
            return token.text
        with self._lock:
            return self._token.text if self._token and self._token is not token else self.another()

    def another(self) -> str:
        """A new token, for this process and those that it is handed to; raises as :meth:`text`."""
        if self._given:
            return self._given
        with self._lock:
            return self._use(self._renewed(self._new()))

    def until(self) -> float:
        """When the token expires unless it is renewed, in seconds since 1970; raises as :meth:`text`."""
        with self._lock:
            self.text()
            return self._token.expires if self._token else 0.0

    @property
    def addresses(self) -> str:
        """Of WebHDFS."""
        return ",".join(self._addresses)

    def is_elsewhere(self, root: Root) -> bool:
        """Whether a root of the same nameservice is on another cluster: none of its addresses are these."""
        return not set(self._addresses) & set(addresses_of(root.webhdfs or ""))

    @property
    def in_use(self) -> bool:
        """Whether the account has ever had a token here."""
        return self._token is not None

    def refused(self, text: str) -> None:
        """Gets another token in place of one that the NameNode does not take; raises as :meth:`text`."""
        with self._lock:
            if self._token and self._token.text == text:
                self.another()

    def _use(self, token: Token) -> str:
        FILE.put(self._service, token.text)
        self._token = token
        if not self._keeps:
            self._keeps = True
            threading.Thread(target=self._keep, name="delegation token", daemon=True).start()
        return token.text

    def _keep(self) -> None:
        """Renews and replaces the token as long as it is good; who needs one afterwards asks again."""
        warned = False
        while True:
            with self._lock:
                token, now = self._token, time.time()
                if token is None or now >= token.expires:
                    self._keeps = False
                    return
                try:
                    if now >= token.replaced:
                        self.another()
                    elif now >= token.renewed:
                        self._renew(token)
                    warned = False
                except ReplicationError as error:
                    level, warned = logging.DEBUG if warned else logging.WARNING, True
                    _LOG.log(level, "the delegation token of %s is not renewed, which is tried again: %s", self._service, error)
                wait = _AGAIN if warned else min(self._token.renewed, self._token.replaced) - now if self._token else 0
            time.sleep(max(wait, 1))

    def _renew(self, token: Token) -> None:
        try:
            self._use(self._renewed(token.text))
        except Unreachable:
            raise
        except ReplicationError as error:  # somebody has ended it
            _LOG.info("there will be another delegation token of %s: %s", self._service, error)
            self.another()

    def _new(self) -> str:
        return str(self._asked("GET", {"op": "GETDELEGATIONTOKEN"}, lambda answer: answer["Token"]["urlString"]))

    def _renewed(self, text: str) -> Token:
        """The token with the time that a renewal gives it: the account is its own renewer."""
        now, (issued, ends) = time.time(), times(text)
        query = {"op": "RENEWDELEGATIONTOKEN", "token": text}
        expires = self._asked("PUT", query, lambda answer: int(answer["long"]) / 1000)
        return Token(text, now + (expires - now) / 2, (issued + ends) / 2, expires)

    def _asked(self, method: str, query: dict[str, str], value: Callable[[Any], Any]) -> Any:
        problem = ReplicationError("it has no address")
        for number in range(self._rounds * len(self._addresses)):
            address = self._addresses[number % len(self._addresses)]
            if number and address == self._addresses[0]:
                time.sleep(1)
            url = f"{address}/webhdfs/v1/?{urlencode(query)}"
            try:
                response = self._pool.request(method, url, preload_content=False, redirect=False)
                status, body = response.status, body_of(response, _MOST)
            except urllib3.exceptions.HTTPError as error:
                if found := explained(url, error):
                    raise found from None  # the error tells the URL, and with it the token
                problem = Unreachable(f"{address} gives no delegation token: {without_secrets(str(error))}")
                continue
            except TooLong as error:
                raise _refused(address, str(error)) from error
            if status == 200:
                try:
                    return value(parsed(body))
                except (ValueError, LookupError, TypeError, OverflowError) as error:
                    raise _refused(address, "it answers without one") from error
            whole = body.decode(errors="replace")
            text = without_secrets(" ".join(whole.split())[:300])
            if not (any(name in text for name in _PASSING) or is_of_gateway(status, whole)):
                raise _refused(address, f"it answers {status}: {text}")
            problem = Unreachable(f"{address} gives no delegation token now: {text}")
        raise problem


def _refused(address: str, why: str) -> ReplicationError:
    return ReplicationError(
        f"{address} gives no delegation token ({why}): take kerberos out of this side of the policy if its HDFS does not ask for "
        "Kerberos, else check that WebHDFS does (dfs.web.authentication.kerberos.principal) and lets this account in"
    )


def service_of(authority: str) -> str:
    """The service of a NameNode or nameservice."""
    return authority if ":" in authority else f"ha-hdfs:{authority}"


def delegation(authority: str, root: Root, given: str | None) -> Delegation | None:
    """The token of an account at an HDFS, one for all who use it in this process; None without Kerberos.

    Args:
        authority: the NameNode or nameservice.
        root: with the account.
        given: a token from another process.

    Raises:
        BadRequest: another account uses that HDFS in this process, or the nameservice is another cluster's in it, or the root has
            no address of WebHDFS.
    """
    account = root.kerberos
    if account is None:
        return None
    if not root.webhdfs:
        raise BadRequest(f"{root.uri} has no webhdfs in the policy: with Kerberos the delegation token is had there; set it")
    service = service_of(authority)
    if given:
        return Delegation(root, service, given)
    with _GUARD:
        found = _SHARED.get((os.getpid(), service))
        if found and found.account == account:
            if ":" not in authority and found.in_use and found.is_elsewhere(root):
                raise BadRequest(
                    f"the nameservice of {root.uri} is another cluster's in this process, at {found.addresses}, and here "
                    f"at {root.webhdfs}: give this policy a code location of its own, or name the same addresses in webhdfs if "
                    "it is one cluster"
                )
            return found
        if found and found.in_use:
            names = " and ".join(one.principal or "the ticket cache" for one in (found.account, account))
            raise BadRequest(
                f"{root.uri} would be used by {names} in one process, which hdfs-native cannot: name one account for it in the "
                "policy"
            )
        found = _SHARED[os.getpid(), service] = Delegation(root, service)
        return found


_GUARD = threading.Lock()
_SHARED: dict[tuple[int, str], Delegation] = {}
