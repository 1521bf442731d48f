"""The job that looks for drift where a tick of the sensor has no time for it: in tables of many partitions, and in slow ones."""

# No postponed annotations here: Dagster compares those of contexts as types.
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from hive_replication.connect import Connection
from hive_replication.drift import DriftScan, NoReplica, TableDrift
from hive_replication.errors import BadRequest, ReplicationError, Unreachable
from hive_replication.policy.checks import Drift
from hive_replication.progress import LoggedProgress
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import AFTER_OTHERS, DATABASE_TAG, POLICY_TAG, Names
from repl_assets.catalog.specs import Specs
from repl_assets.jobs.found_drift import MOST_HANDED, FoundDrift, Handover
from repl_assets.recording.metadata import markdown_table
from repl_assets.steps.engine import as_dagster_failure, connected_engine, connection_resource, listed_by
from repl_assets.typed import single_op_job
from resources.java import has_java


def find_drift_job_name(names: Names, database: str) -> str:
    """Name of the job that looks for drift in a database."""
    return names.local(f"find_drift_{database}")


def find_drift_request(names: Names, database: str, tables: Sequence[str], begun: float) -> dg.RunRequest:
    """A run of the job for tables that the sensor's round leaves to it; one a round.

    Args:
        names: of the policy.
        database: source name.
        tables: source names.
        begun: when the round began, seconds since the epoch.
    """
    return dg.RunRequest(
        run_key=f"{names.policy}:find_drift:{database}:{begun:.0f}",
        job_name=find_drift_job_name(names, database),
        run_config={"ops": {_op_name(names, database): {"config": {"tables": list(tables), "begun": begun}}}},
        tags={POLICY_TAG: names.policy, DATABASE_TAG: database},
    )


def _op_name(names: Names, database: str) -> str:
    return names.local(f"find_drift_{database}__tables")


@dataclass
class Looked:
    """What a run has seen of a database.

    Args:
        tables: what was found of each.
        failed: why others cannot be read.
        absent: tables that were asked for, and are not in the source any more.
    """

    tables: list[TableDrift] = field(default_factory=list[TableDrift])
    failed: list[str] = field(default_factory=list[str])
    absent: list[str] = field(default_factory=list[str])

    def metadata(self) -> dict[str, Any]:
        """Figures, and what has drifted."""
        drifted = [(one.table, part.partition, part.reason) for one in self.tables for part in one.drifted]
        later = [(one.table, one.waiting or f"{len(one.writing)} being written") for one in self.tables if _waits(one)]
        found: dict[str, Any] = {
            "tables looked at": len(self.tables),
            "partitions looked at": sum(one.looked for one in self.tables),
            "directories listed": sum(one.listings for one in self.tables),
            "drifted": len(drifted),
        }
        if drifted:
            found["what has drifted"] = markdown_table(("table", "partition", "files"), drifted, len(drifted))
        if left := sum(max(0, len(one.drifted) - MOST_HANDED) for one in self.tables):
            found["not yet handed over"] = left
        if later:
            found["not told"] = markdown_table(("table", "why"), later, len(later))
        if self.absent:
            found["not in the source"] = ", ".join(self.absent)
        return found


def look(
    scan: DriftScan, tables: Sequence[str], progress: LoggedProgress, drifted: Callable[[TableDrift], None], *, finish: bool
) -> Looked:
    """Scans tables, one after another; one that cannot be read does not stop the others.

    Args:
        scan: of the database.
        tables: names at the source; all where none is named.
        progress: shows the progress.
        drifted: told of each table that has drifted as soon as that is known.
        finish: whether all tables of the round are scanned then.

    Raises:
        BadRequest: there is no replica, or the source has none of the tables, which may have been dropped since a round began.
        Unreachable: a metastore does not answer.
    """
    present, looked = scan.names(), Looked()
    wanted = {one.lower() for one in tables or present}
    looked.absent = sorted(wanted.difference(present))
    if len(looked.absent) == len(wanted) > 0 and not finish:
        raise BadRequest(f"the source has no table {', '.join(looked.absent)} of the policy in {scan.database}")
    names = [one for one in present if one in wanted]
    for name in progress.over(names, f"tables of {scan.database}"):
        try:
            found = scan.table(name)
        except Unreachable:
            raise
        except NoReplica as error:  # since the scan began: it has nothing more to do
            progress.log.info("%s: %s", scan.database, error)
            return looked
        except (ReplicationError, OSError) as error:
            looked.failed.append(f"{name} cannot be read: {error}")
            continue
        if found is None:
            continue
        looked.tables.append(found)
        if found.is_unread:
            looked.failed.append(f"{name}: {found.waiting}")
        if found.drifted:
            drifted(found)
    if finish:
        scan.finish()
    return looked


def _waits(found: TableDrift) -> bool:
    return bool(found.waiting or (found.writing and not found.drifted))


def find_drift_job(specs: Specs, database: CatalogDatabase) -> dg.JobDefinition:
    """``find_drift_<db>``: finds writes that left no event, in tables that a tick of the sensor has no time for, or in all."""
    names, drift = specs.names, specs.policy.drift or Drift()

    @dg.op(
        name=_op_name(names, database.name),
        config_schema={
            "tables": dg.Field([str], default_value=[], description="Tables at the source; where none is named, all"),
            "begun": dg.Field(float, default_value=0.0, description="When the sensor's round began that the run is a part of"),
        },
        required_resource_keys=names.resources,
        pool=names.local("find_drift"),
        out=dg.Out(dg.Nothing),
    )
    def find(context: dg.OpExecutionContext) -> Iterator[dg.Output[None]]:
        connection, clock = _connected(context, names), time.monotonic()
        tables, round_began = context.op_config["tables"], float(context.op_config["begun"])
        begun, handover = round_began or time.time(), Handover(context.instance, names, database.name)
        progress = LoggedProgress(context.log)
        scan = DriftScan(connection.source, connection.target, database.name, drift.settle, begun=begun, progress=progress)
        with as_dagster_failure():
            looked = look(
                scan,
                tables,
                progress,
                lambda found: handover.add(FoundDrift.of(found, begun)),
                finish=bool(round_began) or not tables,
            )
        for sentence in scan.told(looked.tables):
            context.log.info("%s: %s", database.name, sentence)
        metadata = looked.metadata() | {
            "seconds": time.monotonic() - clock,
            "listed by": listed_by(context, connection, names) or "threads",
        }
        if looked.failed:
            raise dg.Failure("; ".join(looked.failed), metadata=metadata)
        yield dg.Output(None, metadata=metadata)

    return single_op_job(
        find,
        name=find_drift_job_name(names, database.name),
        description=f"Looks for writes to tables of {database.name} that left no event; the sensor on drift has them repaired.",
        tags={POLICY_TAG: names.policy, DATABASE_TAG: database.name, **AFTER_OTHERS},
    )


def _connected(context: dg.OpExecutionContext, names: Names) -> Connection:
    """Both sides; without Java all directories are listed by threads, a batch of partitions after the other, as a tick does."""
    connection = connected_engine(context, names).connection
    if has_java():
        return connection
    context.log.info("no Java is found for Spark: all directories are listed by threads")
    return connection_resource(context, names).connect()
