"""What a dump needs of the source: its metastore, its storage, and the facts that go into every dump's header."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from hive_replication.dump.beginnings import OpenedInLog, UnnamedEnds
from hive_replication.dump.cm_roots import CmRoots, cm_roots
from hive_replication.dump.database_homes import with_homes
from hive_replication.dump.format.record_types import Scope
from hive_replication.dump.listing import Lister
from hive_replication.dump.source_boundary import SourceBoundary, source_boundary
from hive_replication.errors import BadRequest
from hive_replication.events.event_records import is_function
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.materialized_views import is_materialized
from hive_replication.metastore.table_kinds import is_transactional, is_view, lake_format
from hive_replication.metastore.types import Database, Table, is_remote
from hive_replication.parallel import Threads
from hive_replication.policy import Policy
from hive_replication.policy.scope import of_expressions
from hive_replication.statements import Tables
from hive_replication.storage import Storage
from hive_replication.storage.boundary import qualified

SOURCE_FOR = "repl.source.for"
#: Why databases of data connectors are not replicated.
REMOTE: Final = "its tables are those of another system, which the metastore reads by a data connector: take it out of the policy"
#: What Hive's replication and this one set on a database that is a replica.
_REPLICA = ("repl.last.id", "repl.target.for")
#: Of a database that was opened, for good: data that loads placed below its ``.repl`` is its own from then on. Its value is the
#: newest event id of its log then: up to it, transactions stand for those of its old source. Earlier versions wrote ``true``.
WAS_REPLICA: Final = "hive_replication.was_replica"
#: Of a database that was opened: the same before the last of these transactions ended.
OPENED: Final = "hive_replication.failover.opened"


@dataclass(frozen=True)
class Source:
    """The source side of a policy, connected.

    Its metastore shows the partitions that the policy's filters include, and materialized views as the views that replicas are.
    """

    metastore: Metastore
    storage: Storage
    policy: Policy

    def __post_init__(self) -> None:
        if self.policy.partition_filters:
            object.__setattr__(self, "metastore", self.metastore.within(self.policy.partition_filter))
        if self.policy.replicates_materialized_views:
            object.__setattr__(self, "metastore", self.metastore.with_views_of_materialized())

    @cached_property
    def threads(self) -> Threads:
        """Read or compare tables in parallel."""
        return Threads(self.policy.parallelism.tables, "table")

    @cached_property
    def opened_in_log(self) -> OpenedInLog:
        """Knows which transactions the log has the beginnings of."""
        return OpenedInLog(self.metastore)

    @cached_property
    def unnamed_ends(self) -> UnnamedEnds:
        """Knows the beginnings of transactions whose ends do not name a database."""
        return UnnamedEnds(self.metastore)

    @property
    def identity(self) -> str:
        """What tells one source metastore from another: its database uuid, or its address where it has none (Hive 2.3)."""
        return self.metastore.uuid() or self.metastore.uri

    @property
    def acid(self) -> bool:
        """Whether transactional tables are replicated."""
        return takes_acid(self.policy, self.metastore)

    def database(self, name: str) -> Database:
        """A database that must exist.

        Raises:
            BadRequest: it does not, or is one of a data connector.
        """
        database = local_database(self.metastore, name)
        if database is None:
            raise BadRequest(f"the source {self.metastore.uri} has no database {name!r}")
        return database

    def with_homes(self, database: Database) -> Database:
        """A database as dumps name it; see :func:`~hive_replication.dump.database_homes.with_homes`."""
        return with_homes(database, self.metastore.config_value) if self.metastore.features.major >= 4 else database

    def require_included(self, database: str, table: str) -> None:
        """Makes sure that the policy replicates a table, as far as its name says.

        Raises:
            BadRequest: it does not.
        """
        if not self.policy.includes(table):
            raise BadRequest(f"{database}.{table} is not replicated: the policy's tables or exclude leave it out")

    def of_tables(self, tables: Tables | None) -> Source:
        """The same under a policy that takes only some tables; itself where None."""
        if tables is None:
            return self
        scope = of_expressions(tables.include, tables.exclude)
        return replace(self, policy=self.policy.model_copy(update={"tables": scope.tables, "exclude": scope.exclude}))

    def includes(self, scope: Scope) -> Callable[[str], bool]:
        """Whether a table's name belongs to a dump."""
        return self.policy.includes if scope.table is None else lambda table: table == scope.table

    def boundary(self, name: str, database: Database | None) -> SourceBoundary:
        """What may be read of a database; see :func:`~hive_replication.dump.source_boundary.source_boundary`."""
        return source_boundary(self.policy, name, database, self.metastore.config_value)

    def lister(self, boundary: SourceBoundary) -> Lister:
        """Lists data files within a boundary; none where the policy replicates no data."""
        nothing, kept = self.policy.metadata_only, self._cm_roots(boundary)
        return Lister(self.storage, kept, nothing=nothing, boundary=boundary.data, holds=True, hive2=self.is_hive2)

    @property
    def is_hive2(self) -> bool:
        """Whether the metastore keeps deleted files under other names, which its messages do not tell."""
        return self.metastore.features.major < 3

    def _cm_roots(self, boundary: SourceBoundary) -> CmRoots:
        def setting(key: str, default: str) -> str:
            return qualified(self.metastore.config_value(key, default), boundary.beside)

        root = self.cm_root(boundary.beside)
        zoned = root and self.metastore.features.major >= 4
        return cm_roots(self.storage, setting, root, boundary.directories) if zoned else CmRoots(root)

    def cm_root(self, beside: str = "") -> str:
        """URI of the source's cmroot, or "" where change management is off.

        Args:
            beside: on whose store it lies if the setting is a path alone, as Hive's default is; the policy's first root where "".
        """
        if self.metastore.config_value("hive.repl.cm.enabled", "false").lower() != "true":
            return ""
        return qualified(self.metastore.config_value("hive.repl.cmrootdir", ""), beside or self.policy.source.roots[0].uri)

    def reach(self, evid: int) -> tuple[int, str]:
        """Commit time and message hash of the event ``evid``; zero and "" where the log no longer has it."""
        event = self.metastore.event(evid)
        return (event.eventTime, message_hash(event.message)) if event else (0, "")


