"""The client of a Hive metastore: objects, names and their text forms, calls, the notification log, locks, transactions.

Belongs here: everything that uses Thrift, and the differences between metastore versions (``dialect``).

Keep out of here: what to replicate, the meaning of event messages (``events``), and files (``storage``).
"""
