"""Channels of notifications for operators: log, e-mail, Slack and a webhook, set by environment variables."""

from __future__ import annotations

import logging
import smtplib
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.errors import MessageError
from email.message import EmailMessage
from functools import partial
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import requests

from hive_replication.errors import BadRequest
from hive_replication.logs import PACKAGE, printable
from hive_replication.policy.addresses import require_host

_LOG = logging.getLogger(f"{PACKAGE}.alarms")  # as the engine's, whose messages go to a tick's log

MAIL_TO = "HIVE_REPL_ALARM_MAIL_TO"
MAIL_FROM = "HIVE_REPL_ALARM_MAIL_FROM"
SMTP = "HIVE_REPL_ALARM_SMTP"
SMTP_CA = "HIVE_REPL_ALARM_SMTP_CA"
SLACK = "HIVE_REPL_ALARM_SLACK_URL"
WEBHOOK = "HIVE_REPL_ALARM_WEBHOOK_URL"

_TIMEOUT = 10.0  # seconds
_PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}


class NotDelivered(Exception):
    """A notice did not arrive. The message names no address, which may hold a secret."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification for operators.

    Args:
        subject: one line.
        text: plain text.
        data: the same for programs.
    """

    subject: str
    text: str
    data: Mapping[str, Any]


class Channel(Protocol):
    """A way to notify operators."""

    @property
    def name(self) -> str:
        """One word."""
        ...

    def send(self, notice: Notice) -> None:
        """Sends a notice.

        Raises:
            NotDelivered: it may not have arrived.
        """
        ...


@dataclass(frozen=True, slots=True)
class LogChannel:
    """Writes to a log."""

    write: Callable[[str], object]
    name: str = "log"

    def send(self, notice: Notice) -> None:
        """See :class:`Channel`."""
        self.write(notice.text)


@dataclass(frozen=True, slots=True)
class MailChannel:
    """Sends mail through an SMTP server: ``smtp``, ``smtp+starttls`` or ``smtps`` ``://[user:password@]host[:port]``.

    Args:
        server: its address, which may hold a password and is not shown.
        sender: an address.
        recipients: addresses.
        tls: whom to trust as the server, where it is not ``smtp``.
        name: one word.
    """

    server: str = field(repr=False)
    sender: str
    recipients: tuple[str, ...]
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)
    name: str = "mail"

    def send(self, notice: Notice) -> None:
        """See :class:`Channel`."""
        url = urlsplit(self.server)
        connect = partial(smtplib.SMTP_SSL, context=self.tls) if url.scheme == "smtps" else smtplib.SMTP
        try:
            message = EmailMessage()
            message["From"], message["To"], message["Subject"] = self.sender, ", ".join(self.recipients), notice.subject
            message.set_content(notice.text)
            with connect(url.hostname or "", url.port or _PORTS[url.scheme], timeout=_TIMEOUT) as client:
                if url.scheme == "smtp+starttls":
                    client.starttls(context=self.tls)  # without a context smtplib trusts every server
                if url.username:
                    client.login(unquote(url.username), unquote(url.password or ""))
                refused = client.send_message(message)
        except (smtplib.SMTPException, OSError) as error:
            raise NotDelivered(f"no mail through {url.hostname}: {error}") from error
        except (ValueError, LookupError, MessageError) as error:  # which may tell of the password
            wrong = f"user and password have to be ASCII, addresses valid and on one line ({type(error).__name__})"
            raise NotDelivered(f"no mail through {url.hostname}: {wrong}") from None
        for recipient, (code, why) in refused.items():  # all of them raise
            said = f"{code} {why.decode(errors='replace')}"
            _LOG.warning("%s gets no mail of alarms: %s answered %s", recipient, url.hostname, printable(said))


@dataclass(frozen=True, slots=True)
class SlackChannel:
    """Posts to an incoming webhook of Slack; whoever knows its address can post."""

    url: str = field(repr=False)
    name: str = "Slack"

    def send(self, notice: Notice) -> None:
        """See :class:`Channel`."""
        text = notice.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        _post(self.name, self.url, {"text": text})


@dataclass(frozen=True, slots=True)
class WebhookChannel:
    """Posts JSON; its address may hold a token."""

    url: str = field(repr=False)
    name: str = "webhook"

    def send(self, notice: Notice) -> None:
        """See :class:`Channel`."""
        _post(self.name, self.url, notice.data)


def channels(environment: Mapping[str, str]) -> Iterator[Channel]:
    """The channels that environment variables name.

    Raises:
        BadRequest: one is incomplete or malformed.
    """
    if recipients := tuple(filter(None, (one.strip() for one in environment.get(MAIL_TO, "").split(",")))):
        server = environment.get(SMTP, "smtp://localhost")
        _require(SMTP, server, tuple(_PORTS))
        yield MailChannel(server, environment.get(MAIL_FROM) or recipients[0], recipients, _trusted(environment.get(SMTP_CA)))
    for variable, made in ((SLACK, SlackChannel), (WEBHOOK, WebhookChannel)):
        if url := environment.get(variable):
            _require(variable, url, ("http", "https"))
            yield made(url)


def _trusted(authorities: str | None) -> ssl.SSLContext:
    """Whom to trust: the machine's certificate authorities, or those of a PEM file."""
    try:
        return ssl.create_default_context(cafile=authorities or None)
    except OSError as error:
        raise BadRequest(f"{SMTP_CA} has to name a PEM file of certificate authorities: {error.strerror or error}") from error


def _require(variable: str, url: str, schemes: tuple[str, ...]) -> None:
    try:
        parts = urlsplit(url)
        require_host(parts.netloc)
        valid = parts.scheme in schemes
    except ValueError:
        valid = False
    if not valid:
        raise BadRequest(
            f"{variable} has to be an address of a host that begins with {' or '.join(f'{one}://' for one in schemes)}"
        )


def _post(name: str, url: str, data: Any) -> None:
    try:
        answer = requests.post(url, json=data, timeout=_TIMEOUT)
    except requests.RequestException as error:
        raise NotDelivered(f"{name} cannot be reached: {type(error).__name__}") from error
    if answer.request.method != "POST":  # where a redirect led to only a page was asked for, without the notice
        how = f"{answer.history[0].status_code} {answer.history[0].reason}"
        raise NotDelivered(f"{name} leads elsewhere ({how}): name the address that takes notices itself")
    if not answer.ok:
        raise NotDelivered(f"{name} answered {answer.status_code} {answer.reason}")
