"""What lies in a dump directory: records, their encoding, writers and readers of each layout, resuming an interrupted dump.

Keep out of here: calls of a metastore.
"""
