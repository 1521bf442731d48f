"""Options that every command takes, before or after its words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hive_replication.cli.output import Output

if TYPE_CHECKING:
    from hive_replication import Connection, Policy

DEFAULT_CONFIG = Path("hive-repl.yaml")
#: Seconds for the answer of one call of somebody who looks on, and how many.
BRIEF_TIMEOUT, BRIEF_ATTEMPTS = 15.0, 2
_CONFIG_HELP = "The policy, a YAML file; ./hive-repl.yaml where none is named."
_JSON_HELP = "Print JSON for programs."

# Only the option before the command reads the environment, else it would win over a --config given there.
RootConfig = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", envvar="HIVE_REPL_CONFIG", help=_CONFIG_HELP, show_default=False)
]
Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help=_CONFIG_HELP, show_default=False)]
Json = Annotated[bool, typer.Option("--json", help=_JSON_HELP, show_default=False)]


@dataclass(frozen=True)
class Settings:
    """What the global options say.

    Args:
        config: the policy's file.
        json: whether to print JSON.
    """

    config: Path
    json: bool

    @property
    def output(self) -> Output:
        """Where results go."""
        return Output(json=self.json)

    def policy(self) -> Policy:
        """Reads the policy.

        Raises:
            BadRequest: it is absent or invalid.
        """
        from hive_replication import load_policy

        return load_policy(self.config)

    def connect(self, *, brief: bool = False) -> Connection:
        """Both sides of the policy; servers are called only when needed, and not waited for long where it is ``brief``."""
        from hive_replication import connect

        policy = self.policy()
        return connect(policy, timeout=BRIEF_TIMEOUT, retries=BRIEF_ATTEMPTS) if brief else connect(policy)

    def connect_target(self, name: str | None = None, *, every: bool = False) -> Connection:
        """Both sides of the policy for a command that needs no source; see :func:`hive_replication.connect.connect_target`."""
        from hive_replication.connect import connect_target

        return connect_target(self.policy(), name, every=every)


def settings(context: typer.Context, config: Path | None, json: bool) -> Settings:
    """Joins the options given before the command with those after it; those after it win."""
    before: Settings = context.find_root().obj
    return Settings(config or before.config, json or before.json)
