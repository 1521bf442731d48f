"""``dagster dev -m bench.shortest``: the project with the policy of HIVE_REPL_CONFIG, with a tick of the sensor every second."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg

from hive_replication.connect import connect
from hive_replication.policy import load_policy
from repl_assets.catalog.catalog import read_catalog
from repl_assets.definitions import build_defs
from sensors.notification_log.sensor import SensorSettings


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions of the policy."""
    policy = load_policy(Path(os.environ["HIVE_REPL_CONFIG"]))
    catalog = read_catalog(connect(policy).source.metastore, policy)
    return build_defs(policy, catalog, settings=SensorSettings(interval=1))
