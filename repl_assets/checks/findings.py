"""Findings of checks: as results and evaluations of Dagster, and the last evaluation of a check read back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from hive_replication.markdown import escaped
from hive_replication.statements import for_shell
from repl_assets.catalog.keys import Names, database_of, hive_name, partition_key, partition_name
from repl_assets.checks.answered import ANSWERED, answers_of_partitions, newest_executions
from repl_assets.dagster_private import AssetCheckExecutionRecord, PartitionKeyFilter
from repl_assets.dagster_private import AssetCheckExecutionRecordStatus as Status
from repl_assets.recording.metadata import asset_url

#: Metadata of a failed check: what to repair, one partition per line. Hive escapes line breaks in partition names.
REPAIR = "to repair"
WHOLE_TABLE = "the whole table"
#: Metadata of a failed check: what to do, and the page of what it is of, on which *Materialize* repairs it.
WHAT_TO_DO, REPAIR_PAGE = "what to do", "repair"
_NEVER = "cannot decide"  # metadata of an answer that no later one changes
_SOME = "of these partitions"
_MOST_PARTITIONS = 500  # listed one by one; if more differ, the whole table is repaired

Partitions = tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found.

    Args:
        metadata: shown on the check's page.
        repairs: partitions that differ, "" for the table itself; empty if nothing differs.
        differences: one sentence each; the first ones are the description, because Dagster shows tables only after a click.
        undecided: why the check could not decide, or "".
        never: whether it cannot of what it is asked, and nothing but the table's own change alters that.
        passed: False for a failure that no repair removes; one with ``repairs`` never passes.
        advice: what to do where it fails; "" where that is what is done about everything that differs (:func:`how_to_repair`).
        mended: whether a repair removes a failure without ``repairs``.
    """

    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    repairs: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    undecided: str = ""
    passed: bool = True
    never: bool = False
    advice: str = ""
    mended: bool = False

    def result(self, key: EvaluationKey, partitions: Partitions = None) -> dg.AssetCheckResult:
        """As the result of an asset check; a check that could not decide fails with severity WARN."""
        fields = self._fields(key, partitions)
        return dg.AssetCheckResult(asset_key=key.check.asset_key, check_name=key.check.name, **fields)

    def evaluation(self, key: EvaluationKey, partitions: Partitions = None) -> dg.AssetCheckEvaluation:
        """The same as an event, for jobs that are no asset checks."""
        fields = self._fields(key, partitions)
        return dg.AssetCheckEvaluation(
            asset_key=key.check.asset_key, check_name=key.check.name, partition=key.partition, **fields
        )

    def _fields(self, key: EvaluationKey, partitions: Partitions) -> dict[str, Any]:
        shown = dict(self.metadata) | ({_NEVER: True} if self.never else {})
        if partitions is not None:  # figures of some partitions are no points in the plot of the whole table's
            shown = {f"{name} ({_SOME})" if type(one) is int else name: one for name, one in shown.items()}
            shown = {"partitions checked": len(partitions), **shown}
        return {
            "passed": self.passed and not self.repairs and not self.undecided,
            "severity": dg.AssetCheckSeverity.WARN if self.undecided else dg.AssetCheckSeverity.ERROR,
            "description": escaped(self.undecided or "; ".join(self.differences[:3])) or None,
            "metadata": {**shown, **({REPAIR: _formatted(self.repairs)} if self.repairs else {}), **self._what_to_do(key)},
        }

    def _what_to_do(self, key: EvaluationKey) -> dict[str, Any]:
        advice = self.advice or (how_to_repair(key) if self.repairs else "")
        page = {REPAIR_PAGE: dg.MetadataValue.url(key.page(self.repairs))} if self.repairs or self.mended else {}
        return ({WHAT_TO_DO: advice} if advice else {}) | page


