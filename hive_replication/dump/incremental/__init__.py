"""Incremental dumps: the events of a window, their files, commits of transactions, and tables that have to be dumped again.

Keep out of here: bootstrap dumps, and how records are written.
"""
