"""Which certificates are refused and what is said then, by a real TLS server of this process."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat, load_pem_private_key

from hive_replication.errors import BadRequest
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.transport import Access
from hive_replication.policy.warehouse import Tls
from hive_replication.storage.webhdfs import WebHdfs
from hive_replication.tls import NotTrusted, context

Serve = Callable[..., int]


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    made = trustme.CA()
    made.cert_pem.write_to_path(tmp_path / "ca.pem")
    return made


@pytest.fixture
def tls(authority: trustme.CA, tmp_path: Path) -> Tls:
    return Tls(ca=str(tmp_path / "ca.pem"))


@pytest.fixture
def serve(authority: trustme.CA) -> Iterator[Serve]:
    """Starts servers that make handshakes, ask for client certificates of the authority, and answer nothing."""
    listeners: list[socket.socket] = []

    def start(certificate: trustme.LeafCert, *, asks: bool = False) -> int:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(made)
        if asks:
            authority.configure_trust(made)
            made.verify_mode = ssl.CERT_REQUIRED
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        threading.Thread(target=_answer, args=(listener, made), daemon=True).start()
        return listener.getsockname()[1]

    yield start
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _answer(listener: socket.socket, made: ssl.SSLContext) -> None:
    while True:
        try:
            plain, _ = listener.accept()
        except OSError:
            return
        try:
            with made.wrap_socket(plain, server_side=True) as secured:
                secured.sendall(b"1")
        except OSError:
            with suppress(OSError):  # what it said is lost where it closes before the other side has
                plain.shutdown(socket.SHUT_WR)
                while plain.recv(1024):
                    pass
            plain.close()


def _refused(port: int, tls: Tls | None) -> set[str]:
    """What metastore and WebHDFS say of the same server, at once."""
    with pytest.raises(NotTrusted) as of_metastore:
        Metastore(f"thrift://127.0.0.1:{port}", Access(use_ssl=True, tls=tls)).databases()
    with pytest.raises(NotTrusted) as of_http:
        Metastore(f"https://127.0.0.1:{port}", Access(tls=tls)).databases()
    with pytest.raises(NotTrusted) as of_webhdfs:
        WebHdfs(f"https://127.0.0.1:{port}", (), tls).checksum("/x")
    return {str(one.value).partition("9083: ")[2] or str(one.value) for one in (of_metastore, of_http, of_webhdfs)}


def test_an_unknown_authority(serve: Serve, tls: Tls) -> None:
    told = _refused(serve(trustme.CA().issue_cert("127.0.0.1")), tls)
    assert all("authority is not known here" in one and "set tls.ca of this side" in one for one in told)


def test_a_certificate_for_another_name(serve: Serve, authority: trustme.CA, tls: Tls) -> None:
    told = _refused(serve(authority.issue_cert("metastore.example")), tls)
    assert all("'127.0.0.1'" in one and "name the server in the policy as its certificate does" in one for one in told)


def test_an_expired_certificate(serve: Serve, authority: trustme.CA, tls: Tls) -> None:
    ended = datetime.now(UTC) - timedelta(days=1)
    told = _refused(serve(authority.issue_cert("127.0.0.1", not_after=ended)), tls)
    assert all("it has expired; install a new one" in one for one in told)


def test_tls_to_a_server_without(tls: Tls) -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        for _ in range(3):
            plain, _ = listener.accept()
            with plain:
                plain.recv(1000)
                plain.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    threading.Thread(target=answer, daemon=True).start()
    with listener:
        told = _refused(listener.getsockname()[1], tls)
    assert all("does not speak TLS" in one and "in the policy, or turn TLS on at the server" in one for one in told)


def test_no_tls_to_a_server_with_it(serve: Serve, authority: trustme.CA) -> None:
    port = serve(authority.issue_cert("127.0.0.1"))
    with pytest.raises(NotTrusted, match=r"speaks TLS, and the policy does not: set metastore_ssl: true"):
        Metastore(f"thrift://127.0.0.1:{port}").databases()
    with pytest.raises(NotTrusted, match=r"speaks TLS, and the policy does not: write https://"):
        Metastore(f"http://127.0.0.1:{port}").databases()
    with pytest.raises(NotTrusted, match=r"speaks TLS: write https:// for webhdfs"):
        WebHdfs(f"http://127.0.0.1:{port}").checksum("/x")


def test_a_client_certificate(
    serve: Serve, authority: trustme.CA, tls: Tls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, own = serve(authority.issue_cert("127.0.0.1"), asks=True), authority.issue_cert("replication")
    with pytest.raises(NotTrusted, match=r"asks for a client certificate: set tls.certificate and tls.key"):
        Metastore(f"thrift://127.0.0.1:{port}", Access(use_ssl=True, tls=tls)).databases()
    key = load_pem_private_key(own.private_key_pem.bytes(), None)
    secret = BestAvailableEncryption(b"open")
    (tmp_path / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secret))
    own.cert_chain_pems[0].write_to_path(tmp_path / "own.pem")
    named = {"certificate": str(tmp_path / "own.pem"), "key": str(tmp_path / "key.pem"), "key_password": "${env:KEY_PASSWORD}"}
    monkeypatch.setenv("KEY_PASSWORD", "open")
    made = context(tls.model_copy(update=named))
    with (
        socket.create_connection(("127.0.0.1", port), timeout=5) as plain,
        made.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        assert secured.recv(1) == b"1"
    monkeypatch.setenv("KEY_PASSWORD", "wrong")
    with pytest.raises(BadRequest, match="cannot be used"):
        context(tls.model_copy(update=named))


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_a_file_that_is_none(tmp_path: Path, text: str | None) -> None:
    if text:
        (tmp_path / "ca.pem").write_text(text)
    with pytest.raises(BadRequest, match=r"tls.ca of the policy, .*ca.pem, cannot be used: .*PEM"):
        context(Tls(ca=str(tmp_path / "ca.pem")))


def test_no_redirect_leads_down_to_plain_http() -> None:
    from hive_replication.errors import ReplicationError

    with pytest.raises(ReplicationError, match="without TLS, which is not followed"):
        WebHdfs("https://namenode:9871", ["datanode:9864"])._require("http://datanode:9864/x")
