"""The demo (``make demo``): a sales database on embedded servers, changed while Dagster's sensor replicates it.

Belongs here: filling and changing the source, starting ``dagster dev``, showing both sides in the terminal.

Keep out of here: replication itself, and anything that another package imports.
"""
