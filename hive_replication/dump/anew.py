"""Tables that a window makes anew: what they hold was changed, and no transaction tells how.

A plain table that is made transactional keeps its files. Where the log has such an event, the window gets a dump of the table
beside it, as it is now, and the event says where. The load brings the table's lane up to the event, makes the table anew from
that dump, as a repair does, and goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hive_replication.dump.moves import Moves
from hive_replication.dump.records import DumpResult
from hive_replication.dump.source import Source, is_transactional
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.events import records as r
from hive_replication.events.decode import UnreadableMessage, decode

_CLAIM = "anew"
_LONGEST_WAIT = 60.0  # seconds: other tables of the window wait, too
#: Dumps one table as it is now.
DumpTable = Callable[[Source, str], DumpResult]


def why_anew(event: r.Event) -> str:
    """What was done to a transactional table that no transaction tells, or "" (pure)."""
    match event:
        case r.AlterTable() if is_transactional(event.after) and not event.rename:
            if not is_transactional(event.before):
                return "was made transactional"
            if event.relocated:
                return "got another location"
            return "was truncated without a transaction" if event.truncate and not event.write_id else ""
        case r.AlterPartition() if is_transactional(event.table_object):
            if any(one.relocated for one in event.changes):
                return "got other locations of partitions"
            return "was truncated without a transaction" if event.truncate and not event.write_id else ""
        case r.Insert() if is_transactional(event.table_object):
            return "was written to without a transaction"
        case _:
            return ""


def dump_of(row: r.Notification) -> str:
    """Directory of the dump from which the table of an event is made anew, "" where there is none."""
    return str(json.loads(row.message).get(_CLAIM, ""))


@dataclass
class TablesAnew:
    """Dumps tables of a window that have to be made anew, each once.

    Args:
        source: the source side.
        database: source database.
        after: where the window begins.
        dump: dumps a table; None where the tables are left out.
    """

    source: Source
    database: str
    after: int
    dump: DumpTable | None
    _moves: Moves = field(init=False)
    _made: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self._moves = Moves(self.source.metastore, self.database, self.after)

    def told(self, row: r.Notification) -> r.Notification:
        """The event, with the dump of its table if one is needed and can be had: the table may be gone, or renamed, by now."""
        if self.dump is None or row.type not in _TYPES or not self.source.acid:
            return row
        try:
            wanted = why_anew(decode(row))
        except UnreadableMessage:
            return row
        directory = self._directory(row.table, row.evid) if wanted else ""
        return replace(row, message=json.dumps(json.loads(row.message) | {_CLAIM: directory})) if directory else row

    def _directory(self, table: str, evid: int) -> str:
        if self._moves.place(table, evid).table != table:
            return ""
        if table not in self._made:
            self._made[table] = self._dumped(table)
        return self._made[table]

    def _dumped(self, table: str) -> str:
        """The dump's directory; "" where transactions stay open, or the table went away: its lane is held, and tried again."""
        policy, settings = self.source.policy, self.source.policy.acid
        wait = {"open_txn_timeout": min(settings.open_txn_timeout, _LONGEST_WAIT), "at_timeout": "fail"}
        patient = replace(self.source, policy=policy.model_copy(update={"acid": settings.model_copy(update=wait)}))
        assert self.dump is not None  # noqa: S101 - told asks only then
        try:
            return self.dump(patient, table).directory
        except Unreachable:
            raise
        except ReplicationError:
            return ""


_TYPES = frozenset({"ALTER_TABLE", "ALTER_PARTITION", "ALTER_PARTITIONS", "INSERT"})
