"""Spark as a Dagster resource: the settings of the policy's session, which starts when something first needs it."""

# No postponed annotations here: Dagster reads those of a resource as they stand.
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from hive_replication.policy import Policy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from resources.spark_copier import SparkCopier


class Spark(dg.ConfigurableResource["Spark"]):
    """The Spark session of a policy.

    Neither pyspark nor a JVM is loaded before the first use: large copies, and checks that compare rows.

    Args:
        settings: of the session; secrets are references, which the process that starts it resolves.
        threads: files in flight in each Spark task.
        tasks: most Spark tasks that copy at a time; 0 for as many as the executors have cores.
    """

    settings: dict[str, str] = Field(description="Settings of the session; secrets as ${env:NAME} or ${file:/path}")
    threads: int = Field(default=128, description="Files in flight in each Spark task")
    tasks: int = Field(default=0, description="Most Spark tasks that copy at a time; 0: as many as there are cores")

    @classmethod
    def of(cls, policy: Policy) -> "Spark":
        """The resource of a policy."""
        return cls(settings=dict(policy.spark), threads=policy.files_in_flight, tasks=policy.spark_tasks or 0)

    def copier(self) -> "SparkCopier":
        """Makes copiers that run in executors."""
        # Imported here, so that loading definitions does not import pyspark.
        from resources.spark_copier import SparkCopier

        return SparkCopier.from_settings(self.settings, threads=self.threads, tasks=self.tasks or None)

    def session(self) -> "SparkSession":
        """The session of this process; it starts now if it has not.

        Raises:
            BadRequest: no Java, or a secret cannot be read.
        """
        made = self.copier()
        made.spark_context()
        return made.pyspark.spark_session

    def application(self) -> str:
        """Id of this process's Spark application, by which its logs are found; the session starts now if it has not."""
        return self.session().sparkContext.applicationId
