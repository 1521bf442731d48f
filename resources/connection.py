"""The policy's servers as a Dagster resource. Connections open on first use; Spark starts with the first large copy."""

# No postponed annotations here: Dagster reads those of a resource as they stand.
from collections.abc import Generator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

import dagster as dg
import yaml
from pydantic import Field

from hive_replication.connect import Connection, connect
from hive_replication.copy.file_sizes import sized
from hive_replication.copy.tasks import Copier
from hive_replication.copy.threshold_copier import ThresholdCopier
from hive_replication.metastore.connection import CALL_ATTEMPTS, CALL_TIMEOUT
from hive_replication.parallel import ParallelCalls, ThresholdCalls
from hive_replication.policy import Policy
from hive_replication.policy.wrong_setting import KEPT
from resources.engine_log import in_run
from resources.heartbeat import heartbeat
from resources.spark import Spark


class ReplicationConnection(dg.ConfigurableResource["ReplicationConnection"]):
    """Connects to both sides of a policy.

    A run has the policy as its definitions were loaded, whatever its configuration holds: one that is executed again, or started
    from a saved tab of the Launchpad, would act under the policy of then. Dagster shows it in the resource's description.

    Args:
        policy: the policy, as its file has it. It holds no secrets, only references to them, so Dagster may show and store it.
    """

    policy: dict[str, Any] = Field(description="The policy: what is replicated from where to where. Secrets are references.")

    @classmethod
    def of(cls, policy: Policy) -> "ReplicationConnection":
        """The resource for a policy."""
        return cls(policy=policy.model_dump(mode="json", exclude_defaults=True))

    def get_resource_definition(self) -> dg.ResourceDefinition:  # type: ignore[override]
        """The resource with its own policy, which takes any configuration, as runs of earlier versions carry it."""
        return self._definition

    @cached_property  # Dagster compares resources by their identity
    def _definition(self) -> dg.ResourceDefinition:
        def as_loaded(_: object) -> dict[str, Any]:
            return {"policy": self.policy}

        shown = yaml.safe_dump(self.policy, sort_keys=False, allow_unicode=True)
        description = f"Connects to both sides of the policy:\n\n```yaml\n{shown}```"
        return super().get_resource_definition().configured(as_loaded, dict, description)

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> "Generator[ReplicationConnection]":
        """The resource itself; while a run has it, the engine's messages go to the run's log."""
        if context.run is None or context.instance is None:
            yield self
            return
        with in_run(), heartbeat(context.instance, context.run):
            yield self

    def settings(self) -> Policy:
        """The policy: it was checked when the definitions were loaded."""
        return Policy.model_validate(self.policy, context=KEPT)

    def connect(self, *, timeout: float = CALL_TIMEOUT, retries: int = CALL_ATTEMPTS) -> Connection:
        """Both sides; connections open on first use. For the arguments see :func:`hive_replication.connect.connect`."""
        return connect(self.settings(), timeout=timeout, retries=retries)

    def connect_with(self, spark: Spark) -> Connection:
        """The same; many directories are read by Spark executors, in dumps and in comparisons."""
        connection = self.connect()
        policy, calls = connection.source.policy, connection.source.policy.parallelism.storage_calls

        def executors() -> ParallelCalls:
            # Imported here, so that loading definitions imports nothing that only Spark needs.
            from resources.spark_calls import SparkCalls

            return SparkCalls(spark.copier(), calls, f"Repl#{policy.name} directories")

        for storage in (connection.source.storage, connection.target.storage):
            storage.many = ThresholdCalls(storage.threads, executors, most=policy.driver_max_directories)
        return connection

    def copier(self, connection: Connection, spark: Spark) -> Copier:
        """Driver threads for small windows, Spark executors for others."""
        policy = connection.source.policy
        files, size = policy.driver_max_files, policy.driver_max_bytes
        lookup = partial(sized, connection.source.storage)

        def executors() -> Copier:
            storages = connection.source.storage, connection.target.storage
            description = f"Repl#{policy.name}"
            return spark.copier().copier(*storages, description=description, bandwidth=policy.bandwidth)

        return ThresholdCopier(connection.copier, executors, lookup, max_files=files, max_bytes=size)
