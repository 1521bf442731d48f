"""Retention: removes old data, journals and dumps once they are older than the policy keeps them.

Keep out of here: anything that a load needs; commands and jobs use it.
"""
