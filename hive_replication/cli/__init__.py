"""``hive-repl``: the command line.

Belongs here: words of the shell to library calls, results to the terminal or to JSON, errors to one line and an exit code.
Does not belong here: any decision about replication. Commands import what they need when they run, so that ``--help`` is
quick.
"""

from hive_replication.cli.main import main

__all__ = ["main"]
