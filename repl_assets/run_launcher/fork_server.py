"""``python -m repl_assets.run_launcher.fork_server``: a process with the definitions of a code location; its forks are runs.

It reads the origin of the code location and what its code server gives runs along, both serialized by Dagster, and answers an
empty line once the definitions are made; then it reads the arguments of runs and answers the process id of each one's fork. It
ends with its input; the runs go on.
"""

from __future__ import annotations

import gc
import os
import signal
from typing import TextIO

from repl_assets.dagster_private import (
    RepositoryLoadData,
    RepositoryPythonOrigin,
    deserialize_value,
    execute_run_command,
    recon_repository_from_origin,
)


def main() -> None:
    """Serves until the input ends; in a fork, executes the run."""
    requests, answers = _streams()
    origin = deserialize_value(requests.readline(), RepositoryPythonOrigin)
    given = deserialize_value(text, RepositoryLoadData) if (text := requests.readline().strip()) else None
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C reaches the runs as well, which heed it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel forgets runs that have ended
    code = recon_repository_from_origin(origin).with_repository_load_data(given)
    code.get_definition().get_implicit_global_asset_job_def()
    gc.freeze()  # pages that forks share are not written to by the garbage collector
    print(file=answers)
    while run := requests.readline().strip():
        if not (fork := os.fork()):
            requests.close()
            answers.close()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            execute_run_command.main([run], prog_name="dagster api execute_run")
        print(fork, file=answers)


def _streams() -> tuple[TextIO, TextIO]:
    """Input and output for the launcher alone: what user code prints goes to the error output, as the daemon's."""
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w", buffering=1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, answers


if __name__ == "__main__":
    main()
