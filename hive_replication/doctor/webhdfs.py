"""Whether WebHDFS answers, and whether the policy names it: larger files of events are not copied without its checksums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hive_replication.doctor.finding import Finding, error, ok, warning
from hive_replication.errors import ReplicationError
from hive_replication.policy import Root
from hive_replication.storage import Storage
from hive_replication.storage.webhdfs import ACTIVE, STANDBY

_CHECK = "WebHDFS"


def webhdfs(storage: Storage, side: str, other: Storage | None) -> Iterator[Finding]:
    """One finding for each root of a side on HDFS.

    Args:
        storage: of the side.
        side: of the findings.
        other: storage of the other side; None where no files are copied, which needs no WebHDFS.
    """
    for root in storage.roots:
        if not root.webhdfs:
            if other and root.uri.startswith("hdfs:"):
                yield _without(side, root, other=any(one.webhdfs for one in other.roots))
            continue
        try:
            states = storage.about_webhdfs(root.uri, lambda web, _: web.examine()) or {}
        except (ReplicationError, OSError) as problem:
            advice = "set webhdfs of the storage root in the policy to the HTTP address of the NameNode, and let this user in"
            yield error(side, _CHECK, f"{root.webhdfs}: {problem}", advice)
        else:
            yield _finding(side, root, states)


def _without(side: str, root: Root, *, other: bool) -> Finding:
    """A root on HDFS that has no WebHDFS; ``other`` is whether one of the other side has."""
    advice = f"set webhdfs of the storage root {root.uri} in the policy to the HTTP address of the NameNode"
    if not other:
        found = f"{root.uri} has none, nor has the other side: files above 256 KB whose events have checksums are held"
        return error(side, _CHECK, found, advice)
    if side == "source":
        found = f"{root.uri} has none: files above 256 KB that cannot get the same checksum on the target are held"
    else:
        found = f"{root.uri} has none: files above 256 KB are read once more at the source, for their proof"
    return warning(side, _CHECK, found, advice)


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
