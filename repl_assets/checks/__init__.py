"""Asset checks: their definitions, what they compare and find, and the jobs that run all of them.

A check of a table is a line in ``table_checks`` and a method of ``examiner``; ``check_definitions`` makes Dagster's definitions
of them. A check of a database has a module of its own name. Those that each load answers from its report are ``load_checks``.

Keep out of here: definitions of assets, repairs.
"""
