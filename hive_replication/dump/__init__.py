"""REPL DUMP: metadata and references to files, no data (design: dump; seed replication-v2).

Belongs here: reading objects and events of the source, consolidating a bootstrap at the source, the dump store and its
formats. Does not belong here: anything that looks at or writes to a target (``load``).
"""
