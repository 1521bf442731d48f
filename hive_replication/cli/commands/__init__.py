"""The commands by their names; modules of this package import the rest of the library only when a command runs."""

from __future__ import annotations

from collections.abc import Callable

import typer

from hive_replication.cli.commands.comparisons import verify
from hive_replication.cli.commands.doctor import doctor
from hive_replication.cli.commands.drift import drift
from hive_replication.cli.commands.history import retention, undo
from hive_replication.cli.commands.lag import lag
from hive_replication.cli.commands.metrics import metrics
from hive_replication.cli.commands.pause import pause, resume
from hive_replication.cli.commands.plan import approve, plan
from hive_replication.cli.commands.policy import app as policy
from hive_replication.cli.commands.recovery import recover
from hive_replication.cli.commands.statements import repl

COMMANDS: dict[str, Callable[..., None]] = {
    "REPL": repl,
    "plan": plan,
    "verify": verify,
    "lag": lag,
    "metrics": metrics,
    "doctor": doctor,
    "recover": recover,
    "drift": drift,
    "approve": approve,
    "pause": pause,
    "resume": resume,
    "undo": undo,
    "retention": retention,
}
GROUPS: dict[str, typer.Typer] = {"policy": policy}
