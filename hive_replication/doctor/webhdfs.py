"""Whether WebHDFS answers, where the policy names one: without its checksums no event of HDFS is copied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hive_replication.doctor.finding import Finding, error, ok, warning
from hive_replication.errors import ReplicationError
from hive_replication.policy import Root
from hive_replication.storage import Storage
from hive_replication.storage.webhdfs import ACTIVE, STANDBY

_CHECK = "WebHDFS"


def webhdfs(storage: Storage, side: str) -> Iterator[Finding]:
    """One finding for each root of a side that has WebHDFS."""
    for root in storage.roots:
        if not root.webhdfs:
            continue
        try:
            states = storage.about_webhdfs(root.uri, lambda web, _: web.examine()) or {}
        except (ReplicationError, OSError) as problem:
            advice = "set webhdfs of the storage root in the policy to the HTTP address of the NameNode, and let this user in"
            yield error(side, _CHECK, f"{root.webhdfs}: {problem}", advice)
        else:
            yield _finding(side, root, states)


def _finding(side: str, root: Root, states: Mapping[str, str]) -> Finding:
    """Whether WebHDFS goes on after a failover, where there can be one."""
    if not root.patience:
        return ok(side, _CHECK, root.webhdfs or "")
    shown = "; ".join(f"{address}: {state}" for address, state in states.items())
    if silent := [address for address, state in states.items() if state not in (ACTIVE, STANDBY)]:
        return warning(side, _CHECK, shown, f"start {', '.join(silent)}: while it is down nothing can fail over to it")
    if len(states) == 1:
        advice = "name the addresses of all NameNodes of the nameservice in webhdfs of the storage root, separated by commas"
        return warning(side, _CHECK, shown, advice)
    return ok(side, _CHECK, shown)
