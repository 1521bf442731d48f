"""Fewer operations that bring a lane to the same end (pure).

After the gate, between two operations that nothing is moved across (renames, a site's own operations), each object of a table
becomes at once what it is at the end: its last image, with the files since the last replacement. Added, altered and dropped
partitions of a table are one operation each. What is done to a table before its drop goes into the drop.

A crash may come between any two operations, and the gate of the next load asks for ids. A table's id passes for its partitions
too, so the operation that raises it comes after those of its partitions (a creation takes in only what comes before the first of
them); an object's id rises only together with everything up to it (design: load, gate). Each operation's ``parts`` tell which
events are in it.

Column statistics come after the data that they tell of; those that later ones of the same columns replace are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal, cast

from hive_replication.events.files import FileRef
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.open_transactions import batch_opens
from hive_replication.load.operations.statistics import SetStatistics
from hive_replication.load.plan import call_groups
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.metastore.tables import batches
from hive_replication.metastore.types import Partition, Table

_MOST = 1_000  # partitions of one call, which the metastore answers before its client gives up
_LIGHT = (op.AppendData, op.AlterTable, op.AlterPartitions, SetStatistics)


def collapsed(plan: LanePlan) -> LanePlan:
    """A lane with fewer operations up to its stop, or as it is where that takes no fewer calls."""
    stop = plan.stop
    uncollapsed = tuple(one for one in plan.operations if stop is None or one.evid < stop.evid)
    fewer = tuple(batch_opens(_merged(_last_statistics(_without_dropped(uncollapsed)))))
    return replace(plan, operations=fewer, uncollapsed=uncollapsed) if _effort(fewer) < _effort(uncollapsed) else plan


def _effort(operations: Sequence[op.Operation]) -> tuple[int, int]:
    return sum(1 for _ in call_groups.groups(operations)), len(operations)


def _without_dropped(operations: Sequence[op.Operation]) -> list[op.Operation]:
    """Puts into the drop of a table what was done to it before.

    Renames stay, since they make room for others. A rename raises the table's id, and after a crash later events may be carried
    out one at a time: of what is before it, only what they never rely on goes away, which is appended files and images.
    """
    kept: list[op.Operation] = []
    drops: dict[int, list[int]] = {}  # by place in kept: ids of the events that go into it
    dropped: dict[str, list[int]] = {}  # the same by the name at this point, going back in time
    renamed: set[int] = set()
    for one in reversed(operations):
        parts = dropped.get(one.table)
        if _unknown(one):
            dropped.clear()
        elif any(change.drops_table for change in one.name_changes):
            dropped[one.table] = drops[len(kept)] = []
        elif any(change.renames_table for change in one.name_changes):
            for before, after in (change.tables for change in one.name_changes):
                dropped.pop(before, None)
                if after in dropped:
                    dropped[before] = dropped.pop(after)
                    renamed.add(id(dropped[before]))
        elif parts is not None and (id(parts) not in renamed or isinstance(one, _LIGHT)):
            parts.extend(one.evids)
            continue
        kept.append(one)
    return [replace(one, parts=_parts(drops[n], one.evids)[1]) if drops.get(n) else one for n, one in enumerate(kept)][::-1]


def _unknown(one: op.Operation) -> bool:
    """Whether nothing is known of what it does, so that nothing is moved across it."""
    return isinstance(one, op.CustomOperation) and not isinstance(one, SetStatistics)


def _last_statistics(operations: Sequence[op.Operation]) -> list[op.Operation]:
    """Puts statistics of an object's columns into later ones of at least these, if no rename and nothing unknown lies between."""
    kept: list[op.Operation] = []
    later: dict[tuple[str, str], SetStatistics] = {}
    joined: dict[int, list[int]] = {}  # by identity of the later ones: ids of the events that go into them
    for one in reversed(operations):
        if isinstance(one, SetStatistics) and (key := _object(one)) is not None:
            if key in later and later[key].columns >= one.columns:
                joined.setdefault(id(later[key]), []).extend(one.evids)
                continue
            later[key] = one
        elif isinstance(one, op.CustomOperation) or any(change.renames for change in one.name_changes):
            later.clear()
        kept.append(one)
    return [replace(one, parts=_parts(joined[id(one)], one.evids)[1]) if id(one) in joined else one for one in reversed(kept)]


def _object(one: SetStatistics) -> tuple[str, str] | None:
    """Table and partition ("" for the table) whose statistics are set; None for several, or for all statistics that there are."""
    return (one.table, one.changes[0].partition) if len(one.changes) == 1 and not one.whole else None


