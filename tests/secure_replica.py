"""One step of replication in a process of its own, with the tickets of another account; a test reads what it prints."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from hive_replication import load_policy, verify
from hive_replication.connect import connect
from resources.spark_copier import SparkCopier
from tests.warehouse import Warehouse


def main() -> None:
    """Replicates the only database of a policy, and compares both sides."""
    parser = argparse.ArgumentParser()
    parser.add_argument("policy", type=Path)
    parser.add_argument("--spark", action="store_true", help="copy in executors, which can ask no KDC")
    arguments = parser.parse_args()
    connection = connect(load_policy(arguments.policy))
    (database,) = connection.source.policy.databases
    copier = None
    if arguments.spark:
        settings = {f"spark.executorEnv.{name}": "/nowhere" for name in ("KRB5_CONFIG", "KRB5CCNAME")}
        resource = SparkCopier.from_settings(settings)
        copier = resource.copier(connection.source.storage, connection.target.storage, description="secure")
    report = Warehouse(connection, None, database, copier).replicate()  # type: ignore[arg-type]
    result = {
        "held": {name: one.reason for one in report.held for name in one.tables},
        "executors": dict(report.copies.executors),
        "unrecorded": report.copies.unrecorded,
        "differences": {one.table: list(one.differences) for one in verify(connection, database) if one.differences},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