def partitions_to_repair(metadata: Mapping[str, Any]) -> Partitions:
    """Partitions that a failed check names for repair; empty for the whole table, None if it names nothing."""
    if REPAIR not in metadata:
        return None
    text = str(metadata[REPAIR].value)
    return () if text == WHOLE_TABLE else tuple(text.splitlines())


def is_undecided(evaluation: dg.AssetCheckEvaluation) -> bool:
    """Whether a check could not decide."""
    return not evaluation.passed and evaluation.severity == dg.AssetCheckSeverity.WARN


def may_decide(evaluation: dg.AssetCheckEvaluation) -> bool:
    """Whether a check could not decide, and may the next time."""
    return is_undecided(evaluation) and _NEVER not in evaluation.metadata


def _formatted(repairs: tuple[str, ...]) -> str:
    return WHOLE_TABLE if "" in repairs or len(repairs) > _MOST_PARTITIONS else "\n".join(repairs)


@dataclass(frozen=True, slots=True)
class EvaluationKey:
    """The key under which Dagster stores the evaluations of a check.

    Args:
        check: the check.
        partition: in a database in overflow the table, which is a partition of one asset; else None.
    """

    check: dg.AssetCheckKey
    partition: str | None = None

    @property
    def names(self) -> tuple[str, str]:
        """Database and table at the source; no table ("") where the check is of a database."""
        asset = self.check.asset_key
        table = partition_name(self.partition) if self.partition else hive_name("".join(asset.path[2:]))
        return database_of(asset), table

    def page(self, partitions: Sequence[str] = ()) -> str:
        """Path of the page on which *Materialize* repairs what the check is of: of its one partition, or with several to choose.

        Args:
            partitions: Hive names of those that differ, "" for the table itself.
        """
        asset = self.check.asset_key
        if self.partition or not any(partitions):
            return asset_url(asset, self.partition)
        return asset_url(asset, partition_key(partitions[0])) if len(partitions) == 1 else f"{asset_url(asset)}?view=partitions"

    @classmethod
    def of(cls, names: Names, database: str, table: str, check: str) -> EvaluationKey:
        """The key for a table, by its name at the source."""
        asset, partition = names.replica(database, table)
        return cls(dg.AssetCheckKey(asset, check), partition)

    @classmethod
    def of_database(cls, names: Names, database: str, check: str) -> EvaluationKey:
        """The key for a whole database, by its name at the source."""
        return cls(dg.AssetCheckKey(names.database(database, "load"), check))


def how_to_repair(key: EvaluationKey) -> str:
    """What to do about whatever differs."""
    return f"materialize it in Dagster, or hive-repl repair {for_shell(*key.names)}"


def last_failure(instance: dg.DagsterInstance, key: EvaluationKey) -> dg.AssetCheckEvaluation | None:
    """The last evaluation of a check if it failed."""
    record = last_execution(instance, key, ANSWERED)
    found = record.evaluation if record else None
    return None if found is None or found.passed else found


def last_execution(
    instance: dg.DagsterInstance, key: EvaluationKey, status: AbstractSet[Status]
) -> AssetCheckExecutionRecord | None:
    """The last execution of a check with one of these statuses."""
    return next(iter(last_executions(instance, key, status, 1)), None)


def last_executions(
    instance: dg.DagsterInstance, key: EvaluationKey, status: AbstractSet[Status], number: int
) -> Sequence[AssetCheckExecutionRecord]:
    """The last executions of a check with one of these statuses, the newest first."""
    partition = PartitionKeyFilter(key=key.partition) if key.partition else None
    history = instance.event_log_storage.get_asset_check_execution_history
    return history(key.check, limit=number, status=status, partition_filter=partition)


