"""Hive replication: the protocol of REPL DUMP, REPL LOAD and REPL STATUS.

Belongs here: statements, events, dumps, loads, the copy and proof of one file. Usable as a library and by ``hive-repl``.
Does not belong here: anything of Dagster or PySpark (see ``repl_assets`` and ``resources``), and servers for tests and
demos (``resources.embedded``). Rooms import only earlier ones: metastore, events, storage, dump, copy, load, verify, cli.
"""
