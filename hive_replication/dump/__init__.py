"""REPL DUMP: writes metadata and references to files of the source into a dump directory. Data is not copied.

Belongs here: the statement, the source side, and the list of dumps; ``bootstrap``, ``incremental`` and ``format`` hold the rest.

Keep out of here: everything that reads or writes the target (``load``).
"""
