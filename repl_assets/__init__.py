"""The Dagster project: assets, checks, jobs and the ``ReplicationPolicy`` component (design: Dagster).

Belongs here: how a policy's databases and tables look in Dagster, and what a run tells about its work. Does not belong here:
protocol logic (``hive_replication``), connections (``resources``), deciding when to run (``sensors``).
"""
