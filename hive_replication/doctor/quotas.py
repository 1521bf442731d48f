"""Whether quotas of the target's directories leave room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from shlex import quote

from hive_replication.doctor.finding import Finding, error, ok, warning
from hive_replication.doctor.roots import begun
from hive_replication.errors import ReplicationError
from hive_replication.storage import Storage, paths
from hive_replication.storage.hdfs_facts import Quota, quota

_CHECK = "quota of "
_FREE = 0.1  # part of a quota that should be free


def quotas(storage: Storage, side: str, locations: Iterable[str]) -> Iterator[Finding]:
    """One finding for each quota of these directories themselves; what is not there yet has none.

    Args:
        storage: of the side.
        side: of the findings.
        locations: URIs; other stores than HDFS have no quotas.
    """
    asked = [(one, begun(lambda one=one: storage.about_webhdfs(one, quota))) for one in dict.fromkeys(locations)]
    for location, answer in asked:
        try:
            found = answer()
        except FileNotFoundError:
            continue
        except (ReplicationError, OSError) as problem:
            yield ok(side, f"{_CHECK}{location}", f"not told: {problem}")
            continue
        if found:
            yield from judged(side, location, found)


def judged(side: str, location: str, found: Quota) -> Iterator[Finding]:
    """What a directory's quotas leave (pure)."""
    path = paths.split(location)[2]
    for what, option, most, used in (
        ("files and directories", "-setQuota", found.names, found.names_used),
        ("bytes, each copy counted", "-setSpaceQuota", found.space, found.space_used),
    ):
        if most is None:
            continue
        shown = f"{used:,} of {most:,} {what}"
        if used < (1 - _FREE) * most:
            yield ok(side, f"{_CHECK}{location}", shown)
        else:
            advice = f"make room there, or raise it: hdfs dfsadmin {option} <number> {quote(path)}"
            yield (error if used >= most else warning)(side, f"{_CHECK}{location}", shown, advice)