def _merged(operations: Iterable[op.Operation]) -> Iterator[op.Operation]:
    stretches: dict[str, _Stretch] = {}
    for one in operations:
        if _unknown(one):
            ended = list(stretches)
        elif any(change.renames or change.drops_table for change in one.name_changes):
            ended = list(dict.fromkeys((one.table, *(name for change in one.name_changes for name in change.tables))))
        elif stretches.setdefault(one.table, _Stretch(one.table)).take(one):
            continue
        else:
            ended = [one.table]
        for table in ended:
            if table in stretches:
                yield from stretches.pop(table).operations()
        stretch = _Stretch(one.table)
        if stretch.take(one):
            stretches[one.table] = stretch
        else:
            yield one
    for stretch in stretches.values():
        yield from stretch.operations()


@dataclass(slots=True)
class _Change:
    """What becomes of a table or partition.

    Args:
        kind: whether it is created, gets other content, more content, or only another image.
        evids: of the events in it.
        image: its last one.
        files: what it is created or replaced with, or gets: by name, with the event of each.
        staging, plain, origin: see :class:`~hive_replication.load.operations.kinds.Content`.
        compare: see :class:`~hive_replication.load.operations.kinds.ReplaceData`.
    """

    kind: Literal["new", "replace", "append", "alter"]
    evids: list[int]
    image: Table | Partition
    files: dict[str, tuple[FileRef, int]] = field(default_factory=dict[str, tuple[FileRef, int]])
    staging: str = ""
    plain: bool = True
    compare: bool = False
    origin: str = ""

    @classmethod
    def of(
        cls, kind: Literal["new", "replace", "append"], one: op.Operation, image: Table | Partition, content: op.Content
    ) -> _Change:
        """A change by an operation that brings files."""
        files = {file.relative: (file, evid) for file, evid in content.events(one.evid).items()}
        return cls(kind, list(one.evids), image, files, content.staging, content.plain, origin=content.origin)

    @property
    def content(self) -> op.Content:
        """Its files, which know their events."""
        files, evids = tuple(file for file, _ in self.files.values()), tuple(evid for _, evid in self.files.values())
        return op.Content(files, self.staging, self.plain, evids, self.origin)

    def join(self, later: _Change) -> bool:
        """Takes a later change in; False where that has to come after this one: a name has two contents, or may have."""
        if later.kind == "append":
            if any(name in self.files and not _equal(self.files[name][0], file) for name, (file, _) in later.files.items()):
                return False
            self.files |= {name: found for name, found in later.files.items() if name not in self.files}
        elif later.kind == "replace":
            self.files, self.compare = later.files, later.compare
        if later.kind != "alter":
            self.kind = later.kind if self.kind == "alter" or (self.kind, later.kind) == ("append", "replace") else self.kind
            self.staging, self.plain, self.origin = later.staging, later.plain, later.origin
        self.evids += later.evids
        self.image = later.image
        return True


def _equal(first: FileRef, second: FileRef) -> bool:
    return bool(first.checksum) and first.checksum == second.checksum


