"""What a metastore's version means for replication (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hive_replication.doctor.finding import Finding, error, warning
from hive_replication.metastore.dialect import Features

NEWEST = (4, 2)
_CHECK = "version"


def version_findings(side: str, version: str) -> Iterator[Finding]:
    """What is wrong with a version, or what it cannot do.

    Args:
        side: ``source`` or ``target``.
        version: as :class:`~hive_replication.metastore.dialect.Features` has it.
    """
    found = re.match(r"(\d+)(?:\.(\d+))?", version)
    if not found:
        yield warning(side, _CHECK, f"Hive {version} is none that is known", _UNTRIED)
        return
    major, minor = int(found[1]), int(found[2] or 0)
    if major < 2:
        yield error(
            side, _CHECK, "older than Hive 2.3", "upgrade it to Hive 2.3.10 or later: what its log leaves out is not known"
        )
    elif major == 2 and side == "source":
        yield warning(
            side,
            _CHECK,
            "Hive 2 does not log what an INSERT changed, and TRUNCATE not at all",
            "let hive-repl drift find what was truncated; of an INSERT the window copies the whole table, until you upgrade",
        )
    elif (major, minor) > NEWEST:
        yield warning(
            side, _CHECK, f"Hive {version} is newer than {'.'.join(map(str, NEWEST))}, the last that is known", _UNTRIED
        )


def pair_findings(source: Features, target: Features) -> Iterator[Finding]:
    """What the order of both versions means: each is replicated to the same one and to later ones."""
    if source.later_than(target):
        found = f"Hive {target.version} is older than the source's {source.version}"
        yield warning("target", _CHECK, found, f"to an older version nothing was tried: {_UNTRIED}")


_UNTRIED = "replicate one database and compare it (hive-repl verify) before you rely on it"
