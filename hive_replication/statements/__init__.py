"""The statements REPL DUMP, REPL LOAD and REPL STATUS: their grammar and nothing else.

Belongs here: text to frozen records. Does not belong here: running them (``dump``, ``load``).
"""

from hive_replication.statements.parser import EVERY, ReplDump, ReplLoad, ReplStatus, Statement, parse

__all__ = ["EVERY", "ReplDump", "ReplLoad", "ReplStatus", "Statement", "parse"]
