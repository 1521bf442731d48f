"""Connections of ticks, which soon give up on a metastore that does not answer.

Dagster ends a tick after 60 s and drops its cursor, while the tick's thread goes on in the code server and is missed by the
sensors of all policies there. So a metastore is given less time here than in a run, which may wait.
"""

from __future__ import annotations

import dagster as dg

from hive_replication.connect import Connection
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
