"""Mail over TLS with a login, to real mail servers on loopback with certificates of an authority that is made here."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from hive_replication.errors import BadRequest
from resources.notification_channels import MAIL_TO, SMTP_CA, NotDelivered, Notice, channels
from resources.notification_channels import SMTP as SERVER
from tests.receivers import mail_server

NOTICE = Notice("begins: sales is late", "sales is 20 min behind", {})


def login(server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: LoginPassword) -> AuthResult:
    return AuthResult(success=(given.login, given.password) == (b"ops@shop", b"pass:word/1"), handled=False)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def context(authority: trustme.CA) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(made)
    return made


@pytest.mark.filterwarnings("ignore:Requiring AUTH")  # that smtps is TLS, aiosmtpd does not know
@pytest.mark.parametrize("scheme", ["smtp+starttls", "smtps"])
def test_mail_is_sent_to_a_server_that_is_trusted_only(
    scheme: str, authority: trustme.CA, context: ssl.SSLContext, tmp_path: Path
) -> None:
    authorities = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(authorities))
    starts = {"tls_context": context, "require_starttls": True}
    tls: dict[str, Any] = starts if scheme == "smtp+starttls" else {"ssl_context": context, "auth_require_tls": False}
    with mail_server(scheme, authenticator=login, auth_required=True, **tls) as server:

        def send(user: str, environment: dict[str, str]) -> None:
            address = server.url.replace("://", f"://{user}@")
            (channel,) = channels({MAIL_TO: "ops@shop.com", SERVER: address, **environment})
            channel.send(NOTICE)

        user, trusted = "ops%40shop:pass%3Aword%2F1", {SMTP_CA: str(authorities)}
        send(user, trusted)
        ((recipients, message),) = server.received
        assert (recipients, message["Subject"]) == (["ops@shop.com"], NOTICE.subject)
        with pytest.raises(NotDelivered, match="certificate verify failed"):
            send(user, {})
        with pytest.raises(NotDelivered, match=r"no mail through 127\.0\.0\.1: .*Authentication credentials invalid"):
            send("ops%40shop:wrong", trusted)
        assert len(server.received) == 1


def test_authorities_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    for path in (tmp_path / "none.pem", Path(__file__)):
        with pytest.raises(BadRequest, match="HIVE_REPL_ALARM_SMTP_CA has to name a PEM file"):
            list(channels({MAIL_TO: "ops@shop.com", SMTP_CA: str(path)}))
