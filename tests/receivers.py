"""Real receivers of notices on loopback: an HTTP server and a mail server that keep what they get."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import Message
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session


class WebServer:
    """Keeps what is posted, as (path, JSON); answers with ``status``, and with a page to who only asks for one."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.url = f"http://127.0.0.1:{server.server_port}"
        self.status = 200
        self.posted: list[tuple[str, Any]] = []

    def take(self) -> dict[str, Any]:
        """What was posted since the last call, by path."""
        posted, self.posted = dict(self.posted), []
        return posted


@contextmanager
def web_server() -> Iterator[WebServer]:
    """A server on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.posted.append((self.path, json.loads(body)))
            self.send_response(kept.status)
            if 300 <= kept.status < 400:
                self.send_header("Location", f"/login{self.path}")
                kept.status = 200
            self.end_headers()

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>Log in</html>")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        kept = WebServer(server)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield kept
        finally:
            server.shutdown()
            thread.join()


class MailServer:
    """Keeps messages, with their recipients, of whom it refuses one."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.refused = ""
        self.received: list[tuple[list[str], Message]] = []

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]) -> str:  # noqa: N802
        """Called by the server for each recipient."""
        if address == self.refused:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Called by the server for each message."""
        self.received.append((list(envelope.rcpt_tos), message_from_bytes(envelope.content or b"", policy=default)))  # type: ignore[arg-type]
        return "250 OK"


@contextmanager
def mail_server(scheme: str = "smtp", **options: Any) -> Iterator[MailServer]:
    """A server on a free port; ``options`` of aiosmtpd's controller."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]  # the server wants to know its port before it starts
    kept = MailServer(f"{scheme}://127.0.0.1:{port}")
    controller = Controller(kept, hostname="127.0.0.1", port=port, **options)
    controller.start()
    try:
        yield kept
    finally:
        controller.stop()
