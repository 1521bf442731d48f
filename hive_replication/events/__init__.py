"""Events of a Hive metastore's notification log: reading, decoding into frozen records, filtering by policy.

Belongs here: what a notification says. Does not belong here: what is done about it (``dump``, ``load``).
"""
