"""Carries out plans: chooses directories, copies, changes the target's metastore, and maintains the database's state.

Keep out of here: decisions about which events apply. With the operations that carry themselves out, this is the only code that
writes to the target.
"""
