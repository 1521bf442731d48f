"""The Dagster project: assets, checks, jobs and the component ``ReplicationPolicy``.

Belongs here: how databases and tables of a policy appear in Dagster; ``build`` and ``definitions`` put everything together.

Keep out of here: replication logic (``hive_replication``), connections (``resources``), and when runs start (``sensors``).
"""
