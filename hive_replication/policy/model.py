"""The policy: what is replicated from where to where, under which names and limits. Read from YAML by the CLI and by Dagster."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ModelWrapValidatorHandler, ValidationInfo, model_validator

from hive_replication.errors import BadRequest
from hive_replication.policy.acid import Acid
from hive_replication.policy.addresses import valid_place
from hive_replication.policy.checks import Checks, Drift, Witness
from hive_replication.policy.cron import valid_cron
from hive_replication.policy.database_names import is_pattern, unused, valid_databases, valid_names
from hive_replication.policy.hours import quoted_time, valid_hours, valid_zone
from hive_replication.policy.parallelism import Parallelism
from hive_replication.policy.partition_filter import PartitionFilter
from hive_replication.policy.privileges import Privileges
from hive_replication.policy.scope import (
    PartitionFilters,
    PolicyScope,
    closed_filters,
    closed_patterns,
    matches,
    valid_filters,
    valid_keys,
    valid_patterns,
    without_tables,
)
from hive_replication.policy.secrets import KEY, idle_references, only_references, without_password
from hive_replication.policy.warehouse import Location, Place, Settings, Warehouse, valid_locations, with_tokens_of_their_own
from hive_replication.policy.wrong_setting import KEPT, WrongSetting, unless_kept, validated

#: What replicas keep of their source's files and directories on HDFS.
Preserved = Literal["owner", "group", "mode", "acl", "xattr"]
#: Patterns of names of tables.
Patterns = Annotated[tuple[str, ...], AfterValidator(valid_patterns), unless_kept(closed_patterns)]
#: Names of databases, or patterns of them, and what they are on the target.
Databases = Annotated[dict[str, str], AfterValidator(valid_databases), unless_kept(valid_names), unless_kept(valid_keys)]
#: What becomes of the texts of views that name a database which has another name on the target.
RenamedViews = Literal["rewrite", "rewrite-or-warn", "warn", "hold"]
#: What a load does with an object of the target that is in the way and no replica.
ConflictPolicy = Literal["refuse", "adopt", "replace", "keep-aside"]


def _preserved(what: tuple[Preserved, ...]) -> tuple[Preserved, ...]:
    if what and "mode" not in what:
        raise ValueError("mode is needed beside the others: without it data may be readable by more than at the source")
    return what


class Policy(Settings):
    """What is replicated from where to where.

    ``databases`` maps source names to target names. ``tables`` and ``exclude`` are patterns of table names.
    """

    name: str = Field(
        default="default", pattern=r"^[A-Za-z0-9_]+$", description="Name of the policy, written into repl.source.for"
    )
    source: Warehouse = Field(description="The side that is read")
    target: Warehouse = Field(description="The side that is written")
    dump_root: Annotated[str, unless_kept(without_password), unless_kept(valid_place)] = Field(
        description="Directory for dumps, under a root of source or target or a local file:// path"
    )
    databases: Databases = Field(
        min_length=1, description="Target names by source names, or by shell patterns of them; * in a target name is the source's"
    )
    new_databases: bool = Field(default=False, description="Patterns in databases also take in databases that are created later")
    tables: Patterns = Field(default=("*",), description="Patterns of the tables replicated: fact_*, or /fact_[0-9]+/")
    exclude: Patterns = Field(
        default=(), description="Shell patterns, or /regular expressions/, of tables that are not; these win"
    )
    excluded: Literal["keep", "drop"] = Field(
        default="keep",
        description="What becomes of replicas that the policy no longer includes: they stay as they are, marked, or are dropped",
    )
    partition_filters: Annotated[dict[str, dict[str, str]], AfterValidator(valid_filters), unless_kept(closed_filters)] = Field(
        default_factory=dict[str, dict[str, str]],
        description="Which partitions are replicated: by source database, or shell pattern, and pattern of tables a filter as "
        "Hive's metastore takes it, e.g. sales: {orders: dt >= '2026-01-01'}; the first pattern that matches counts",
    )
    renamed_views: RenamedViews = Field(
        default="rewrite",
        description="Views that name databases of other names on the target: rewritten (else held, or as is), as is, or held",
    )
    materialized_views: Literal["skip", "definition"] = Field(
        default="skip", description="Materialized views: left out, or their definition, as ordinary views without data"
    )
    locations: Annotated[dict[str, Location], AfterValidator(valid_locations)] = Field(
        default_factory=dict[str, str],
        description="Directories of target databases, by their names on the target; where absent the target's metastore chooses",
    )
    owners: dict[str, str] = Field(
        default_factory=dict[str, str],
        description="Owners of databases, tables and functions on the target, by those at the source; others keep their names",
    )
    privileges: Privileges = Field(default=Privileges(), description="Grants and roles that the metastore keeps")
    external_root: Place | None = Field(
        default=None,
        description="Where external tables outside their database's directory go, below a root of the target; their path is kept "
        "below",
    )
    missing_directories: Literal["hold", "empty"] = Field(
        default="hold",
        description="Tables and partitions whose directory the source lacks: held, or replicated as empty, as the report says",
    )
    metadata_only: bool = Field(
        default=False, description="Tables, views and database properties only: no data, no partitions; the source is not marked"
    )
    functions_root: Place | None = Field(
        default=None, description="Where resources of functions go, below <db>/<function>/<evid>/; default: with the database"
    )
    without_cmroot: bool = Field(default=False, description="Go on where repl.source.for cannot be set on the source database")
    preserve: Annotated[tuple[Preserved, ...], AfterValidator(_preserved)] = Field(
        default=("owner", "group", "mode", "acl"),
        description="What replicas keep of their source's files and directories on HDFS, as far as the account may; without mode "
        "they get the target's defaults. xattr, the extended attributes, costs a request for each file",
    )
    read_only: bool = Field(default=False, description="Target databases get readonly=true, by which HiveServer2 refuses writers")
    append: Literal["files", "atomic"] = Field(
        default="files",
        description="INSERT INTO: files appear one after another as in Hive, or all at once (the partition is copied)",
    )
    collapse: bool = Field(default=True, description="Bring each object of a window to its end at once, not event by event")
    conflicts: ConflictPolicy = Field(
        default="refuse", description="What to do with databases, tables and partitions on the target that are in the way"
    )
    grace_seconds: int = Field(
        default=600, ge=0, description="How long replaced and dropped data stays in place for readers on their way"
    )
    retention_seconds: int = Field(
        default=7 * 86_400, ge=0, description="How long old data, journals and dumps are kept to go back; then retention deletes"
    )
    retention_at: Annotated[str | None, BeforeValidator(quoted_time)] = Field(
        default="03:00",
        pattern=r"^([01]\d|2[0-3]):[0-5]\d$",
        description="Time of day, in time_zone, at which Dagster's job retention runs; never where null",
    )
    keep_runs_days: int | None = Field(
        default=90,
        gt=0,
        description="Days after which that job forgets Dagster's records of runs, save those that show an asset's latest state; "
        "never where null",
    )
    keep_reports_days: int | None = Field(
        default=90,
        gt=0,
        description="Days for which reports of loads and records of what operators did are kept below the dump root; for ever "
        "where null",
    )
    max_events: int = Field(default=10_000, gt=0, description="Most events of one window")
    max_message_bytes: int = Field(  # no larger one fits into a dump
        default=64 << 20, gt=0, le=64 << 20, description="Bytes an event's message may unpack to; a larger one holds its table"
    )
    packed_above: int = Field(
        default=50, ge=0, description="Dumps of more tables, partitions and events are written as a few Parquet files"
    )
    driver_max_files: int = Field(default=200, ge=0, description="Windows with more files are copied in Spark executors")
    driver_max_bytes: int = Field(default=64 * 2**20, ge=0, description="Windows with more bytes are copied in Spark executors")
    driver_max_directories: int = Field(
        default=2_000,
        ge=0,
        description="Directories beyond so many are listed in Spark executors (Dagster)",
    )
    schedule: Annotated[str, AfterValidator(valid_cron)] | None = Field(
        default=None,
        description="When windows start: a cron expression in time_zone, e.g. */15 * * * *; where absent, when there are events",
    )
    hours: tuple[Annotated[str, AfterValidator(valid_hours)], ...] = Field(
        default=(), description="When new windows may begin, e.g. 22:00-06:00 or Sat-Sun 00:00-24:00; always where empty"
    )
    time_zone: Annotated[str, AfterValidator(valid_zone)] = Field(
        default="UTC", description="Time zone of schedules and hours, e.g. Europe/Berlin"
    )
    priorities: Annotated[dict[str, int], unless_kept(valid_keys)] = Field(
        default_factory=dict[str, int],
        description="Source databases, or shell patterns of them, whose runs come before (above 0) or after (below) others",
    )
    bandwidth: int | None = Field(
        default=None, gt=0, description="Most bytes per second that one load copies; no limit where absent"
    )
    files_in_flight: int = Field(default=128, gt=0, description="Files that the driver, or each Spark task, copies at a time")
    spark_tasks: int | None = Field(
        default=None, gt=0, description="Most Spark tasks that copy at a time; as many as the executors have cores where absent"
    )
    metastore_connections: int = Field(
        default=64, gt=0, description="Most connections, and so calls at a time, of one process to each metastore"
    )
    parallelism: Parallelism = Field(default_factory=Parallelism, description="How much one process does at a time")
    approval: bool = Field(default=False, description="Each window is planned first, and loaded when an operator has approved it")
    lag_target_seconds: int = Field(
        default=900, gt=0, description="How long an event may wait: the check up_to_date and alarms go by it"
    )
    acid: Acid = Field(default_factory=Acid, description="Transactional tables")
    signing_key: Annotated[str, Field(pattern=KEY)] | None = Field(
        default=None,
        description="Where the key is that signs dumps and approvals, ${env:NAME} or ${file:/path}; those that it has not signed "
        "are refused. Not signed where absent",
    )
    drift: Drift | None = Field(default=None, description="Look for writes that leave no event; not at all where absent")
    checks: Checks = Field(default=Checks(), description="What is checked of replicas (Dagster)")
    witness: Witness = Field(default=Witness(), description="How the check same_objects compares both sides (Dagster)")
    spark: Annotated[dict[str, str], unless_kept(only_references)] = Field(
        default_factory=dict[str, str],
        description="Settings of the Spark session, e.g. spark.master; secrets as ${env:NAME} or ${file:/path}",
    )

    @model_validator(mode="wrap")
    @classmethod
    def _references_where_they_are_read(
        cls, settings: object, validate: ModelWrapValidatorHandler[Policy], info: ValidationInfo
    ) -> Policy:
        return validated(lambda: validate(settings), [] if info.context == KEPT else [*idle_references(settings)])

    @model_validator(mode="after")
    def _filters_of_its_databases(self) -> Policy:
        for problem in unused("partition_filters", self.partition_filters, self.databases):
            raise problem  # more than was meant would be replicated
        return self

    @model_validator(mode="after")
    def _with_tokens(self, info: ValidationInfo) -> Policy:
        if info.context != KEPT:
            with_tokens_of_their_own(self.source, self.target)
        return self

    @model_validator(mode="after")
    def _within_reach(self) -> Policy:
        """What the target is to hold lies on one of its stores: found here, not by the first table that needs it."""
        locations = ((("locations", name), directory) for name, directory in self.locations.items())
        for setting, directory in (
            (("external_root",), self.external_root),
            (("functions_root",), self.functions_root),
            *locations,
        ):
            if directory and not any((directory + "/").startswith(root.uri) for root in self.target.roots):
                roots = ", ".join(root.uri for root in self.target.roots)
                said = f"{'.'.join(setting)} {directory} lies under none of the target's storage roots ({roots})"
                raise WrongSetting(setting, said)
        return self

    def without_effect(self) -> list[WrongSetting]:
        """What is wrong with settings that do nothing; replication goes on with them, as it does when a database is dropped."""
        names = unused("priorities", self.priorities, self.databases)
        places = unused("locations", self.locations, self.databases, on_target=True)
        return [*names, *places, *without_tables(self.tables, self.exclude), *self.checks.without_effect()]

    def target_of(self, database: str) -> str:
        """Name of a source database on the target (its own where the policy does not name it)."""
        pattern = self.pattern_of(database)
        target = self.databases[pattern].replace("*", database) if pattern else database
        return self.databases.get(database, target)

    def has_database(self, database: str) -> bool:
        """Whether a source database is one of the policy, by its name or by a pattern."""
        return database in self.databases or self.pattern_of(database) is not None

    def require_database(self, database: str) -> None:
        """Makes sure that a source database is one of the policy.

        Raises:
            BadRequest: it is not.
        """
        if not self.has_database(database):
            known = ", ".join(sorted(self.databases))
            raise BadRequest(f"the policy {self.name!r} has no database {database!r}; it has: {known}")

    def pattern_of(self, database: str) -> str | None:
        """The first pattern in ``databases`` that matches a source database."""
        return next((one for one in self.databases if is_pattern(one) and matches(database, [one])), None)

    def priority(self, database: str) -> int:
        """Priority of a source database's runs: of its name, else of the first pattern that it matches, else 0."""
        found = (value for pattern, value in self.priorities.items() if matches(database, [pattern]))
        named = {name.lower(): value for name, value in self.priorities.items()}
        return named.get(database.lower(), next(found, 0))

    def takes(self, event_type: str) -> bool:
        """Whether events of a type belong to the policy: if ``metadata_only``, those of data and what comes with it do not."""
        kinds = ("PARTITION", "COL_STAT", "FUNCTION", "TXN", "WRITE_ID")
        data = event_type == "INSERT" or any(word in event_type for word in kinds)
        return not (self.metadata_only and data)

    def includes(self, table: str) -> bool:
        """Whether a table's name belongs to the policy; exclusion wins (as in Hive's table-level policies)."""
        return self.scope("").includes(table)

    def scope(self, database: str, *, acid: bool = True) -> PolicyScope:
        """Which tables of a source database are replicated, and which of their partitions.

        Args:
            database: of the source.
            acid: whether the source gives transactional tables, where data is replicated (:attr:`.Source.acid`).
        """
        acid, views = self.acid.replicate and (acid or self.metadata_only), self.replicates_materialized_views
        return PolicyScope(self.tables, self.exclude, self.metadata_only, acid, self.filters(database), views)

    @property
    def pair(self) -> tuple[str, str]:
        """The metastores of source and target: another policy with the same dump root has others."""
        return self.source.metastore, self.target.metastore

    @property
    def replicates_materialized_views(self) -> bool:
        """Whether materialized views are replicated, as ordinary views."""
        return self.materialized_views == "definition"

    def filters(self, database: str) -> PartitionFilters:
        """The partition filters of a source database: of its name, else of the first pattern that it matches."""
        patterns = [database, *(pattern for pattern in self.partition_filters if matches(database, [pattern]))]
        found = next((self.partition_filters[one].items() for one in patterns if one in self.partition_filters), ())
        return PartitionFilters(() if self.metadata_only else tuple(found))

    def partition_filter(self, database: str, table: str) -> PartitionFilter | None:
        """The partition filter of a source table."""
        return self.filters(database).of(table)
