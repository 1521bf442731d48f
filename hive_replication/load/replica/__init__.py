"""The replica on the target: connection, names, state parameters, fingerprints, held tables, ownership, status and pause.

``repl_status`` answers REPL STATUS, ``state`` is what the database's parameters say, ``held_retries`` when a held table is tried
again, ``name_mapping`` under which names and paths the target has what the source has.

Keep out of here: plans and operations.
"""
