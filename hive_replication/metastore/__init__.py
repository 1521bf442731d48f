"""The client of a Hive metastore: its objects, their names and text forms, its calls, its notification log, its locks.

Belongs here: everything that speaks Thrift, and the differences between metastore versions (``versions`` only).
Does not belong here: what to replicate, what a message of the log means, files.
"""
