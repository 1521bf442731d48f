"""What a metastore of Hive 2 does not tell: its log has INSERTs without their table, and overwrites as any ALTER.

(Of TRUNCATE it has nothing: Hive 2.3 deletes the files without a call of the metastore.) Such an event says that a table or
partition may hold other data from then on, not which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hive_replication.events import event_records as r
from hive_replication.events.files import FileRef

_MODIFIED = "last_modified_time"


@dataclass(frozen=True, slots=True)
class UntoldInsert(r.Event):
    """INSERT of a metastore of Hive 2, with the files that were added."""

    files: tuple[FileRef, ...]


def is_untold(event: r.Event) -> bool:
    """Whether an event may be a change of data that it does not tell."""
    return isinstance(event, UntoldInsert) or (isinstance(event, r.AlterTable | r.AlterPartition) and event.untold)


def is_insert_of_hive2(message: Mapping[str, Any]) -> bool:
    """Whether the message of an INSERT is one of Hive 2."""
    return "partKeyVals" in message and "tableObjJson" not in message


def may_change_data(message: Mapping[str, Any], before: Mapping[str, str] | None, after: Mapping[str, str] | None) -> bool:
    """Whether an ALTER may be an INSERT OVERWRITE or a LOAD of Hive 2.

    Its DDL is told by the time of the modification, which it writes into the parameters (``DDLTask``).

    Args:
        message: of the event.
        before: parameters of the table or partition.
        after: the same after it.
    """
    return "isTruncateOp" not in message and (before or {}).get(_MODIFIED) == (after or {}).get(_MODIFIED)
