"""Sensors and schedules: when runs start, and when operators are notified.

Belongs here: one module or package per sensor, what they share, reading the source's log, the target's state and Dagster's run
records, requesting runs.

Keep out of here: replication (``hive_replication``), assets and jobs (``repl_assets``).
"""
