"""The journal: what a load is about to change, written before it does, and read back by undo and retention.

Keep out of here: changes of the metastore.
"""
