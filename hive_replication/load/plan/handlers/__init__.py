"""Handlers: one function per event type, which turns an event that passed the gate into operations (pure).

Which function handles which event type: :mod:`hive_replication.load.plan.handlers.by_event_type`.

Keep out of here: whether an event applies (``gate``), and carrying operations out (``load.apply``).
"""
