"""Security contexts of an account with a service, with fresh tickets each time one is needed.

The library is ``gssapi``, of the extra ``kerberos``: it is imported only where a policy asks for Kerberos. Tickets that a keytab
gives lie in the memory of this process, apart for each account; MIT Kerberos asks for new ones by itself when half of their life
is over. Where a policy names no keytab, the ticket cache is used as ``kinit`` leaves it (``KRB5CCNAME``), and never written.
"""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING

from hive_replication.errors import BadRequest, Unreachable
from hive_replication.policy.warehouse import Account

if TYPE_CHECKING:
    import gssapi

_NO_EXTRA = (
    "Kerberos needs the extra kerberos: pip install 'hive-replication[kerberos]', which needs a C compiler, krb5-config and "
    "Python's headers (Debian: gcc libkrb5-dev python3-dev)"
)
_SPNEGO = "1.3.6.1.5.5.2"  # RFC 4178
# MIT's words, and what to do about them.
_ADVICE = (
    ("Clock skew", "set the clocks of this machine, of the KDC and of the server by the same time"),
    ("not found in Kerberos database", "the KDC does not know that name: check {setting}"),
    ("Client not found", "the KDC does not know that name: check principal in the policy"),
    ("Cannot contact any KDC", "check that this machine can reach the KDC that krb5.conf names for the realm"),
    ("Cannot find KDC", "name the KDC of the realm in krb5.conf (KRB5_CONFIG)"),
    ("Preauthentication failed", "the keytab has another key than the KDC: export it again"),
    ("Keytab contains no suitable keys", "the keytab has no key of that principal: look with klist -kt"),
    ("expired", "run kinit, or name a keytab of the account in the policy"),
)
_NO_TICKET = "run kinit, or name principal and keytab of the account in the policy"
_NO_KEY = "check that the keytab {keytab} has a key of that principal (klist -kt), and that the KDC knows it and answers"


def ensure_installed() -> None:
    """Makes sure that the library is there.

    Raises:
        BadRequest: it is not; the message names the extra.
    """
    try:
        import gssapi as _  # noqa: F401
    except ImportError as error:
        raise BadRequest(_NO_EXTRA) from error


def context(account: Account, service: str, setting: str, *, spnego: bool = False) -> gssapi.SecurityContext:
    """A context for one connection, not begun yet, with which the account proves who it is.

    Args:
        account: of the policy.
        service: ``hive/host@REALM``, or ``HTTP@host`` with SPNEGO.
        setting: of the policy or the server that the service's name comes from, for errors.
        spnego: whether the mechanism is negotiated, as over HTTP.

    Raises:
        BadRequest: the extra is not installed.
        Unreachable: there is no ticket, and none to be had.
    """
    ensure_installed()
    import gssapi

    required = gssapi.RequirementFlag
    with told(account, service, setting):
        return gssapi.SecurityContext(
            name=gssapi.Name(service, gssapi.NameType.hostbased_service if spnego else gssapi.NameType.kerberos_principal),
            creds=_credentials(account),
            usage="initiate",
            mech=gssapi.OID.from_int_seq(_SPNEGO) if spnego else gssapi.MechType.kerberos,
            flags=required.mutual_authentication | required.integrity | required.confidentiality,
        )


@contextmanager
def told(account: Account, service: str, setting: str) -> Generator[None]:
    """Tells what faults of Kerberos in the block mean; arguments as of :func:`context`.

    Raises:
        Unreachable: there was one.
    """
    import gssapi

    try:
        yield
    except gssapi.exceptions.GSSError as error:
        raise _failure(account, service, setting, error) from error


def _failure(account: Account, service: str, setting: str, error: gssapi.exceptions.GSSError) -> Unreachable:
    """What a fault of Kerberos means: whom it is about, the library's words, and what to do."""
    text = " ".join(str(error).split()).rpartition("Minor (")[2].rpartition("): ")[2] or str(error)
    otherwise = _NO_KEY if account.keytab else _NO_TICKET
    advice = next((what for words, what in _ADVICE if words in text), otherwise).format(setting=setting, keytab=account.keytab)
    return Unreachable(f"Kerberos: {account.principal or 'the ticket cache'} has no ticket for {service}: {text}; {advice}")


def ticket(account: Account) -> tuple[str, float]:
    """Whose ticket the account has, and until when, in seconds since 1970.

    Raises:
        BadRequest: the extra is not installed.
        Unreachable: there is no ticket, and none to be had.
    """
    ensure_installed()
    with told(account, "itself", "principal in the policy"):
        found = _credentials(account)
        return str(found.name), time.time() + found.lifetime


def host_principal(principal: str, host: str) -> str:
    """A service's principal with the host's name in place of ``_HOST``, in lower case, as Hadoop's clients put it there.

    Args:
        principal: e.g. ``hive/_HOST@REALM``.
        host: as the policy names it; an address is turned into its name where it has one.
    """
    return principal.replace("/_HOST@", f"/{host_name(host)}@")


def host_name(host: str) -> str:
    """A host's name in lower case; of an address the name that it has, where it has one."""
    with suppress(ValueError):
        ip_address(host)
        with suppress(OSError):
            host = socket.gethostbyaddr(host)[0]
    return host.lower()


def _credentials(account: Account) -> gssapi.Credentials:
    import gssapi

    name = gssapi.Name(account.principal, gssapi.NameType.kerberos_principal) if account.principal else None
    if not account.keytab:
        return gssapi.Credentials(name=name, usage="initiate")
    if not os.access(account.keytab, os.R_OK):
        raise Unreachable(
            f"Kerberos: the keytab {account.keytab} of {account.principal} is not there or cannot be read: give this account the "
            "right to read it, and nobody else"
        )
    cache = hashlib.sha256(f"{account.principal} {account.keytab}".encode()).hexdigest()[:16]
    store = {"client_keytab": f"FILE:{account.keytab}", "ccache": f"MEMORY:hive_replication_{cache}"}
    return gssapi.Credentials(name=name, usage="initiate", store=store)
