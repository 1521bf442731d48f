"""The sensor on the notification log: scan of the log, run history, decision (pure), approval (pure), cursor.

Keep out of here: other sensors and schedules, and what they share with this one (``sensors.not_now``).
"""
