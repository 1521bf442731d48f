"""A policy for the embedded servers, for the demo and for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from hive_replication.policy import Policy, Root
from hive_replication.policy.warehouse import Kerberos, Tls, Warehouse
from resources.embedded.cluster import Cluster, Side
from resources.embedded.kerberos import ACCOUNT

#: Directories of the servers in which tables may lie besides those of their databases.
PLACES = ("elsewhere", "jars", "landing", "lib", "outside", "tmp")


def policy(
    cluster: Cluster, databases: Mapping[str, str], source: str = "source", target: str = "target", account: str = ACCOUNT
) -> Policy:
    """The policy that replicates databases from one side of a cluster to another.

    Args:
        cluster: the servers.
        databases: target names by source names.
        source: side to read.
        target: side to write; its HDFS holds the dumps, in ``/repl/dumps``, and external data, in ``/external``.
        account: of both realms, where the servers ask for Kerberos.
    """
    reads, writes = cluster.side(source), cluster.side(target)
    return Policy(
        source=_warehouse(reads, account),
        target=_warehouse(writes, account),
        dump_root=f"{writes.hdfs}repl/dumps",
        external_root=f"{writes.hdfs}external",
        databases=dict(databases),
    )


def write_policy(cluster: Cluster, path: Path, databases: Mapping[str, str] | None = None, **settings: object) -> None:
    """Writes the YAML of :func:`policy` with further settings; ``sales`` to ``sales`` where no databases are given."""
    save_policy(policy(cluster, databases or {"sales": "sales"}).model_copy(update=settings), path)


def save_policy(made: Policy, path: Path) -> None:
    """Writes a policy as YAML."""
    content = made.model_dump(mode="json", exclude_defaults=True)
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def _warehouse(side: Side, account: str) -> Warehouse:
    paths = tuple(f"{side.hdfs}{place}" for place in PLACES)
    roots = (Root(uri=side.hdfs, webhdfs=side.webhdfs, options=dict(side.options)),)
    tls = Tls(ca=str(side.ca)) if side.ca else None
    kerberos = None
    if side.kdc:
        kdc = side.kdc
        kerberos = Kerberos(
            principal=f"{account}@{kdc.realm}", keytab=str(kdc.keytab(account)), metastore_principal=kdc.metastore_principal
        )
    return Warehouse(
        metastore=side.metastore, metastore_ssl=tls is not None, tls=tls, kerberos=kerberos, roots=roots, paths=paths
    )
