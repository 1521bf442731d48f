"""The replication engine: REPL DUMP, REPL LOAD and REPL STATUS, as a library and as the command ``hive-repl``.

Stable is what ``__all__`` of this package names, errors included (docs/library.md), the groups of entry points and the command
line. Everything else may change in any version.

Belongs here: statements, events, dumps, loads, copying and proving files, verification, lag.

Keep out of here: Dagster and PySpark (``repl_assets``, ``sensors``, ``resources``), and servers for tests and the demo
(``resources.embedded``). The import contracts in ``pyproject.toml`` say which package may import which.
"""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from hive_replication.errors import (
    BadRequest,
    LockLost,
    LockSilent,
    MetastoreError,
    MissingEvents,
    Outdated,
    Refused,
    ReplicationError,
    Unreachable,
)

if TYPE_CHECKING:
    from hive_replication.api import (
        Alarm,
        Connection,
        DatabaseStatus,
        DumpResult,
        FailoverPlan,
        FailoverReverse,
        FailoverStart,
        FailoverStatus,
        Finding,
        HeldTable,
        HistoryEntry,
        Lag,
        LoadReport,
        PlanReport,
        Policy,
        PolicyStatus,
        PrivilegeReport,
        Progress,
        Record,
        RepairResult,
        Report,
        ReportRow,
        Status,
        TableComparison,
        Undo,
        alarms,
        approve,
        connect,
        doctor,
        dump,
        failover_finish,
        failover_open,
        failover_plan,
        failover_reverse,
        failover_rollback,
        failover_start,
        failover_status,
        history,
        lags,
        load,
        load_policy,
        pause,
        plan,
        policy_status,
        privileges,
        release,
        repair,
        reports,
        resume,
        status,
        undo,
        verify,
    )

__all__ = [
    "Alarm",
    "BadRequest",
    "Connection",
    "DatabaseStatus",
    "DumpResult",
    "FailoverPlan",
    "FailoverReverse",
    "FailoverStart",
    "FailoverStatus",
    "Finding",
    "HeldTable",
    "HistoryEntry",
    "Lag",
    "LoadReport",
    "LockLost",
    "LockSilent",
    "MetastoreError",
    "MissingEvents",
    "Outdated",
    "PlanReport",
    "Policy",
    "PolicyStatus",
    "PrivilegeReport",
    "Progress",
    "Record",
    "Refused",
    "RepairResult",
    "ReplicationError",
    "Report",
    "ReportRow",
    "Status",
    "TableComparison",
    "Undo",
    "Unreachable",
    "alarms",
    "approve",
    "connect",
    "doctor",
    "dump",
    "failover_finish",
    "failover_open",
    "failover_plan",
    "failover_reverse",
    "failover_rollback",
    "failover_start",
    "failover_status",
    "history",
    "lags",
    "load",
    "load_policy",
    "pause",
    "plan",
    "policy_status",
    "privileges",
    "release",
    "repair",
    "reports",
    "resume",
    "status",
    "undo",
    "verify",
]

logging.getLogger(__name__).addHandler(logging.NullHandler())  # quiet, unless a program asks for the engine's messages


class _Package(ModuleType):
    """Keeps ``dump`` and the like functions: importing the subpackage of the same name would replace them."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> object:
    """Imports the engine when a public name is first used, so that ``hive-repl --help`` does not wait for it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module("hive_replication.api"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
