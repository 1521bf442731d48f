"""A database that fails over and back: processes of each step are killed, with writes on the open side between them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from hive_replication.connect import Connection, connect
from hive_replication.failover import Phase
from hive_replication.policy.swap import swapped
from resources.embedded.hive import HiveDriver
from tests.crash.campaign import Replica, Step
from tests.crash.driver import Job
from tests.crash.seams import Point
from tests.crash.states import State, read_state
from tests.crash.story import Story
from tests.pair import Direction
from tests.warehouse import Warehouse

_Kind = Literal["start", "rollback", "finish", "reverse"]
_ENDS: dict[_Kind, Phase] = {"start": "ready", "rollback": "replicating", "finish": "finished", "reverse": "failed back"}


class FailedOver(Replica):
    """A database whose failover is begun, taken back, begun again and finished; then its source is made the replica."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.policy = self.policy.model_copy(update={"databases": {self.name: self.name}})
        back = swapped(self.policy).model_copy(update={"external_root": self.policy.external_root})
        self.there, self.back = (Direction(connect(one), self.name) for one in (self.policy, back))
        self._writes = 0

    def steps(self) -> Sequence[Step]:
        """Each step of the failover and of the failback."""
        kinds: list[_Kind] = ["start", "rollback", "start", "finish", "reverse"]
        return [partial(self._step, kind) for kind in kinds]

    def _step(self, kind: _Kind, points: Sequence[Point]) -> dict[str, int]:
        """Writes, takes a step until it is done, struck at each point in turn, and replicates one more window after the last."""
        direction = self.back if kind == "reverse" else self.there
        if not self._writes:
            self._make()
        before = self._objects(direction, source=False)
        past = [before, *(self._write(direction) if kind in ("start", "reverse") else ())]
        self._looks_at = direction
        job = Job(kind, direction.connection.source.policy, self.name, self.name)
        counts = self._do(job, kind, points, past, None)
        wrong = self._wrong(kind)
        if kind == "reverse" and not self.wrong and not wrong:
            list(self._write(direction))
            direction.replicate()
            wrong = self._wrong(kind)
        self.wrong |= bool(wrong)
        self.campaign.tally.add(f"{self.name} after {kind} struck at {' and '.join(map(str, points))}", kills=0, lost=wrong)
        return counts

    def _wrong(self, kind: _Kind) -> list[str]:
        """What is not as it should be after a step, by its marks and by a comparison of both sides."""
        found = [f"{table}: {'; '.join(said)}" for table, said in self._looks_at.differences().items()]
        phase = self.there.status().phase
        return found + ([] if phase == _ENDS[kind] else [f"it is {phase} instead of {_ENDS[kind]}"])

    def _make(self) -> None:
        """The source database and its replica, which has data below ``.repl`` too."""
        origin = self.there.origin
        origin.create_database()
        for name in ("plain", "still", "doomed0", "doomed1"):
            origin.create(name)
            origin.insert(name, "0\n")
        origin.create("parts", "1", "2")
        for day in ("1", "2"):
            origin.insert("parts", "0\n", day)
        self.there.replicate()
        origin.insert("still", "0 again\n", overwrite=True)
        origin.insert("parts", "0 again\n", "2", overwrite=True)
        self.there.replicate()

    def _write(self, direction: Direction) -> Sequence[State]:
        """Changes tables and partitions of the open side; the states after each change."""
        origin, metastore, number = direction.origin, direction.connection.source.metastore, self._writes
        self._writes += 1
        changes = [
            lambda: origin.insert("plain", f"{number} more\n"),
            lambda: origin.insert("parts", f"{number} anew\n", "1", overwrite=True),
            lambda: origin.create(f"new{number}"),
            lambda: origin.insert(f"new{number}", f"{number}\n"),
            lambda: origin.add("parts", f"3{number}"),
            lambda: origin.insert("parts", f"{number}\n", f"3{number}"),
            *([lambda: metastore.drop_table(self.name, f"doomed{number}", delete_data=True)] if number < 2 else []),
        ]
        states: list[State] = []
        for change in changes:
            change()
            states.append(self._objects(direction, source=True))
        return states

    def _state(self, *, renaming: bool = False) -> State:
        return self._objects(self._looks_at, source=False, renaming=renaming)

    def _objects(self, direction: Direction, *, source: bool, renaming: bool = False) -> State:
        """Tables and partitions; the databases themselves differ by the marks of the failover."""
        side = direction.connection.source if source else direction.connection.target
        found = read_state(side.metastore, side.storage, self.name, self._known, renaming=renaming)
        return {key: seen for key, seen in found.items() if key}

    def drop(self) -> None:
        """Deletes the database on both sides."""
        for side in (self.there.connection.source, self.there.connection.target):
            database = side.metastore.database(self.name)
            if database is not None:
                for table in side.metastore.table_names(self.name):
                    side.metastore.drop_table(self.name, table, delete_data=False)
                side.storage.delete(str(database.locationUri), recursive=True)


def no_tale(connection: Connection, hive: HiveDriver | None, database: str) -> Story:
    """Each of its databases is written by itself: a failover turns the source."""
    return Story(Warehouse(connection, hive, database))  # type: ignore[arg-type]
