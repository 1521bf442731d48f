"""What a dump needs of the source: its metastore, its storage, and the facts that go into every dump's header."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from hive_replication.dump.listing import Lister
from hive_replication.errors import BadRequest, Refused, ReplicationError, Unreachable
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Database, Table, copy_of
from hive_replication.policy import Policy
from hive_replication.storage import Storage

SOURCE_FOR = "repl.source.for"


@dataclass(frozen=True)
class Source:
    """The source side of a policy, connected."""

    metastore: Metastore
    storage: Storage
    policy: Policy

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
            BadRequest: it does not.
        """
        database = self.metastore.database(name)
        if database is None:
            raise BadRequest(f"the source {self.metastore.uri} has no database {name!r}")
        return database

    def mark(self, name: str) -> Database:
        """Sets ``repl.source.for`` on the database if it is not set (design: the only write to a source).

        From then on Hive keeps deleted files of the database's managed tables in cmroot. A policy that replicates no data needs
        none of this, and writes nothing to the source.

        Raises:
            Refused: it cannot be set and the policy does not allow to go on without cmroot.
        """
        database = self.database(name)
        if self.policy.metadata_only or (database.parameters or {}).get(SOURCE_FOR):
            return database
        marked = copy_of(database)
        marked.parameters = {**(database.parameters or {}), SOURCE_FOR: self.policy.name}
        try:
            self.metastore.alter_database(name, marked)
        except Unreachable:
            raise
        except ReplicationError as error:  # whatever the metastore answers: rights, read-only hooks, listeners
            if self.policy.without_cmroot:
                return database
            raise Refused(
                f"cannot set {SOURCE_FOR} on the source database {name!r}, without which Hive keeps no deleted files: {error}; "
                "let an administrator set it, or set without_cmroot in the policy to replicate without deleted files"
            ) from error
        return marked

    def lister(self) -> Lister:
        """Lists data files; none where the policy replicates no data."""
        return Lister(self.storage, self.cm_root(), nothing=self.policy.metadata_only)

    def cm_root(self) -> str:
        """URI of the source's cmroot, or "" where change management is off."""
        if self.metastore.config_value("hive.repl.cm.enabled", "false").lower() != "true":
            return ""
        return self.metastore.config_value("hive.repl.cmrootdir", "")

    def reach(self, evid: int) -> tuple[int, str]:
        """Commit time and message hash of the event ``evid``; zero and "" where the log no longer has it."""
        event = self.metastore.event(evid)
        return (event.eventTime, message_hash(event.message)) if event else (0, "")


def message_hash(message: str) -> str:
    """First 16 hex digits of the SHA-256 of an event's message as it stands in the log."""
    return hashlib.sha256(message.encode()).hexdigest()[:16]


def takes_acid(policy: Policy, metastore: Metastore) -> bool:
    """Whether a policy replicates transactional tables of a source: Hive 3 does not tell what a transaction wrote."""
    return policy.acid.replicate and not policy.metadata_only and metastore.features.major >= 4


def why_skipped(table: Table, *, metadata_only: bool = False, acid: bool = False) -> str:
    """Why a table is left out of replication, or "" where it is not.

    Args:
        table: of the source.
        acid: whether transactional tables are replicated (:attr:`Source.acid`).
        metadata_only: whether no data is replicated; then tables of storage handlers are not left out, as in Hive.
    """
    parameters = table.parameters or {}
    if table.tableType == "MATERIALIZED_VIEW":
        return "materialized views are not replicated (as in Hive, hive.repl.include.materialized.views)"
    if is_transactional(table) and not acid:
        return "transactional (ACID) tables need Hive 4 at the source, a policy with data and acid.replicate"
    if parameters.get("storage_handler") and not metadata_only:
        return "tables of storage handlers hold no files to replicate"
    return ""


def is_transactional(table: Table) -> bool:
    """Whether a table's data is written in transactions: full ACID or insert-only."""
    return (table.parameters or {}).get("transactional", "").lower() == "true"


def is_external(table: Table) -> bool:
    """Hive's own rule: the table type, or the parameter EXTERNAL=TRUE."""
    return table.tableType == "EXTERNAL_TABLE" or (table.parameters or {}).get("EXTERNAL", "").upper() == "TRUE"


def has_files(table: Table) -> bool:
    """Whether a table's own directory holds its files: no view, and not partitioned."""
    return table.tableType != "VIRTUAL_VIEW" and not table.partitionKeys and bool(table.sd.location)