def is_replica(database: Database | None, after: int | None = None) -> bool:
    """Whether transactions of a database may stand for those of another source; of one that is gone nobody knows.

    Args:
        database: as it is now.
        after: event id after which they may have ended, so that one that was opened since counts; None for those from now on.
    """
    if database is None:
        return True
    found = database.parameters or {}
    was = found.get(WAS_REPLICA) or ""
    until = was if was.isdecimal() or not was else found.get(OPENED) or ""
    opened_since = after is not None and until.isdecimal() and int(until) > after
    return opened_since or any(found.get(key) for key in _REPLICA)


def message_hash(message: str | None) -> str:
    """First 16 hex digits of the SHA-256 of an event's message as it stands in the log."""
    return hashlib.sha256((message or "").encode()).hexdigest()[:16]


def takes_acid(policy: Policy, metastore: Metastore) -> bool:
    """Whether a policy replicates transactional tables of a source: Hive 3 does not tell what a transaction wrote."""
    return policy.acid.replicate and not policy.metadata_only and metastore.features.major >= 4


def local_database(metastore: Metastore, name: str) -> Database | None:
    """A database of the source, None where there is none.

    Raises:
        BadRequest: it is one of a data connector.
    """
    database = metastore.database(name)
    if database is not None and is_remote(database):
        raise BadRequest(f"the source database {name!r} is not replicated: {REMOTE}")
    return database


def why_skipped(table: Table, *, metadata_only: bool = False, acid: bool = False) -> str:
    """Why a table is left out of replication, or "" where it is not.

    Args:
        table: of the source.
        acid: whether transactional tables are replicated (:attr:`Source.acid`).
        metadata_only: whether no data is replicated; then tables of storage handlers are not left out, as in Hive, nor those of
            Iceberg and the like.
    """
    parameters = table.parameters or {}
    if is_function(table.tableName):
        return "a table of this name cannot be told from a function: rename it at the source"
    if is_materialized(table):
        return "materialized views are not replicated (as in Hive, hive.repl.include.materialized.views)"
    if is_transactional(table) and not acid:
        return "transactional (ACID) tables need Hive 4 at the source, a policy with data and acid.replicate"
    if (lake := lake_format(table)) and not metadata_only:
        kind = "views" if is_view(table) else "tables"
        return f"{kind} of {lake} tell in files of their own what they consist of, and those are not replicated"
    if parameters.get("storage_handler") and not metadata_only:
        return "tables of storage handlers hold no files to replicate"
    return ""
