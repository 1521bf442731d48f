"""Turns a policy into two connected sides.

Keep out of here: what is done with them.
"""

from hive_replication.connect.connection import Connection, connect
from hive_replication.connect.reachable_servers import Reachable, connect_reachable, connect_target, reach

__all__ = ["Connection", "Reachable", "connect", "connect_reachable", "connect_target", "reach"]
