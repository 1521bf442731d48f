"""``python -m tests.random_policies``: random work under policies that change, with the witness and ``verify`` as judges.

Writers work on two databases while windows are dumped and loaded. Before each window the policy may change, so that the writers'
renames lead into it and out of it; external tables go from one database to the other; and a second catalog of the metastore has
databases of the same names, whose events must not matter. After each window the witness finds nothing wrong; then the writers
rest, the replicas are brought level, and everything is equal. The seed is printed; the order in which the writers come to their
turns is the machine's.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from random import Random

from hive_metastore import ttypes as t

import hive_replication
from hive_replication.connect import Connection
from hive_replication.dump.source import Source
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.load.replica.target import Target
from hive_replication.metastore.client import Metastore
from hive_replication.verify.witness import witness
from resources.embedded.hive import HiveDriver
from tests.crash.__main__ import servers
from tests.crash.states import State, differences, read_state
from tests.crash.writers import NAMES, Town, Writer
from tests.fixtures.record import Recorder
from tests.warehouse import Warehouse

_LEVEL = 6  # windows until a replica at rest is level


@dataclass
class Elsewhere:
    """A database of the same name in another catalog, in which tables of the same names come, change and go."""

    metastore: Metastore
    catalog: str
    root: str
    recorder: Recorder
    random: Random

    @property
    def _name(self) -> str:
        return f"@{self.catalog}#{self.recorder.database}"

    def create(self) -> None:
        """Makes the database."""
        database = t.Database(
            self.recorder.database, catalogName=self.catalog, locationUri=f"{self.root}/{self.recorder.database}"
        )
        database.parameters = {}
        self.metastore.call("create_database", lambda client: client.create_database(database))

    def act(self) -> None:
        """Creates a table, or renames, alters or drops it where it is there."""
        name, other = self.random.sample(NAMES, 2)
        there = self.metastore.call("get_tables", lambda client: client.get_all_tables(self._name))
        image = self.recorder._image(name)
        image.catName, image.sd.location = self.catalog, f"{self.root}/{self.recorder.database}/{name}"
        if name not in there:
            self.metastore.call("create_table", lambda client: client.create_table(image))
        elif self.random.random() < 0.5:
            self.metastore.call("drop_table", lambda client: client.drop_table(self._name, name, True))
        else:
            image.tableName = name if other in there else other
            image.parameters["note"] = str(self.random.random())
            self.metastore.call("alter_table", lambda client: client.alter_table(self._name, name, image))


@dataclass
class Example:
    """Two databases and their replicas, under one policy.

    Args:
        connection: to source and target.
        hive: on the source.
        seed: of everything that is chosen.
    """

    connection: Connection
    hive: HiveDriver
    seed: str
    done: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        self._random, prefix = Random(self.seed), f"policies{secrets.token_hex(3)}"
        self.databases = (f"{prefix}_a", f"{prefix}_b")
        self._settings: dict[str, object] = {"databases": {name: name for name in self.databases}}
        self._towns = [Town(self.connection, self.hive, name, lambda _: None) for name in self.databases]
        self._towns[1].driver = self._towns[0].driver
        self._towns[1].numbers = self._towns[0].numbers  # names of files in tables that go from one to the other

    def run(self, seconds: float) -> list[str]:
        """Works for some seconds; answers what is wrong, after the first window in which something is."""
        for name in self.databases:
            self.hive.execute(f"CREATE DATABASE {name}", f"ALTER DATABASE {name} SET OWNER USER hive")
        elsewhere = list(self._elsewhere())
        writers = [Writer(town, f"{self.seed}-{number}-{town.database}", 0.2) for town in self._towns for number in range(2)]
        for writer in writers:
            writer.start()
        wrong, until = list[str](), time.monotonic() + seconds
        while not wrong and time.monotonic() < until and all(writer.is_alive() for writer in writers):
            time.sleep(self._random.random() * 3)
            for one in elsewhere:
                one.act()
                self.done["elsewhere"] += 1
            if self._random.random() < 0.5:
                self._change_policy()
            if self._random.random() < 0.5:
                self._move()
            wrong = self._windows()
            if not wrong and self._random.random() < 0.5:
                with self._at_rest():
                    wrong = self._level()
        for writer in writers:
            writer.finish()
        self.done["operations"] = sum(town.operations for town in self._towns)
        return wrong or self._level()

    def _elsewhere(self) -> Iterator[Elsewhere]:
        source, catalog = self.connection.source, f"c{secrets.token_hex(3)}"
        root = f"{source.storage.roots[0].uri}tmp/{catalog}"
        made = t.CreateCatalogRequest(t.Catalog(catalog, "another one", root))
        source.metastore.call("create_catalog", lambda client: client.create_catalog(made))
        for name in self.databases:
            one = Elsewhere(source.metastore, catalog, root, Recorder(source.metastore, source.storage, name), self._random)
            one.create()
            yield one

    def _change_policy(self) -> None:
        """Any of the writers' names, by either setting; what is excluded is kept or dropped."""
        some = tuple(self._random.sample(NAMES, self._random.randint(0, 4)))
        others = tuple(name for name in NAMES if name not in some)
        chosen: dict[str, object] = (
            {"tables": others, "exclude": ()} if self._random.random() < 0.3 else {"tables": (), "exclude": some}
        )
        self._settings |= {**chosen, "excluded": self._random.choice(["keep", "drop"])}
        self.done["policies"] += 1

    def _move(self) -> None:
        """Gives an external table to the other database, if there is one whose name is free there."""
        metastore, (left, right) = self.connection.source.metastore, self._random.sample(self._towns, 2)
        for name in self._random.sample(NAMES, len(NAMES)):
            with left.locked(name), right.locked(name):
                table = metastore.table(left.database, name)
                if table is not None and table.tableType == "EXTERNAL_TABLE" and metastore.table(right.database, name) is None:
                    table.dbName = right.database
                    metastore.alter_table(left.database, name, table)
                    self.done["moves"] += 1
                    return

    @contextmanager
    def _at_rest(self) -> Generator[None]:
        with ExitStack() as stack:
            for town in self._towns:
                stack.enter_context(town.locked(*NAMES))
            yield

    def _windows(self) -> list[str]:
        """A window of each database while the writers go on; what the witness calls wrong."""
        wrong: list[str] = []
        for one in self._warehouses():
            self._step(one)
            found = witness(one.connection.source, one.connection.target, one.database)
            wrong += [f"{one.database}: the witness: {difference}" for difference in found.wrong]
        return wrong

    def _level(self) -> list[str]:
        return [problem for one in self._warehouses() for problem in self._differences(one)]

    def _differences(self, one: Warehouse) -> list[str]:
        """Brings a replica level, and compares; nobody writes meanwhile."""
        source, target = one.connection.source, one.connection.target
        end = source.metastore.current_event_id()
        for _ in range(_LEVEL):
            self._step(one)
            state = _state(one)
            if (state.applied or 0) >= end and not state.held:
                break
        else:
            return [f"{one.database}: it does not come to {end}: {_state(one)}"]
        self.done["compared"] += 1
        wrong = [str(found) for found in witness(source, target, one.database).wrong]
        wrong += [
            f"{found.table}: {found.differences}"
            for found in hive_replication.verify(one.connection, one.database)
            if found.differences
        ]
        wrong += differences(_seen(source, one.database), _seen(target, one.database))
        included = {name for name in source.metastore.table_names(one.database) if source.policy.includes(name)}
        others = set(target.metastore.table_names(one.database)) - included
        if others != set(state.left) or (others and source.policy.excluded == "drop"):
            wrong.append(f"tables {sorted(others)} besides those of the policy, of which {sorted(state.left)} are told")
        return [f"{one.database} under {self._settings}: {line}" for line in wrong]

    def _step(self, one: Warehouse) -> None:
        """A window from where the lowest name stands, or the bootstrap."""
        if _state(one).applied is None:
            directory = hive_replication.dump(one.connection, one.database).directory
        else:
            directory = hive_replication.dump(one.connection, one.database, from_evid=one.status()).directory
        self.done["windows"] += 1
        self.done["held"] += len(hive_replication.load(one.connection, directory).held)

    def _warehouses(self) -> list[Warehouse]:
        return [Warehouse(self.connection, self.hive, name).with_policy(**self._settings) for name in self.databases]


