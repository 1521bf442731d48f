"""Reverses one lane of a load: names first, then images, partitions and files, each only if it differs from before the lane."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeGuard, TypeVar

from hive_replication.errors import Refused, ReplicationError
from hive_replication.load.apply.renames import rename_partitions, rename_table
from hive_replication.load.journal.lane_record import LaneRecord, Step
from hive_replication.load.layout.directories import new_token
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.avro_schemas import CopySchemas
from hive_replication.load.operations.conflict_resolutions import DropForeignTable, KeepAside, KeepPartitionsAside
from hive_replication.load.operations.constraints import DropConstraint, SetConstraints
from hive_replication.load.operations.functions import CreateFunction, DropFunction
from hive_replication.load.operations.statistics import DeleteStatistics, SetStatistics
from hive_replication.load.replica.covers import covers
from hive_replication.load.replica.drops import drop_table
from hive_replication.load.replica.name_mapping import object_name, point_at
from hive_replication.load.replica.state import LAST_ID, SOURCE, is_ours, object_id
from hive_replication.load.replica.target import Target
from hive_replication.load.undo.old_data import OldDataLocator
from hive_replication.metastore.names import partition_values
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.statistics import with_claims
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.tables import at_once, batches
from hive_replication.metastore.types import Partition, Table, copy_of, directory_of

Thing = TypeVar("Thing", Table, Partition)
_WITHOUT_IMAGES = (CreateFunction, DropFunction, SetConstraints, DropConstraint, SetStatistics, DeleteStatistics, CopySchemas)
#: The metastore sets it where what is created, added or altered has none.
_CHANGED = "transient_lastDdlTime"
#: Kinds of operations that no undo takes back: the journal has no images of what they changed, or only of users' tables.
STAYS = frozenset(one.kind for one in (*_WITHOUT_IMAGES, DropForeignTable, KeepAside, KeepPartitionsAside))


class LaneReverser:
    """Reverses one lane.

    Args:
        target: the target side.
        database: target database.
        source: identity of the source, recorded on every replica.
        record: the lane's journal record.
        token: of its load.
        locator: finds its old data.
        check: raises if the lock is lost.
    """

    def __init__(
        self,
        target: Target,
        database: str,
        source: str,
        record: LaneRecord,
        token: str,
        locator: OldDataLocator,
        check: Callable[[], None],
    ) -> None:
        self._target, self._metastore, self._database, self._source = target, target.metastore, database, source
        self._record, self._token, self._locator, self._check = record, token, locator, check
        self._passed = set[str]()  # directories of the users' tables and partitions that are not there any more
        self._statistics_changed = any(step.kind in (SetStatistics.kind, DeleteStatistics.kind) for step in record.steps)

    def run(self) -> None:
        """Reverses the lane.

        Raises:
            ReplicationError: the target is not as the journal says.
            Refused: an object of the target's users has the name of one that comes back.
        """
        for step in reversed(self._record.steps):
            self._reverse(step)
        for name, image in self._record.tables.items():
            self._restore_table(name, image)
        for name, parts in self._record.partitions.items():
            self._restore_partitions(name, parts)
        for place, names in self._record.files.items():
            if place not in self._passed:
                self._restore_files(place, frozenset(names))

    def _reverse(self, step: Step) -> None:
        match step.kind:
            case op.RenameTable.kind:
                self._rename_back(step)
            case op.CreateTable.kind:
                self._drop(step)
            case op.DropTable.kind:
                self._create_again(step)
            case op.RenamePartition.kind:
                self._rename_partition_back(step)
            case _:
                pass  # does not change names

    def _rename_back(self, step: Step) -> None:
        current = self._metastore.table(self._database, step.new_name)
        if not is_renamed(current, step):
            return
        image = copy_of(current)
        image.tableName = step.table
        image.parameters = {**current.parameters, LAST_ID: str(step.evid - 1)}
        self._check()
        rename_table(self._metastore, current, image)

    def _rename_partition_back(self, step: Step) -> None:
        """In one call: a load that continues from the middle of an undo must not find it under both names, or under none."""
        table, (old, new) = self._metastore.table(self._database, step.table), step.partitions
        if table is None or is_transactional(table) or not is_ours(table, self._source):
            return  # the metastore moves data of transactions
        found = by_name(table, self._metastore.partitions(self._database, step.table, [old, new]))
        current = found.get(new)
        if old in found or current is None or not covers(object_id(current), step.evid):
            return  # as in _rename_back, or another one has its name by now
        image = copy_of(current)
        image.values = list(partition_values(old))
        image.parameters = {**(current.parameters or {}), LAST_ID: str(step.evid - 1)}
        self._check()
        rename_partitions(self._metastore, table, [(new, image)])

    def _drop(self, step: Step) -> None:
        current = self._metastore.table(self._database, step.table)
        if is_created(current, step, self._source):
            self._check()
            drop_table(self._metastore, current)

    def _create_again(self, step: Step) -> None:
        image = dropped_image(self._record, step, lambda name: self._metastore.table(self._database, name))
        if image is None:
            return
        image = self._as_it_was(image)
        image.tableName = step.table
        self._check()
        self._metastore.create_table(image)

    def _restore_table(self, name: str, image: Table) -> None:
        current = self._metastore.table(self._database, name)
        if current is None and SOURCE not in (image.parameters or {}):
            self._passed.add(directory_of(image))
            return  # a foreign table, moved away for a replica
        if current is None:
            raise ReplicationError(gone(self._database, name))
        if self._is_users(current, image):
            self._passed |= {directory_of(image)} if self._is_another(current, image) else set[str]()
            return
        self._require_replica(current, image, object_name(self._database, name), "rename or drop it")
        image = self._as_it_was(image)
        if image != current:
            self._check()
            self._metastore.alter_table(self._database, name, image)

    def _restore_partitions(self, table: str, parts: Mapping[str, Partition | None]) -> None:
        current = self._metastore.table(self._database, table)
        image = self._record.tables.get(table)
        if current is None or (image is not None and self._is_another(current, image)):
            self._passed.update(directory_of(part) for part in parts.values() if part)
            return  # a foreign table
        for names in batches(sorted(parts), at_once(current.sd.cols)):
            found = by_name(current, self._metastore.partitions(self._database, table, names))
            wanted = {name: self._as_it_was(image) for name in names if (image := parts[name]) is not None}
            for name in found.keys() & wanted.keys():
                self._require_replica(found[name], wanted[name], object_name(self._database, table, name), "drop it")
            self._check()
            if surplus := [name for name, one in found.items() if name not in wanted and is_ours(one, self._source)]:
                self._metastore.drop_partitions(self._database, table, surplus, delete_data=False)
            if new := [image for name, image in wanted.items() if name not in found]:
                self._metastore.add_partitions(self._database, table, new)
            there = [(found[name], image) for name, image in wanted.items() if name in found]
            self._passed.update(directory_of(image) for one, image in there if self._is_another(one, image))
            if changed := [image for one, image in there if one != image and not self._is_users(one, image)]:
                self._metastore.alter_partitions(self._database, table, changed)

    def _is_users(self, current: Thing, image: Thing) -> bool:
        """Whether what is there is the users', as before the lane: an undo has put it back, or they made another one since."""
        return not is_ours(image, self._source) and not is_ours(current, self._source)

    def _is_another(self, current: Thing, image: Thing) -> bool:
        """Whether the users made what is there since.

        What an undo has put back has another time of creation, too, but the time of the last change that its image has.
        """
        changed = [(one.parameters or {}).get(_CHANGED) for one in (current, image)]
        return self._is_users(current, image) and current.createTime != image.createTime and changed[0] != changed[1]

    def _require_replica(self, current: Thing, image: Thing, shown: str, what: str) -> None:
        if is_ours(image, self._source):  # else it was the users' before the lane, too
            require_replica(current, self._source, shown, what)

    def _restore_files(self, place: str, names: frozenset[str]) -> None:
        directory, aside = self._locator.locate(place, self._token), new_token()
        for file in (f"{directory}/{name}" for name in self._target.storage.named_files(directory) if name not in names):
            self._check()
            self._locator.retire(aside, file, self._check)

    def _as_it_was(self, image: Thing) -> Thing:
        """The image with the present location of its data.

        Column statistics are not put back: where the lane wrote others, the image does not claim them to be of its data.
        """
        if not image.sd.location:
            return image
        there = copy_of(image)
        if self._statistics_changed:
            there.parameters = with_claims(image.parameters or {}, ())
        point_at(there.sd, self._locator.locate(directory_of(image), self._token))
        return there


