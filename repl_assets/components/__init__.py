"""Dagster components: turn a policy in YAML into definitions.

Keep out of here: the definitions themselves, which ``repl_assets.build`` makes.
"""

from repl_assets.components.replication_policy import ReplicationPolicy

__all__ = ["ReplicationPolicy"]
