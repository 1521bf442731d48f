"""The job that records what the runs of large loads left out (see :mod:`repl_assets.steps.record_rest`)."""

# No postponed annotations here: Dagster compares those of contexts as types.
import dagster as dg

from repl_assets.catalog.keys import AFTER_OTHERS, POLICY_TAG
from repl_assets.catalog.specs import Specs
from repl_assets.steps.engine import connected_engine
from repl_assets.steps.record_rest import record_rest
from repl_assets.typed import single_op_job


def record_job(specs: Specs) -> dg.JobDefinition:
    """``record``: logs what loads of the policy left out, at most a thousand objects a run, after all other runs."""
    names = specs.names

    @dg.op(
        name=names.local("record__rest"),
        required_resource_keys=names.resources,
        pool=names.local("record"),
        out=dg.Out(dg.Nothing),
    )
    def record(context: dg.OpExecutionContext) -> None:
        record_rest(context, connected_engine(context, names), names)

    return single_op_job(
        record,
        name=names.local("record"),
        description="Logs the partitions and tables of large loads that the loads' own runs left out.",
        tags={POLICY_TAG: names.policy, **AFTER_OTHERS},
    )
