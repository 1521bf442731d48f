"""TLS of a side: whom it trusts, and what a failed handshake means, in one sentence that says what to do.

Certificates are always verified, with the name of the host: there is no setting that turns it off.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

from hive_replication.errors import BadRequest, Unreachable
from hive_replication.policy.secrets import resolved_options
from hive_replication.policy.warehouse import Tls

# OpenSSL's numbers of why it does not believe a certificate (X509_V_ERR_...).
_NOT_YET_VALID, _EXPIRED, _OTHER_NAME, _OTHER_ADDRESS = 9, 10, 62, 64
_PATIENCE = 5.0  # seconds for a look at what a port speaks


class NotTrusted(Unreachable):
    """The other side cannot be spoken to safely: repeats do not help, the certificate or the policy has to change."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a server that is trusted shows.

    Args:
        version: of TLS, e.g. ``TLSv1.3``.
        issuer: who signed the certificate.
        ends: when it ends, in seconds since 1970.
    """

    version: str
    issuer: str
    ends: float


def context(tls: Tls | None) -> ssl.SSLContext:
    """How this process trusts, and who it says that it is; by the system's certificate authorities where none are named.

    Raises:
        BadRequest: a file of the policy cannot be read, or is not in PEM.
    """
    tls = tls or Tls()
    what = f"tls.ca of the policy, {tls.ca}"
    try:
        made = ssl.create_default_context(cafile=tls.ca)
        if tls.certificate:
            what = f"tls.certificate, tls.key or tls.key_password of the policy, {tls.certificate}"
            password = resolved_options({"tls.key_password": tls.key_password or ""})["tls.key_password"]
            made.load_cert_chain(tls.certificate, tls.key, password)  # never None: OpenSSL would ask at the terminal
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadRequest(f"{what}, cannot be used: {reason}; it has to be a file in PEM that this process can read") from error
    return made


def certificate(host: str, port: int, trusted: ssl.SSLContext, timeout: float = _PATIENCE) -> Certificate:
    """The certificate of a server, verified.

    Raises:
        OSError: it does not answer, does not speak TLS, or is not trusted.
    """
    with (
        socket.create_connection((host, port), timeout=timeout) as plain,
        trusted.wrap_socket(plain, server_hostname=host) as secured,
    ):
        found = secured.getpeercert() or {}
        names = {name: value for part in found.get("issuer", ()) for name, value in part}  # type: ignore[misc]
        issuer = str(names.get("commonName") or ", ".join(map(str, names.values())))  # pyright: ignore[reportUnknownArgumentType]
        ends = ssl.cert_time_to_seconds(str(found.get("notAfter")))
        return Certificate(secured.version() or "TLS", issuer, ends)


def speaks_tls(host: str, port: int, timeout: float = _PATIENCE) -> bool:
    """Whether a port speaks TLS, trusted or not; it is asked for ``timeout`` seconds at most."""
    try:
        certificate(host, port, context(None), min(timeout, _PATIENCE))
    except ssl.SSLCertVerificationError:
        return True
    except OSError:
        return False
    return True


def not_trusted(error: BaseException, server: str, plain: str) -> NotTrusted | None:
    """Why a handshake failed and what to change; None where it was for another reason, such as a lost connection.

    Args:
        error: what was raised; TLS's own error may be its cause.
        server: ``host:port``.
        plain: what to change in the policy where the server does not speak TLS.
    """
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return NotTrusted(f"the certificate of {server} is refused: {_refused(cause)}")
        if isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            continue
        if isinstance(cause, ssl.SSLError):
            if cause.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
                return NotTrusted(f"{server} does not speak TLS: {plain}, or turn TLS on at the server")
            if "CERTIFICATE" in (cause.reason or ""):
                advice = "set tls.certificate and tls.key of this side in the policy to one that it knows"
                return NotTrusted(f"{server} asks for a client certificate: {advice} ({cause.reason})")
    return None


def _refused(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in (_OTHER_NAME, _OTHER_ADDRESS):
        words = error.verify_message.rstrip(".")
        return f"{words}; name the server in the policy as its certificate does, or have one issued with that name"
    if error.verify_code == _EXPIRED:
        return "it has expired; install a new one at the server, and look at the clock of this machine"
    if error.verify_code == _NOT_YET_VALID:
        return "it is not valid yet; look at the clocks of both machines"
    return (
        f"its certificate authority is not known here ({error.verify_message}); set tls.ca of this side in the policy to the PEM "
        "file of the authority that issued it"
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    todo: list[object] = [error]
    while todo:
        one = todo.pop()
        if isinstance(one, BaseException) and one not in seen:
            seen.append(one)
            yield one
            # thrift keeps it in inner, urllib3 in reason.
            todo += [one.__cause__, one.__context__, getattr(one, "inner", None), getattr(one, "reason", None), *one.args]
