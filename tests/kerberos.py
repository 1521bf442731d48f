"""Servers with Kerberos, for the tests that need them."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from hive_replication.policy.warehouse import Kerberos
from resources.embedded.cluster import Cluster
from resources.embedded.kerberos import Kdc
from tests import mit_kdc


def require_extra() -> None:
    """Skips where the extra kerberos is not installed; in CI it has to be."""
    try:
        import gssapi as _  # noqa: F401
    except ImportError:
        if os.environ.get("CI"):
            raise
        pytest.skip("no Kerberos here: install gcc, libkrb5-dev and python3-dev, then make install", allow_module_level=True)


@contextmanager
def servers(
    folder: Path,
    *sides: str,
    ticket_seconds: int = 86400,
    tls: bool = False,
    ha: bool = False,
    properties: Mapping[str, Mapping[str, str]] | None = None,
    mit: bool = False,
) -> Generator[Cluster]:
    """A cluster with Kerberos whose realms this process knows; arguments as of :class:`Cluster`.

    Args:
        mit: whether its KDCs are MIT's, where that is installed.
    """
    kept = os.environ.get("HIVE_REPL_TEST_CLUSTER")
    place = Path(f"{kept}-{'secure' if tls else 'kerberos'}{'-ha' if ha else ''}") if kept else folder
    cluster = Cluster(place, properties or {}, kerberos=True, ticket_seconds=ticket_seconds, tls=tls, ha=ha)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5CCNAME", str(folder / "no-tickets"))
        if mit:
            mit_kdc.in_place(patch)
        try:
            cluster.up(sides)
            patch.setenv("KRB5_CONFIG", str(_config(cluster)))
            yield cluster
        finally:
            if not kept:
                cluster.down()


def keytab(kdc: Kdc) -> Kerberos:
    """The account of a side, by its keytab."""
    return Kerberos(principal=kdc.account, keytab=str(kdc.keytab()), metastore_principal=kdc.metastore_principal)


def kinit(kdc: Kdc, cache: Path) -> Path:
    """Puts a ticket of the account into a new cache, as kinit does."""
    import gssapi

    gssapi.Credentials(
        name=gssapi.Name(kdc.account, gssapi.NameType.kerberos_principal),
        usage="initiate",
        store={"client_keytab": f"FILE:{kdc.keytab()}", "ccache": f"FILE:{cache}"},
    )
    return cache


def _config(cluster: Cluster) -> Path:
    kdc = cluster.side("source").kdc
    assert kdc
    return kdc.config
