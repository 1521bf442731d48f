"""When to run: the notification-log sensor.

Belongs here: looking at the source's log, the target's state and Dagster's run records, and asking for runs. Does not belong
here: replication itself (``hive_replication``) and assets (``repl_assets``).
"""
