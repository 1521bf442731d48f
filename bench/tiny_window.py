"""W6: one insert, from its event to its rows on the target, through the running sensor; and how much of this the engine needs."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import yaml

from bench.peers import Ours
from bench.report import Measurement
from bench.source import SourceDatabase
from hive_replication.connect import connect
from hive_replication.metastore.types import Table
from hive_replication.policy import Policy
from tests.dagster_dev import running, wait_for

_SIZE = 64 << 10
_DAY = "1"


class TinyWindow:
    """Single inserts.

    Args:
        policy: of the warehouses.
        source: the database that is inserted into, made already.
        inserts: how many, one after another, for each of the two figures.
    """

    def __init__(self, policy: Policy, source: SourceDatabase, inserts: int = 5) -> None:
        self._source, self._inserts, self._made = source, inserts, 0
        self._table: Table = source.table("t")
        source.partitions(self._table, [_DAY])
        self._policy = policy.model_copy(update={"databases": {source.name: source.name}})

    def measure(self) -> Measurement:
        """Measures medians; the goal is for the whole way."""
        engine = statistics.median(self._engine())
        whole = statistics.median(self._visible())
        rows = {
            "DUMP and LOAD in a warm process": {"both, s": engine},
            "from the event to the target, by Dagster": {"both, s": whole},
        }
        return Measurement(
            "W6", "tiny window: one insert", rows, whole, 15, "seconds", at_most=True, means="s until it is visible"
        )

    def _insert(self) -> None:
        self._made += 1
        name = f"part-{self._made}"
        self._source.files([f"{self._source.place(self._table, _DAY)}/.{name}"], _SIZE)
        self._source.insert(self._table, _DAY, name)

    def _engine(self) -> list[float]:
        ours = Ours(self._policy)
        replica = f"{self._source.name}_engine"
        ours.replicate(self._source.name, replica)
        times: list[float] = []
        for _ in range(self._inserts + 1):
            self._insert()
            times.append(ours.replicate(self._source.name, replica).whole)
        return times[1:]  # the first one makes connections

    def _visible(self) -> list[float]:
        target = connect(self._policy).target
        times: list[float] = []
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "policy.yaml"
            config.write_text(yaml.safe_dump(self._policy.model_dump(mode="json", exclude_defaults=True)), encoding="utf-8")
            with running(Path(folder), "-m", "bench.shortest", HIVE_REPL_CONFIG=str(config)):
                for _ in range(self._inserts):
                    wait_for("the target has all", lambda: self._files(target) == self._made)
                    began = time.monotonic()
                    self._insert()
                    wait_for("the target has the insert", lambda: self._files(target) == self._made)
                    times.append(time.monotonic() - began)
        return times

    def _files(self, target) -> int:
        name = self._source.name
        if target.metastore.database(name) is None or "t" not in target.metastore.table_names(name):
            return 0
        parts = list(target.metastore.partitions(name, "t"))
        return len(target.storage.files(parts[0].sd.location)) if parts else 0
