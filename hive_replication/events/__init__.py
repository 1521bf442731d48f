"""Events of the notification log: reading them, decoding their messages into records, and filtering them by policy.

What a new event type needs, in all packages: the list at the top of ``decoders_by_event_type``.

Belongs here: what a notification says.

Keep out of here: what a dump or load does with it.
"""
