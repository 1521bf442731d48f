"""The grammar of the statements REPL DUMP, REPL LOAD and REPL STATUS.

Belongs here: parsing text into frozen records.

Keep out of here: running the statements (``dump``, ``load``).
"""

from hive_replication.statements.parser import EVERY, ReplDump, ReplLoad, ReplStatus, Statement, for_shell, parse, parse_name
from hive_replication.statements.tables import ALL, Tables, parse_tables

__all__ = [
    "ALL",
    "EVERY",
    "ReplDump",
    "ReplLoad",
    "ReplStatus",
    "Statement",
    "Tables",
    "for_shell",
    "parse",
    "parse_name",
    "parse_tables",
]
