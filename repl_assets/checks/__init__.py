"""Asset checks: their definitions, what they compare and find, and the jobs that run all of them.

Each check has a module of its own name. One of a table is a line in ``table_checks``; ``check_definitions`` makes Dagster's
definitions of them. Those that each load answers from its report are ``load_checks``.

Keep out of here: definitions of assets, repairs.
"""
