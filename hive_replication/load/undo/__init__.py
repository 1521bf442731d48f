"""Undo: goes back to the state at the end of an earlier load, from its journal and the old data that is kept.

Keep out of here: anything that a load needs, and what removes old data (``load.retention``); commands and jobs use it.
"""
