"""The plan of a load: what will be done to the target, lane by lane, and what is left alone and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from hive_replication.errors import Refused, ReplicationError
from hive_replication.events.files import FileRef
from hive_replication.load.operations.kinds import AlterDatabase, CreateDatabase, DropDatabase, Operation
from hive_replication.load.plan.superseded import Move
from hive_replication.load.report import Skipped
from hive_replication.logs import about, unexpected
from hive_replication.storage import paths


class LaneStopped(Exception):
    """The lane cannot go beyond the event."""

    def __init__(self, reason: str, *, refused: bool = False, table: str = "") -> None:
        super().__init__(reason)
        self.refused, self.table = refused, table


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a lane cannot go beyond an event.

    Args:
        evid: event id.
        reason: one sentence.
        refused: whether going on would lose data.
        table: which target table the reason is of, "" where it is of the whole lane.
    """

    evid: int
    reason: str
    refused: bool = False
    table: str = ""

    @classmethod
    def of(cls, evid: int, error: Exception) -> Stop:
        """Why an error stops a lane at an event. One that nobody foresaw, as of an odd value of a table, stops no other lane."""
        match error:
            case LaneStopped():
                return cls(evid, str(error), error.refused, error.table)
            case ReplicationError() | OSError():  # OSError: a directory that may not be written, or went away
                return cls(evid, str(error), isinstance(error, Refused))
            case _:
                return cls(evid, unexpected(error, about(evid=evid)))


def planned_stop(evid: int, error: Exception) -> Stop:
    """The same of an error in the plan of a lane.

    Raises:
        ReplicationError: it is one, or an OSError: what the plan asked for is not to be had, which concerns other lanes as well.
    """
    if isinstance(error, ReplicationError | OSError):
        raise error
    return Stop.of(evid, error)


@dataclass(frozen=True, slots=True)
class LanePlan:
    """Operations of one lane in order.

    Args:
        names: target table names of the lane, which are held together if it fails.
        base: event id that the lane's names stand at before the load.
        operations: in the order in which they are carried out.
        stop: where the lane has to be held, or None.
        uncollapsed: where ``operations`` are collapsed, the same one event at a time, in order; else ().
        coming: names, at its end, of tables that were taken into the policy: they come whole, after the window's events.
        moves: how the source has moved files since that could not be found, by event and content.
    """

    names: tuple[str, ...]
    base: int
    operations: tuple[Operation, ...]
    stop: Stop | None = None
    uncollapsed: tuple[Operation, ...] = ()
    coming: tuple[str, ...] = ()
    moves: Mapping[tuple[int, str], tuple[Move, ...]] = field(default_factory=dict[tuple[int, str], tuple[Move, ...]])

    @property
    def single(self) -> LanePlan:
        """A collapsed lane one event at a time."""
        return replace(self, operations=self.uncollapsed, uncollapsed=())

    def file_now(self, file: FileRef, evid: int, key: str) -> FileRef:
        """A file where it lies since the renames; one of which no checksum was recorded stays: nothing tells it from another."""
        uri = file.uri
        for before, after in self.moves.get((evid, key), ()) if file.checksum else ():
            uri = paths.moved(uri, before, after)
        return file if uri == file.uri else replace(file, uri=uri)


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """Lanes that may run in parallel, then changes of the database's properties, then its drop or creation."""

    lanes: tuple[LanePlan, ...]
    alters: tuple[AlterDatabase, ...] = ()
    barrier: CreateDatabase | DropDatabase | None = None


@dataclass(frozen=True)
class LoadPlan:
    """What a load would do.

    Args:
        directory: the dump.
        database: target database.
        from_evid, to_evid: the dump's window.
        segments: in order.
        skipped: events and objects left alone.
        kind: of the dump.
        creates: whether a bootstrap creates the target database first.
    """

    directory: str
    database: str
    from_evid: int
    to_evid: int
    segments: tuple[SegmentPlan, ...]
    skipped: tuple[Skipped, ...]
    kind: Literal["bootstrap", "incremental"] = "incremental"
    creates: bool = False

    @property
    def lanes(self) -> Iterator[LanePlan]:
        """All lanes of all segments."""
        return (lane for segment in self.segments for lane in segment.lanes)
