"""What an operator asks first: the state of each replica, what is wrong, and what to do about it.

``policy_status`` is the page of ``hive-repl status``, which is not the statement REPL STATUS (``load.replica.repl_status``).

Belongs here: figures of lags, states and records brought together; conditions that are alarms; advice.

Keep out of here: changes of either side, and who shows what is found (``cli``, ``repl_assets``, ``sensors``).
"""

from hive_replication.health.advice import advice_on
from hive_replication.health.alarms import Alarm, AlarmKind, conditions, open_alarms, unreachable, without_dumps
from hive_replication.health.history import HistoryEntry, history
from hive_replication.health.policy_status import DatabaseStatus, HeldStatus, PolicyStatus, policy_status

__all__ = [
    "Alarm",
    "AlarmKind",
    "DatabaseStatus",
    "HeldStatus",
    "HistoryEntry",
    "PolicyStatus",
    "advice_on",
    "conditions",
    "history",
    "open_alarms",
    "policy_status",
    "unreachable",
    "without_dumps",
]
