"""What a load may read of the source: a dump is untrusted input, and so is what users of the source wrote into its metastore."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from hive_replication.dump.format.record_types import DumpHeader
from hive_replication.dump.source_boundary import ANYWHERE, Setting, SourceBoundary, source_boundary
from hive_replication.errors import Unreachable
from hive_replication.events.files import FileRef
from hive_replication.load.plan.lanes import WindowEvent
from hive_replication.logs import about
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Database, Function, Partition, Table
from hive_replication.policy import Policy

_LOG = logging.getLogger(__name__)

_DUMP_AGAIN = "the dump was written before the policy let it read {what}, and has no data of it: dump again, or repair it"


@dataclass(frozen=True)
class LoadBoundary:
    """The boundary of one load.

    Args:
        now: what the policy lets it read.
        dumped: what it let the dump read, as far as its header tells; None where the dump did not look. Dumps name what they left
            out, whatever it was that barred it then; those of earlier versions do not.
        bare: whether the dump says that it has no data: its objects may lie anywhere, since nothing is read of them.
    """

    now: SourceBoundary = ANYWHERE
    dumped: SourceBoundary | None = None
    bare: bool = False

    def why_outside(self, thing: Table | Partition | Function, files: tuple[FileRef, ...] = ()) -> str:
        """Why an object of a dump may not be read, or "" where it may."""
        return self._of_both(lambda one: one.why_outside(thing)) or self._why_files(files)

    def bounded(self, event: WindowEvent) -> WindowEvent:
        """An event, with the reason where its object or a file of it may not be read."""
        reason = self._of_both(lambda one: one.why_event_outside(event.event))
        reason = reason or next(filter(None, (self._why_files(group.files) for group in event.groups)), "")
        return replace(event, outside=reason) if reason else event

    def _of_both(self, why: Callable[[SourceBoundary], str]) -> str:
        reason = why(self.now)
        return reason or (_DUMP_AGAIN.format(what="its directory") if self.dumped and why(self.dumped) else "")

    def _why_files(self, files: tuple[FileRef, ...]) -> str:
        named = next((file.uri for file in files if not file.is_unlisted_directory), "")
        if self.bare and named:
            return f"the dump says that it has no data, and names the file {named}: dump again"
        left_out = next((file.uri.rstrip("/") for file in files if file.is_barred), "")
        return _DUMP_AGAIN.format(what=left_out) if left_out else self.now.why_files_outside(files)


def load_boundary(policy: Policy, header: DumpHeader, source: Metastore | None) -> LoadBoundary:
    """The boundary of a load.

    Args:
        policy: the policy.
        header: of the dump. What it says of the database's directory is believed only where the source cannot be asked.
        source: the source's metastore.
    """
    name, database = header.scope.database, header.source_database
    policy = policy.model_copy(update={"metadata_only": header.metadata_only})
    setting: Setting | None = None
    if source is not None:
        try:
            database, setting = source.database(name) or Database(name=name), source.config_value
        except Unreachable as error:
            _LOG.info("the source is not asked where its databases lie, the dump is believed: %s", error, extra=about(name))
    now = source_boundary(policy, name, database, setting)
    if header.read is None:
        return LoadBoundary(now, bare=header.metadata_only)
    then = policy.model_copy(update={"source": policy.source.model_copy(update={"paths": header.read})})
    return LoadBoundary(now, source_boundary(then, name, database, setting), header.metadata_only)