@dataclass
class _Stretch:
    """What becomes of one table and its partitions between two operations that nothing is moved across."""

    table: str
    plain: str = ""
    created: _Change | None = None
    dropped: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    changes: dict[str, _Change] = field(default_factory=dict[str, _Change])
    statistics: dict[str, SetStatistics] = field(default_factory=dict[str, SetStatistics])

    def take(self, operation: op.Operation) -> bool:
        """Takes an operation in; False where it has to come after what is in already, or is of no kind that is taken."""
        if isinstance(operation, SetStatistics):
            return self._take_statistics(operation)
        if isinstance(operation, op.DropPartitions):
            for name in operation.names:
                earlier = self.changes.pop(name).evids if name in self.changes else []
                told = self.statistics.pop(name).evids if name in self.statistics else ()
                self.dropped.setdefault(name, []).extend((*earlier, *told, *operation.evids))
            return True
        if isinstance(operation, op.CreateTable):
            if self.created or self.changes or self.dropped or self.statistics:
                return False
            self.created, self.plain = _Change.of("new", operation, operation.image, operation.content), operation.plain
            return True
        found = dict(_changes(operation))
        if self.statistics and ("" in found or not self.statistics.keys().isdisjoint(found)):
            return False  # what is told of columns was told before this
        if self.created and found.keys() == {""} and not (self.changes or self.dropped):
            return self.created.join(found[""])
        known = {name: self.changes[name] for name in found if name in self.changes}
        if not found or any(found[name].kind == "new" for name in known):
            return False
        self.changes |= {name: change for name, change in found.items() if name not in known}
        return all(change.join(found[name]) for name, change in known.items())  # only an append to one object can fail

    def _take_statistics(self, operation: SetStatistics) -> bool:
        """Takes in statistics of an object that has none yet; False where they have to come after what is in already."""
        key = _object(operation)
        if key is None or key[1] in self.statistics or (key[1] and "" in self.changes):
            return False
        self.statistics[key[1]] = operation
        return True

    def operations(self) -> Iterator[op.Operation]:
        """The table's creation, then what becomes of its partitions and their statistics, then of itself."""
        if self.created:
            evid, parts = _parts(self.created.evids)
            image = cast("Table", self.created.image)
            yield op.CreateTable(evid, self.table, image, self.created.content, self.plain, parts=parts)
        if self.dropped:
            evid, parts = _parts(*self.dropped.values())
            yield op.DropPartitions(evid, self.table, tuple(self.dropped), parts=parts)
        of_kind = {kind: {n: c for n, c in self.changes.items() if n and c.kind == kind} for kind in ("new", "alter")}
        for some in _whole_events(of_kind["new"]):
            yield from self._together(some, self._added)
        yield from self._together(of_kind["alter"], self._altered)
        for name, change in self.changes.items():
            if name and change.kind in ("replace", "append"):
                yield self._one(name, change)
        yield from (one for name, one in self.statistics.items() if name)
        if "" in self.changes:
            yield self._one("", self.changes[""])
        if "" in self.statistics:
            yield self.statistics[""]

    def _together(
        self, changes: dict[str, _Change], make: Callable[[int, tuple[int, ...], dict[str, _Change]], op.Operation]
    ) -> Iterator[op.Operation]:
        for some in batches(changes.items(), _MOST):
            yield make(*_parts(*(change.evids for _, change in some)), dict(some))

    def _added(self, evid: int, parts: tuple[int, ...], changes: dict[str, _Change]) -> op.Operation:
        new = (op.NewPartition(name, cast("Partition", change.image), change.content) for name, change in changes.items())
        return op.AddPartitions(evid, self.table, tuple(new), parts=parts)

    def _altered(self, evid: int, parts: tuple[int, ...], changes: dict[str, _Change]) -> op.Operation:
        images = tuple((name, cast("Partition", change.image)) for name, change in changes.items())
        return op.AlterPartitions(evid, self.table, images, parts=parts)

    def _one(self, name: str, change: _Change) -> op.Operation:
        evid, parts = _parts(change.evids)
        match change.kind:
            case "replace":
                return op.ReplaceData(evid, self.table, name, change.image, change.content, change.compare, parts=parts)
            case "append":
                return op.AppendData(evid, self.table, name, change.image, change.content, parts=parts)
            case _:
                return op.AlterTable(evid, self.table, cast("Table", change.image), parts=parts)


def _changes(operation: op.Operation) -> Iterator[tuple[str, _Change]]:
    """What an operation does to each object, "" for the table; nothing for one of no kind that is taken in."""
    match operation:
        case op.AddPartitions():
            for new in operation.added:
                yield new.name, _Change.of("new", operation, new.image, new.content)
        case op.AlterPartitions():
            for name, image in operation.images:
                yield name, _Change("alter", list(operation.evids), image)
        case op.AlterTable():
            yield "", _Change("alter", list(operation.evids), operation.image)
        case op.ReplaceData():
            change = _Change.of("replace", operation, operation.image, operation.content)
            change.compare = operation.compare
            yield operation.partition, change
        case op.AppendData():
            yield operation.partition, _Change.of("append", operation, operation.image, operation.content)
        case _:
            return


def _whole_events(changes: dict[str, _Change]) -> Iterator[dict[str, _Change]]:
    """New partitions in as many calls as are worth making at the same time; those that one event adds are seen together."""
    some: dict[str, _Change] = {}
    last = 0
    for name, change in changes.items():
        if len(some) >= call_groups.MOST_ADDED and change.evids[0] != last:
            yield some
            some = {}
        some[name], last = change, change.evids[0]
    if some:
        yield some


def _parts(*evids: Iterable[int]) -> tuple[int, tuple[int, ...]]:
    """The last event's id, and all of them where they are several."""
    found = sorted(set(chain(*evids)))
    return found[-1], tuple(found) if len(found) > 1 else ()
