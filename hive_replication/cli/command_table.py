"""The table of commands: which function each verb of ``hive-repl`` calls."""

from __future__ import annotations

from collections.abc import Callable

import typer

from hive_replication.cli.commands.alarms import alarms
from hive_replication.cli.commands.approve import approve
from hive_replication.cli.commands.doctor import doctor
from hive_replication.cli.commands.drift import drift
from hive_replication.cli.commands.failover import app as failover
from hive_replication.cli.commands.history import history
from hive_replication.cli.commands.lag import lag
from hive_replication.cli.commands.metrics import metrics
from hive_replication.cli.commands.pause import pause, resume
from hive_replication.cli.commands.plan import plan
from hive_replication.cli.commands.policy import app as policy
from hive_replication.cli.commands.privileges import privileges
from hive_replication.cli.commands.recover import recover
from hive_replication.cli.commands.repair import repair
from hive_replication.cli.commands.repl import repl
from hive_replication.cli.commands.report import report
from hive_replication.cli.commands.retention import retention
from hive_replication.cli.commands.status import status
from hive_replication.cli.commands.undo import undo
from hive_replication.cli.commands.verify import verify

COMMANDS: dict[str, Callable[..., None]] = {
    "REPL": repl,
    "plan": plan,
    "verify": verify,
    "status": status,
    "alarms": alarms,
    "lag": lag,
    "metrics": metrics,
    "history": history,
    "report": report,
    "doctor": doctor,
    "repair": repair,
    "recover": recover,
    "drift": drift,
    "privileges": privileges,
    "approve": approve,
    "pause": pause,
    "resume": resume,
    "undo": undo,
    "retention": retention,
}
GROUPS: dict[str, typer.Typer] = {"failover": failover, "policy": policy}
