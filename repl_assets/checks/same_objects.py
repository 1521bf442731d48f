"""The check ``same_objects``: what both sides hold, compared after each window and by a schedule, from themselves alone.

The figures are counted in ``hive_replication.verify.witness``.
"""

# No postponed annotations here: Dagster compares those of contexts as types.
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg
from pydantic import TypeAdapter, ValidationError

from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.logs import about, unexpected
from hive_replication.markdown import link
from hive_replication.verify.witness import Remembered, Round, witness
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import AFTER_OTHERS, POLICY_TAG, SAME_OBJECTS, Names
from repl_assets.catalog.specs import Specs
from repl_assets.checks.answered import ANSWERED
from repl_assets.checks.findings import EvaluationKey, Finding, how_to_repair, last_execution
from repl_assets.recording.metadata import markdown_table
from repl_assets.steps.engine import Engine, connected_engine
from repl_assets.typed import log_evaluation, single_op_job

_REMEMBERED = "for the next round"
_MOST = 1_000  # differences that are remembered; there are more only where much else is wrong
_ITSELF = "the database itself"
_STORED = TypeAdapter(list[Remembered])


def same_objects_check(specs: Specs, database: CatalogDatabase) -> dg.AssetChecksDefinition:
    """The check of a database; the job of the same name answers it, too."""
    names = specs.names
    key = names.database(database.name, "load")

    @dg.asset_check(
        asset=key,
        name=SAME_OBJECTS,
        description="Source and target hold the same tables, partitions and files, as both sides' metastores and storages say.",
        blocking=SAME_OBJECTS in specs.policy.checks.blocking,
        required_resource_keys=names.resources,
    )
    def same_objects(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        found = look(context.instance, connected_engine(context, names), names, database.name)
        return found.result(EvaluationKey.of_database(names, database.name, SAME_OBJECTS))

    return same_objects


def look(instance: dg.DagsterInstance, engine: Engine, names: Names, database: str) -> Finding:
    """One round of the witness over a database; what keeps it from deciding is told, and left to the next one. Others go on."""
    key = EvaluationKey.of_database(names, database, SAME_OBJECTS)
    last = last_execution(instance, key, ANSWERED)
    known: Mapping[str, Any] = last.evaluation.metadata if last and last.evaluation else {}
    try:
        source, target = engine.connection.source, engine.connection.target
        found = round_finding(witness(source, target, database, earlier=remembered(known)), names, database)
    except Exception as error:  # noqa: BLE001 - it is told, whatever it is
        why = str(error) if isinstance(error, ReplicationError) else unexpected(error, about(database))
        return Finding({name: value for name, value in known.items() if name == _REMEMBERED}, undecided=why)
    for text in found.differences:
        engine.log.warning("source and target of %s differ: %s", database, text)
    return found


def same_objects_job_name(names: Names) -> str:
    """Name of the job that compares all databases of a policy."""
    return names.local(SAME_OBJECTS)


def same_objects_job(specs: Specs, databases: Sequence[CatalogDatabase]) -> dg.JobDefinition:
    """``same_objects``: answers the check of all databases that have a replica."""
    names = specs.names

    @dg.op(
        name=names.local("same_objects__all"),
        required_resource_keys=names.resources,
        pool=names.local(SAME_OBJECTS),
        out=dg.Out(dg.Nothing),
    )
    def compare(context: dg.OpExecutionContext) -> Iterator[dg.Output[None]]:
        engine = connected_engine(context, names)
        wrong: list[str] = []
        for database in databases:
            if not _has_replica(engine, database.name):
                continue
            found = look(context.instance, engine, names, database.name)
            log_evaluation(context, found.evaluation(EvaluationKey.of_database(names, database.name, SAME_OBJECTS)))
            wrong += [database.name] if not found.passed else []
        yield dg.Output(None, metadata={"databases that differ": ", ".join(wrong) or "none"})

    return single_op_job(
        compare,
        name=same_objects_job_name(names),
        description=f"Compares what source and target of policy {names.policy} hold, from their metastores and storages alone.",
        tags={POLICY_TAG: names.policy, **AFTER_OTHERS},
    )


def _has_replica(engine: Engine, database: str) -> bool:
    """Whether a database has a finished replica; of a state that cannot be read the look says why, and other databases go on."""
    try:
        return engine.state(database).applied is not None
    except Unreachable:
        raise
    except Exception:  # noqa: BLE001 - likewise
        return True


def round_finding(found: Round, names: Names, database: str) -> Finding:
    """A round of the witness as the finding of a check. It fails for what is wrong, not for what may only wait.

    Args:
        found: the round.
        names: of the policy.
        database: source name.
    """
    if found.applied is None:
        return Finding(undecided="no bootstrap of the database is finished")
    counts = found.counts
    metadata: dict[str, Any] = {
        "tables at source": counts.tables[0],
        "tables at target": counts.tables[1],
        "partitions at source": counts.partitions[0],
        "partitions at target": counts.partitions[1],
        "names at source": found.digests[0],
        "names at target": found.digests[1],
        "partitions described": counts.described,
        "directories listed": counts.directories,
        "files at source": counts.files[0],
        "files at target": counts.files[1],
        "checksums compared": counts.checksums,
        "compacted, rows not compared": counts.unread,
        "applied event id": found.applied,
        "source event id": found.current,
        "wrong": len(found.wrong),
        "may wait for events": len(found.waiting),
    }
    told = sorted((not one.wrong, (of := one.difference).table, of.partition, of.text) for one in found.differences)
    rows = [
        (table or _ITSELF, part, text, "may wait for events" if waits else _page(names, database, table, part))
        for waits, table, part, text in told
    ]
    if rows:
        head = ("table", "partition", "difference", "")
        metadata["differences"] = markdown_table(head, rows, len(rows))
        metadata[_REMEMBERED] = dg.MetadataValue.json(_STORED.dump_python(list(found.differences[:_MOST]), mode="json"))
    texts = tuple(f"{one.table or _ITSELF}{f'/{one.partition}' if one.partition else ''}: {one.text}" for one in found.wrong)
    advice = f"repair what differs: {how_to_repair(EvaluationKey.of_database(names, database, SAME_OBJECTS))}" if texts else ""
    if not all(one.table for one in found.wrong):  # a repair compares tables, and would find nothing to do
        advice += " --force, which also brings the database's own comment, owner and properties"
    return Finding(metadata, (), texts, passed=not texts, advice=advice)


def _page(names: Names, database: str, table: str, partition: str) -> str:
    """A link to where a database, table or partition is repaired; a function has no page."""
    whole = EvaluationKey.of_database(names, database, SAME_OBJECTS)
    key = EvaluationKey.of(names, database, table, SAME_OBJECTS) if table else whole
    return "" if table.endswith("()") else link("repair", key.page((partition,)))


def remembered(metadata: Mapping[str, Any]) -> Sequence[Remembered]:
    """The differences of the last round; none where it left none that can be read."""
    value = metadata.get(_REMEMBERED)
    try:
        return _STORED.validate_python(value.value) if value is not None else []
    except ValidationError:
        return []
