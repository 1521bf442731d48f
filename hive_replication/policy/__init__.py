"""The policy: what is replicated from where to where. Its model, its commented file, its schedules.

Keep out of here: connections to servers.
"""

from hive_replication.policy.model import Policy, Preserved
from hive_replication.policy.policy_file import load_policy
from hive_replication.policy.scope import PolicyScope
from hive_replication.policy.warehouse import Root

__all__ = ["Policy", "PolicyScope", "Preserved", "Root", "load_policy"]
