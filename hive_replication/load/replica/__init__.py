"""The replica on the target: connection, names, state parameters, fingerprints, quarantine, ownership, status and pause.

Keep out of here: plans and operations.
"""
