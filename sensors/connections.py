"""Connections of ticks, which soon give up on a metastore or a store that does not answer.

Dagster ends a tick after 60 s and drops its cursor, while the tick's thread goes on in the code server and is missed by the
sensors of all policies there. So a server is given less time here than in a run, which may wait.
"""

from __future__ import annotations

import dagster as dg

from hive_replication.connect import Connection
from hive_replication.connect.hanging_storage import require_answers, require_reachable
from repl_assets.catalog.keys import Names
from repl_assets.steps.engine import connection_resource

TIMEOUT = 15.0  # seconds for the answer of one call
ATTEMPTS = 2


def connect_for_tick(context: dg.SensorEvaluationContext, names: Names) -> Connection:
    """Both sides of a sensor's policy.

    Raises:
        BadRequest: see :func:`hive_replication.connect.connect`.
        Unreachable: the policy has patterns of databases, and the source does not answer.
    """
    return connection_resource(context, names).connect(timeout=TIMEOUT, retries=ATTEMPTS)


def require_dump_root(connection: Connection) -> None:
    """Makes sure, before a tick reads from the dump root, that its store answers.

    Raises:
        Unreachable: it does not.
    """
    require_reachable(connection.store.storage, TIMEOUT)


def require_data(connection: Connection) -> None:
    """Makes sure, before a tick reads data, that storage answers on both sides.

    Raises:
        Unreachable: one does not.
    """
    for side in (connection.source, connection.target):
        require_answers(side.storage, TIMEOUT)
