"""The command line ``hive-repl``.

Belongs here: arguments, output for terminals and as JSON, exit codes, completion. Commands import the library when they run, so
that ``--help`` stays fast.

Keep out of here: decisions about replication.
"""

from hive_replication.cli.main import main

__all__ = ["main"]
