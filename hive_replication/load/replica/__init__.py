"""The replica on the target: connection, names, state parameters, fingerprints, held tables, ownership, status and pause.

Keep out of here: plans and operations.
"""
