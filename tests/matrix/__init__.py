"""Replication from each version of Hive to the same one and later ones: a bootstrap, and windows of every kind of event."""