def is_renamed(current: Table | None, step: Step) -> TypeGuard[Table]:
    """Whether what has a table's new name is the table, as a rename left it: else it was not carried out, or is reversed."""
    return current is not None and covers(object_id(current), step.evid)


def is_created(current: Table | None, step: Step, source: str) -> TypeGuard[Table]:
    """Whether what has a created table's name is the table."""
    if current is None or not is_ours(current, source):
        return False
    made_here = directory_of(current) == step.directory and object_id(current) == 0
    return covers(object_id(current), step.evid) or made_here


def dropped_image(record: LaneRecord, step: Step, table: Callable[[str], Table | None]) -> Table | None:
    """The image of a table that a step has dropped; None where it is there, or has another name still.

    Args:
        record: of its lane.
        step: the drop.
        table: tells what the target has under a name.
    """
    image = record.tables.get(step.origin)
    if image is None or table(step.table) is not None:
        return None
    # it may not have been renamed to the name under which it was dropped
    renamed = all(former is None or covers(object_id(former), evid) for former, evid in ((table(n), e) for n, e in step.chain))
    return image if renamed else None


def gone(database: str, table: str) -> str:
    """Says that a replica that an undo changes is not there."""
    return f"the target table {object_name(database, table)} went away without a load: repair it instead"


def require_replica(thing: Table | Partition, source: str, shown: str, what: str) -> None:
    """Makes sure that a table or partition, whose name an undo needs, is a replica of a source.

    Raises:
        Refused: it is not.
    """
    if not is_ours(thing, source):
        raise Refused(f"the target's {shown} exists and is not a replica of this source: {what} there, then undo again")
