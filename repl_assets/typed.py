"""Dagster's decorators, results and calls where their own types are not complete: each is ignored here once, for all that use it.

Dagster says ``os.PathLike`` without what it holds wherever metadata may be given, which makes ``dg.job``, ``dg.sensor`` and
``dg.schedule`` partially unknown to pyright.
"""

# No postponed annotations here: Dagster compares those of results as types.
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

if TYPE_CHECKING:
    MaterializeResult = dg.MaterializeResult[Any]
else:  # Dagster does not know the type with an argument as the annotation of a step with several outputs
    MaterializeResult = dg.MaterializeResult

SensorFunction = Callable[[dg.SensorEvaluationContext], dg.SensorResult | dg.RunRequest | list[dg.RunRequest] | dg.SkipReason]
ScheduleFunction = Callable[[dg.ScheduleEvaluationContext], dg.RunRequest | dg.SkipReason]


def single_op_job(op: dg.OpDefinition, *, name: str, description: str, tags: Mapping[str, str]) -> dg.JobDefinition:
    """A job of one op."""

    @dg.job(name=name, description=description, tags=tags)  # pyright: ignore[reportUnknownMemberType] (see above)
    def job() -> None:
        op()

    return job


def with_resources(job: dg.JobDefinition, resources: Mapping[str, Any]) -> dg.JobDefinition:
    """A job with its resources, as a sensor of several jobs needs it: Dagster would warn of its own call that gives it those."""
    return job.with_top_level_resources({**job.resource_defs, **{key: _resource(value) for key, value in resources.items()}})


def _resource(value: Any) -> dg.ResourceDefinition:
    """What may stand among the resources of definitions, as Dagster takes it there."""
    if isinstance(value, dg.ResourceDefinition):
        return value
    made: Callable[[], dg.ResourceDefinition] | None = getattr(value, "get_resource_definition", None)
    return made() if made else dg.ResourceDefinition.hardcoded_resource(value)


def log_evaluation(context: dg.OpExecutionContext, evaluation: dg.AssetCheckEvaluation) -> None:
    """Logs the answer of a check in a step that is none."""
    context.log_event(evaluation)  # type: ignore[arg-type] (it takes more than it says)


def running_sensor(
    *,
    name: str,
    description: str,
    interval: int,
    job_name: str | None = None,
    jobs: Sequence[dg.JobDefinition] | None = None,
    target: Sequence[dg.AssetKey] | None = None,
    resources: frozenset[str] = frozenset(),
) -> Callable[[SensorFunction], dg.SensorDefinition]:
    """A sensor that runs from the start.

    Args:
        name: of the sensor.
        description: for operators.
        interval: seconds between ticks, at least.
        job_name: of the job that it asks runs of.
        jobs: that it asks runs of, where there are several; each request names its own.
        target: keys of the assets that it asks runs of.
        resources: keys of resources that its function needs.
    """
    return dg.sensor(  # pyright: ignore[reportUnknownMemberType] (see above)
        name=name,
        description=description,
        minimum_interval_seconds=interval,
        job_name=job_name,
        jobs=jobs,
        target=target,
        required_resource_keys=set(resources),
        default_status=dg.DefaultSensorStatus.RUNNING,
    )


def running_schedule(
    *, name: str, description: str, job_name: str, cron: str, time_zone: str
) -> Callable[[ScheduleFunction], dg.ScheduleDefinition]:
    """A schedule that runs from the start."""
    return dg.schedule(  # pyright: ignore[reportUnknownMemberType] (see above)
        name=name,
        description=description,
        job_name=job_name,
        cron_schedule=cron,
        execution_timezone=time_zone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
