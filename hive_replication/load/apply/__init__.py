"""Carries out plans: chooses directories, copies, changes the target's metastore, and maintains the database's state.

The order: ``placement`` chooses directories, ``executor`` copies, ``lane_recorder`` writes the journal, then ``change_tables``,
``change_partitions`` and ``change_data`` change the metastore, and ``database`` writes the state of the database.

Keep out of here: decisions about which events apply. With the operations that carry themselves out, this is the only code that
writes to the target.
"""
