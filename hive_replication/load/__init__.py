"""REPL LOAD: a dump and the target's state become operations; files are copied and proven first, then metadata flips.

Belongs here: the target's state, the gate, lanes, the plan, its execution, holds and REPL STATUS (design: load).
Does not belong here: reading the source's metastore (``dump``), how one file is copied (``copy``).
"""
