"""Judging a metastore's settings (pure): notification log, change management, how long both are kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from hive_replication.doctor.finding import Finding, error, ok, warning
from hive_replication.metastore.table_filter import FILTER, filter_hook

#: Reads a setting of the metastore; the default where it is not known there.
Setting = Callable[[str, str], str]

LISTENER = "org.apache.hive.hcatalog.listener.DbNotificationListener"
DAY = 86_400
_CATALOG = "metastore.catalog.default"
_TRIMMED = "hive.metastore.notification.parameters.exclude.patterns"
_LONG = {"": 1, "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600, "d": DAY, "day": DAY}
_UNITS = _LONG | {"ms": 1e-3, "msec": 1e-3, "us": 1e-6, "usec": 1e-6, "ns": 1e-9, "nsec": 1e-9}


def seconds(text: str) -> float | None:
    """A time as Hive writes it (``240h``, ``10d``, ``86400``: seconds); None where it is none."""
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    unit = _UNITS.get(found[2], _UNITS.get(found[2].removesuffix("s"))) if found else None
    return int(found[1]) * unit if found and unit else None


def source_settings(setting: Setting, lag: float) -> Iterator[Finding]:
    """What the source's metastore has to be set to.

    Args:
        setting: reads its settings.
        lag: seconds that the slowest replica is behind now.
    """
    yield from _catalog(setting)
    yield _listener(setting)
    yield from _trimmed_parameters(setting)
    if hook := filter_hook(setting):
        shown = f"{FILTER}=true with {hook}: tables that the account may not see are not replicated, and nothing says so"
        yield warning("source", "hidden tables", shown, "let the account that replicates see all tables of the policy")
    if setting("hive.metastore.dml.events", "false").lower() == "true":
        yield ok("source", "insert events", "hive.metastore.dml.events=true")
    else:
        yield warning(
            "source",
            "insert events",
            "hive.metastore.dml.events=false at the metastore",
            "set hive.metastore.dml.events=true for the metastore and all clients that write, else INSERTs leave no event",
        )
    managed = setting("hive.repl.cm.enabled", "false").lower() == "true"
    yield from _change_management(setting, lag) if managed else _no_change_management()
    yield _event_retention(setting, lag, managed=managed)


def short_retention(setting: Setting, lag: float) -> Iterator[Finding]:
    """Of the times for which the source keeps events and deleted files, those that ``lag`` seconds come too near to."""
    retention = ("cmroot retention", "event retention")
    without = [finding for finding in source_settings(setting, 0.0) if finding.check in retention]
    return (one for one in source_settings(setting, lag) if one.check in retention and one not in without)


def target_settings(setting: Setting, major: int) -> Iterator[Finding]:
    """What the target's metastore has to be set to: locks of a load that was killed have to end, and nothing is to be hidden."""
    if hook := filter_hook(setting):
        shown = f"{FILTER}=true with {hook}: what may be the data of a table that the account does not see stays for good"
        yield warning("target", "hidden tables", shown, "let the account that replicates see all tables of the replicas")
    name = "hive.compactor.initiator.on" if major < 4 else "metastore.housekeeping.threads.on"
    if setting(name, "false").lower() == "true":
        yield ok("target", "lock timeout", f"{name}=true")
    else:
        yield warning(
            "target",
            "lock timeout",
            f"{name}=false",
            f"set {name}=true on one metastore of the target, else the lock of a load that was killed stays until it is removed",
        )


def _catalog(setting: Setting) -> Iterator[Finding]:
    """Calls and events that name no catalog are of the metastore's default one: replication reads and compares those of hive."""
    default = setting(_CATALOG, "hive")
    if default.lower() != "hive":
        advice = f"set {_CATALOG}=hive and restart the metastore, or replicate from one whose default catalog is hive"
        yield error("source", "catalog", f"{_CATALOG}={default}, and only databases of the catalog hive are replicated", advice)


def _listener(setting: Setting) -> Finding:
    names = ("hive.metastore.transactional.event.listeners", "hive.metastore.event.listeners")
    found = [name for name in names if "DbNotificationListener" in setting(name, "")]
    if not found:
        return error(
            "source", "notification log", "no DbNotificationListener", f"set {names[0]}={LISTENER} and restart the metastore"
        )
    if found[0] != names[0]:
        return warning(
            "source",
            "notification log",
            f"DbNotificationListener in {found[0]}",
            f"name it in {names[0]} instead, so that an event is never lost nor written for a change that failed",
        )
    return ok("source", "notification log", f"DbNotificationListener in {found[0]}")


def _trimmed_parameters(setting: Setting) -> Iterator[Finding]:
    """Hive 4 can leave parameters of tables and partitions out of its events, which then seem to have none of these."""
    if patterns := setting(_TRIMMED, ""):
        advice = f"take out of {_TRIMMED} what readers of the replica need, then repair what hive-repl verify names"
        yield warning("source", "parameters", f"{_TRIMMED}={patterns}: with its next ALTER a replica loses these", advice)


def _no_change_management() -> Iterator[Finding]:
    yield warning(
        "source",
        "change management",
        "hive.repl.cm.enabled=false",
        "set hive.repl.cm.enabled=true and hive.repl.cmrootdir, else files that are deleted or replaced before they are copied "
        "are lost for the replica",
    )


def _change_management(setting: Setting, lag: float) -> Iterator[Finding]:
    root = setting("hive.repl.cmrootdir", "")
    if root:
        yield ok("source", "change management", f"on, cmroot {root}")
    else:
        yield error("source", "change management", "on, without hive.repl.cmrootdir", "set hive.repl.cmrootdir to a directory")
    kept = seconds(setting("hive.repl.cm.retain", "24h"))
    shown = f"hive.repl.cm.retain={setting('hive.repl.cm.retain', '24h')}"
    yield _long_enough("cmroot retention", kept, shown, lag, "hive.repl.cm.retain")


def _event_retention(setting: Setting, lag: float, *, managed: bool) -> Finding:
    name = "hive.metastore.event.db.listener.timetolive"
    value = setting(name, "86400s")
    if managed:  # Hive 4 keeps events for replication by a setting of their own (hive.repl...)
        special = setting("hive.repl.event.db.listener.timetolive", "")
        name, value = ("hive.repl.event.db.listener.timetolive", special) if special else (name, value)
    return _long_enough("event retention", seconds(value), f"{name}={value}", lag, name)


def _long_enough(check: str, kept: float | None, shown: str, lag: float, name: str) -> Finding:
    if kept is None:
        return warning("source", check, shown, f"set {name} to a time such as 10d")
    if lag > kept / 2:
        advice = f"the replica is {lag / 3600:.1f} h behind: raise {name} (e.g. to 10d) and load what waits before it is deleted"
        return (error if lag > kept else warning)("source", check, shown, advice)
    if kept < 3 * DAY:
        return warning("source", check, shown, f"set {name}=10d, so that an outage over a weekend needs no recovery")
    return ok("source", check, shown)
