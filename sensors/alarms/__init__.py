"""Alarms: from conditions and failed runs to notifications on the channels that the environment names.

Keep out of here: how a channel delivers (``resources.notification_channels``).
"""
