"""Whether the account of a side has a ticket and HDFS's delegation tokens, until when, and how data is protected on its way."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from hive_replication.doctor.finding import Finding, error, ok, warning
from hive_replication.errors import ReplicationError
from hive_replication.kerberos import tickets
from hive_replication.policy import Root
from hive_replication.policy.warehouse import Account, Warehouse
from hive_replication.storage import paths
from hive_replication.storage.delegation import delegation
from hive_replication.storage.webhdfs_pool import namenode_setting
from hive_replication.units import when

_SHORT = 3600.0  # seconds
_ADVICE = "correct what the message says: without it this side cannot be used"
_PROTECTION = "dfs.data.transfer.protection"


def kerberos(side: str, warehouse: Warehouse) -> Iterator[Finding]:
    """One finding for each account's ticket, and two for each HDFS; none without Kerberos.

    Args:
        side: of the findings.
        warehouse: the side in the policy.
    """
    roots = [root for root in warehouse.storage_roots if root.kerberos and root.uri.startswith("hdfs:")]
    accounts = [*filter(None, (warehouse.kerberos,)), *(root.kerberos for root in roots if root.kerberos)]
    for account in {(one.principal, one.keytab): one for one in accounts}.values():
        yield _ticket(side, account)
    for root in roots:
        yield from _hdfs(side, root)


def _ticket(side: str, account: Account) -> Finding:
    try:
        principal, until = tickets.ticket(account)
    except ReplicationError as problem:
        return error(side, "ticket", str(problem), _ADVICE)
    if account.keytab:
        return ok(side, "ticket", f"{principal} by {account.keytab}, until {when(until)}, and then another one")
    shown = f"{principal} by a ticket cache, until {when(until)}"
    if until - datetime.now(UTC).timestamp() < _SHORT:
        return warning(side, "ticket", shown, "run kinit again before, or name principal and keytab of the account in the policy")
    return ok(side, "ticket", shown)


def _hdfs(side: str, root: Root) -> Iterator[Finding]:
    check = "delegation token"
    try:
        if found := delegation(paths.split(root.uri)[1], root, None):
            yield ok(side, check, f"of {root.uri}, until {when(found.until())}, renewed before")
    except ReplicationError as problem:
        yield error(side, check, str(problem), _ADVICE)
        return
    protection = namenode_setting(root, _PROTECTION)
    shown = f"{_PROTECTION}={protection}" if protection else f"the NameNode does not tell {_PROTECTION}"
    yield ok(side, "data transfer", f"{shown} of {root.uri}")