def states_of_partitions(
    instance: dg.DagsterInstance, names: Names, database: str, check: str, *, gone: bool = False
) -> dict[str, Status]:
    """The state of the last answer of a check by table of a database in overflow, as partition key; else that it is to come.

    Dagster keeps the answers of partitions that it knows no more; nothing answers for a table again that was dropped.

    Args:
        instance: Dagster's.
        names: of the policy.
        database: source name.
        check: its name.
        gone: also of tables that are there no more.
    """
    key = dg.AssetCheckKey(names.tables(database), check)
    found = instance.event_log_storage.get_asset_check_partition_info([key])
    known = set(instance.get_dynamic_partitions(str(names.table_partitions(database).name)))  # empty before the next load, if new
    states = {
        one.partition_key: one.latest_execution_status
        for one in found
        if one.partition_key and (gone or not known or one.partition_key in known)
    }
    return states | answers_of_partitions(instance, key, [one for one, status in states.items() if status not in ANSWERED])


def failed_tables(
    instance: dg.DagsterInstance, names: Names, database: str, check: str, tables: Iterable[str], *, gone: bool = False
) -> list[str]:
    """Tables of which the last answer of a check is a failure, also where a run has announced another one.

    Who repairs need not wait for that: it may never come, and a repair of what is equal by then changes nothing.

    Args:
        instance: Dagster's.
        names: of the policy.
        database: source name.
        check: its name.
        tables: those that have the check, if they have assets of their own; else all that were checked are looked at.
        gone: of those also tables that are there no more.
    """
    if database in names.overflow:
        states = states_of_partitions(instance, names, database, check, gone=gone)
        return [partition_name(partition) for partition, status in states.items() if status == Status.FAILED]
    keys = {dg.AssetCheckKey(names.table(database, table, "load"), check): table for table in tables}
    return [keys[key] for key, record in newest_executions(instance, list(keys)).items() if record.status == Status.FAILED]


def last_answers(
    instance: dg.DagsterInstance, names: Names, database: str, check: str, tables: Sequence[str]
) -> dict[str, dg.AssetCheckEvaluation]:
    """The last answers of a check by table, of tables that were not materialized since: Dagster shows an older one as none.

    Nor does it show one after which a run has announced another.
    """
    storage = instance.event_log_storage
    if not tables:
        return {}
    if database in names.overflow:
        infos = storage.get_asset_check_partition_info([dg.AssetCheckKey(names.tables(database), check)])
        shown = {
            one.partition_key for one in infos if (one.latest_materialization_storage_id or 0) < one.latest_check_event_storage_id
        }
        keys = {table: EvaluationKey.of(names, database, table, check) for table in tables}
        latest = {table: last_execution(instance, key, set(Status)) for table, key in keys.items() if key.partition in shown}
    else:
        checks = {table: EvaluationKey.of(names, database, table, check).check for table in tables}
        found = storage.get_latest_asset_check_execution_by_key([*checks.values()])
        old = outdated(instance, found)
        latest = {table: found.get(key) for table, key in checks.items() if key not in old}
    return {table: record.evaluation for table, record in latest.items() if record and record.evaluation}


def outdated(
    instance: dg.DagsterInstance, answered: Mapping[dg.AssetCheckKey, AssetCheckExecutionRecord]
) -> set[dg.AssetCheckKey]:
    """Those of the last answers, by check, after which the assets were materialized."""
    records = instance.get_asset_records([check.asset_key for check in answered])
    made = {one.asset_entry.asset_key: one.asset_entry.last_materialization for one in records}
    # The event's time: databases may keep that of the record in whole seconds.
    times = {check: record.event.timestamp if record.event else record.create_timestamp for check, record in answered.items()}
    return {check for check, time in times.items() if (latest := made.get(check.asset_key)) and latest.timestamp > time}


def with_failed(chosen: Partitions, failed: dg.AssetCheckEvaluation | None) -> Partitions:
    """What to check after a repair of ``chosen``: these partitions and those that failed last; None for the whole table.

    After an answer that could not decide nobody knows which fail.
    """
    before = partitions_to_repair(failed.metadata) if failed else None
    if chosen is None or before == () or (failed and is_undecided(failed)):
        return None
    return tuple(sorted({*chosen, *(before or ())}))
