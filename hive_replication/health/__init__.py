"""What an operator asks first: the state of each replica, what is wrong, and what to do about it.

``policy_status`` is the page of ``hive-repl status``, which is not the statement REPL STATUS (``load.replica.repl_status``).

Belongs here: figures of lags, states and records brought together; conditions that are alarms; advice.

Keep out of here: changes of either side, and who shows what is found (``cli``, ``repl_assets``, ``sensors``).
"""

from hive_replication.health.advice import advice_on
from hive_replication.health.alarms import Alarm, AlarmKind, conditions, open_alarms, unreachable, without_dumps
from hive_replication.health.history import HistoryEntry, history
from hive_replication.health.policy_status import (
    Condition,
    DatabaseStatus,
    HeldStatus,
    PolicyStatus,
    condition_by_lag,
    held_by_lag,
    policy_status,
    what_to_do,
)

__all__ = [
    "Alarm",
    "AlarmKind",
    "Condition",
    "DatabaseStatus",
    "HeldStatus",
    "HistoryEntry",
    "PolicyStatus",
    "advice_on",
    "condition_by_lag",
    "conditions",
    "held_by_lag",
    "history",
    "open_alarms",
    "policy_status",
    "unreachable",
    "what_to_do",
    "without_dumps",
]
