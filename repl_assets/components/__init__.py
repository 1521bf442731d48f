"""Dagster components: a policy as YAML becomes definitions."""

from repl_assets.components.replication_policy import ReplicationPolicy

__all__ = ["ReplicationPolicy"]
