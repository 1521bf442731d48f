"""Whether the account may read and write where replication does: a file is written, renamed and removed again."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterator, Mapping

from hive_replication.doctor.finding import Finding, error, ok, warning
from hive_replication.errors import ReplicationError
from hive_replication.load.replica.target import Target
from hive_replication.metastore.types import Database
from hive_replication.policy import Policy
from hive_replication.storage import Storage

_LOG = logging.getLogger(__name__)

CLOCK = 60.0  # seconds by which clocks may differ


def named_directories(policy: Policy) -> Iterator[tuple[str, str]]:
    """The directories of the target that the policy names itself, each with its setting."""
    for setting, directory in (("external_root", policy.external_root), ("functions_root", policy.functions_root)):
        if directory:
            yield setting, directory


def warehouse_of(target: Target) -> str:
    """Where the target's metastore creates databases: Hive 4 in the warehouse of external tables, if it has one."""
    return target.warehouses()[-1 if target.metastore.features.major >= 4 else 0]


def directories(target: Target, there: Mapping[str, Database | None], *, more: bool) -> Iterator[tuple[str, str]]:
    """Where loads write, beside the directories of databases that are there: what each is, and its URI.

    Args:
        target: the target side.
        there: its databases, None for one that it has not; one that is not among them it has.
        more: whether databases may come that the policy does not name.
    """
    policy, names = target.policy, [*map(target.policy.target_of, target.policy.databases)]
    if more or any(name not in policy.locations for name in names):
        yield "the warehouse", warehouse_of(target)
    for name in names:
        if name in policy.locations and name in there and there[name] is None:
            yield f"locations.{name}", policy.locations[name]
    yield from named_directories(policy)


def writable(storage: Storage, directory: str, side: str, check: str) -> Iterator[Finding]:
    """A file can be written, renamed and removed, and the store's clock is right. What was absent before is absent after it.

    Args:
        storage: the side's stores.
        directory: where to write.
        side: of the findings.
        check: their name.
    """
    probe = f"{directory.rstrip('/')}/.hive-repl-doctor-{secrets.token_hex(4)}"
    try:
        there = storage.status(directory)
        if there is not None and not there.is_dir:
            yield error(side, check, f"{directory} is a file", "name a directory in the policy")
            return
        made = absent(storage, directory)
        storage.write(probe, b"probe")
        storage.rename(probe, f"{probe}-renamed")
        written = storage.status(f"{probe}-renamed")
        storage.delete(f"{probe}-renamed")
    except (ReplicationError, OSError) as problem:
        yield error(side, check, str(problem), f"let this user write to {directory}, and name its store under target.roots")
        return
    remove(storage, made)
    yield ok(side, check, directory)
    apart = abs(written.modified - time.time()) if written else 0.0
    if apart > CLOCK:
        yield warning(side, "clock", f"its files' times differ from this clock by {apart:.0f} s", "set the clocks by NTP")


def absent(storage: Storage, directory: str) -> list[str]:
    """The directory and those above it, as far as they are not there yet; the lowest one first."""
    found: list[str] = []
    while storage.holds(directory) and directory.count("/") > 3 and not storage.exists(directory):
        found.append(directory)
        directory = directory.rpartition("/")[0]
    return found


def remove(storage: Storage, made: list[str]) -> None:
    """Removes directories that the probe made, as long as nothing else is in them."""
    try:
        for directory in made:
            if storage.ls(directory):
                return
            storage.delete(directory)
    except (ReplicationError, OSError) as problem:
        _LOG.debug("a directory that the probe made is left: %s", problem)


def listable(storage: Storage, directory: str, check: str) -> Finding:
    """Whether the account may list a directory of the source.

    Args:
        storage: the source's stores.
        directory: its URI.
        check: name of the finding.
    """
    try:
        storage.ls(directory)
    except (ReplicationError, OSError) as problem:
        advice = f"let this user read {directory}, and name its store under source.roots"
        return error("source", check, str(problem), advice)
    return ok("source", check, directory)
