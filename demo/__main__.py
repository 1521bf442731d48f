"""``python -m demo``."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from demo.play import Demo
from demo.screen import Screen
from hive_replication.errors import ReplicationError

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    """Reads the command line and plays."""
    parser = argparse.ArgumentParser(prog="python -m demo", description="Replicates a database before your eyes.")
    parser.add_argument("--headless", action="store_true", help="compare source and target at the end, stop all, exit 0 if equal")
    parser.add_argument("--reset", action="store_true", help="stop the demo and delete its data")
    parser.add_argument("--servers", type=Path, default=Path(".embedded"), help="data folder of the servers (%(default)s)")
    parser.add_argument("--dagster-home", type=Path, default=Path(".dagster_home"), help="DAGSTER_HOME (%(default)s)")
    parser.add_argument("--port", type=int, default=3000, help="port of Dagster's UI (%(default)s)")
    options = parser.parse_args()
    screen = Screen()
    demo = Demo(options.servers.absolute(), options.dagster_home.absolute(), options.port, screen)
    for number in _STOPPING:
        signal.signal(number, _interrupt)
    try:
        if options.reset:
            demo.reset()
            return 0
        return demo.play(headless=options.headless)
    except ReplicationError as error:
        screen.console.print(f"[red]error:[/] {error}", soft_wrap=True)
        return error.exit_code
    except KeyboardInterrupt:
        return 130 if options.headless else 0


def _interrupt(*_: object) -> None:
    for number in _STOPPING:
        signal.signal(number, signal.SIG_IGN)  # once is enough: what was started is being stopped
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
