"""The policy's servers as a Dagster resource. Nothing connects before it is asked; Spark starts with the first large copy."""

from __future__ import annotations

from functools import partial

import dagster as dg
from pydantic import Field

from hive_replication.connect import Connection, connect
from hive_replication.copy.choice import ThresholdCopier
from hive_replication.copy.sizes import sized
from hive_replication.copy.tasks import Copier
from hive_replication.policy import Policy


class ReplicationConnection(dg.ConfigurableResource["ReplicationConnection"]):
    """Connects to both sides of a policy.

    Args:
        policy: the policy as JSON. It may hold passwords of object stores, so Dagster does not show it.
    """

    policy: str = Field(description="The policy as JSON", json_schema_extra={"dagster__is_secret": True})

    @classmethod
    def of(cls, policy: Policy) -> ReplicationConnection:
        """The resource for a policy."""
        return cls(policy=policy.model_dump_json(exclude_defaults=True))

    def settings(self) -> Policy:
        """The policy."""
        return Policy.model_validate_json(self.policy)

    def connect(self) -> Connection:
        """Both sides, ready to be asked."""
        return connect(self.settings())

    def copier(self, connection: Connection) -> Copier:
        """Driver threads for small windows, Spark executors for others."""
        policy = self.settings()
        files, size = policy.driver_max_files, policy.driver_max_bytes
        looked_up = partial(sized, connection.source.storage)
        return ThresholdCopier(connection.copier, self._spark, looked_up, max_files=files, max_bytes=size)

    def _spark(self) -> Copier:
        # Imported here: pyspark belongs into runs that need it, not into every process that loads definitions.
        from resources.spark_copier import SparkCopier

        policy = self.settings()
        ends = self.connect()
        spark = SparkCopier.from_settings(policy.spark, threads=policy.files_in_flight, tasks=policy.spark_tasks)
        description = f"Repl#{policy.name}"
        return spark.copier(ends.source.storage, ends.target.storage, description=description, bandwidth=policy.bandwidth)
