"""Open transactions that write to a database: waited for, then aborted or refused, as the policy or the caller says."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from hive_replication.errors import Refused
from hive_replication.load.replica.open_writers import writers
from hive_replication.logs import about
from hive_replication.metastore.client import Metastore

_LOG = logging.getLogger(__name__)

_LOOK_AGAIN = 0.5  # seconds
_ABORTS = 3  # times that new writers are aborted


def drain(metastore: Metastore, database: str, wait: float, *, abort: bool) -> tuple[int, ...]:
    """Returns when no transaction writes to a database; answers those that were aborted for it.

    Args:
        metastore: of the source.
        database: source database.
        wait: seconds for which open ones may end by themselves.
        abort: abort them then; else nothing is aborted.

    Raises:
        Refused: they do not end, and are not to be aborted, or new ones begin again and again.
    """
    until, aborted, rounds = time.monotonic() + wait, set[int](), 0
    while found := writers(metastore, database):
        if time.monotonic() < until:
            time.sleep(_LOOK_AGAIN)
            continue
        if not abort or rounds == _ABORTS:
            raise Refused(_open(database, found, wait, again=rounds > 0))
        _LOG.warning("transactions that write to %s are aborted: %s", database, _listed(found), extra=about(database))
        metastore.abort(found)
        aborted, rounds = aborted | set(found), rounds + 1
    return tuple(sorted(aborted))


def _open(database: str, found: Iterable[int], wait: float, *, again: bool) -> str:
    if again:
        return f"new transactions write to {database!r} as often as they are aborted ({_listed(found)}): stop its writers first"
    return (
        f"transactions that write to {database!r} are open after {wait:g} s ({_listed(found)}): let them end and run it again, "
        "or abort them with --abort"
    )


def _listed(found: Iterable[int]) -> str:
    return ", ".join(map(str, found))