def _state(one: Warehouse) -> ReplicaState:
    return replica_state(one.connection.target.metastore.database(one.database))


def _seen(side: Source | Target, database: str) -> State:
    """Description of the database, and files of the policy's tables, found by other code than ``verify`` and the witness use."""
    found = read_state(side.metastore, side.storage, database)
    own = {key: seen for key, seen in found.items() if side.policy.includes(key.partition("/")[0])}
    return {**{key: replace(seen, shape="") for key, seen in own.items()}, "": found[""]}


def work(connection: Connection, hive: HiveDriver, seed: int, seconds: float, example: float) -> tuple[Counter[str], list[str]]:
    """Runs examples until the time is over; returns what was done, and what is wrong in the first example that failed."""
    done, until = Counter[str](), time.monotonic() + seconds
    while time.monotonic() < until or not done:
        one = Example(connection, hive, f"{seed}-{done['examples']}")
        wrong = one.run(example)
        done.update({"examples": 1, **one.done})
        print(f"seed {one.seed} {one.databases[0]}: {dict(one.done)}{'' if wrong else ': equal'}", flush=True)
        if wrong:
            return done, [f"seed {one.seed}", *wrong]
    return done, []


def main() -> int:
    """Runs examples and prints the results; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_policies", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--example", type=float, default=120, help="seconds of work on one pair of databases")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    with servers() as (connection, _, hive):
        done, wrong = work(connection, hive, args.seed, args.minutes * 60, args.example)
    for line in wrong:
        print(line)
    print(f"seed {args.seed}: {dict(done)} {'NOT EQUAL' if wrong else 'source and target equal'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
