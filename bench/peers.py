"""Who replicates: this project and Hive's own REPL commands, on the same metastores and HDFS."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol

from hive_replication.connect import connect
from hive_replication.dump.command import repl_dump
from hive_replication.load.command import repl_load
from hive_replication.policy import Policy
from hive_replication.statements import ReplDump, ReplLoad
from resources.embedded.hive import HiveDriver


@dataclass(frozen=True, slots=True)
class Timing:
    """Wall time of one step, in seconds."""

    dump: float
    load: float

    @property
    def whole(self) -> float:
        """Dump and load."""
        return self.dump + self.load


class Peer(Protocol):
    """A program that replicates databases."""

    @property
    def name(self) -> str:
        """For the report."""
        ...

    def replicate(self, source: str, replica: str) -> Timing:
        """A bootstrap the first time, then the events since."""
        ...


@dataclass
class Ours:
    """This project: DUMP and LOAD with every file proven, in a process that runs already, as Hive's driver does.

    Args:
        policy: its databases are replaced.
    """

    policy: Policy
    name: str = "hive-repl"
    _reached: dict[str, int] = field(default_factory=dict[str, int])

    def replicate(self, source: str, replica: str) -> Timing:
        """A bootstrap the first time, then the events since."""
        sides = connect(self.policy.model_copy(update={"databases": {source: replica}}))
        began = time.monotonic()
        dump = repl_dump(sides.source, ReplDump(source, None, self._reached.get(replica)), sides.store)
        dumped = time.monotonic()
        report = repl_load(sides.target, ReplLoad(dump.directory, replica), sides.store, sides.copier)
        ended = time.monotonic()
        if report.held:
            raise RuntimeError(f"held: {report.held}")
        self._reached[replica] = dump.last_evid
        return Timing(dumped - began, ended - dumped)


@dataclass
class Hive:
    """Hive's REPL DUMP and REPL LOAD, each in a driver that runs already.

    Args:
        source: driver at the source.
        target: driver at the target.
    """

    source: HiveDriver
    target: HiveDriver
    _reached: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def name(self) -> str:
        """Hive with its version."""
        return "Hive 3.1.3"

    def replicate(self, source: str, replica: str) -> Timing:
        """A bootstrap the first time, then the events since."""
        after = f" FROM {self._reached[replica]}" if replica in self._reached else ""
        (dump,) = self.source.execute(f"REPL DUMP {source}{after}")
        directory, self._reached[replica] = dump.rows[0].split("\t")
        (load,) = self.target.execute(f"REPL LOAD {replica} FROM '{directory}'")
        return Timing(dump.seconds, load.seconds)


@dataclass
class Hive4:
    """Hive 4's REPL DUMP and REPL LOAD, each in a driver that runs already; Hive itself records how far a replica is.

    Args:
        source: driver at the source.
        target: driver at the target.
    """

    source: HiveDriver
    target: HiveDriver
    name: str = "Hive 4.2.0"

    def replicate(self, source: str, replica: str) -> Timing:
        """A bootstrap the first time, then the events since; transactions of other databases are left out, as in ours."""
        settings = {"hive.repl.rootdir": f"{self.source.repl_root}/{replica}", "hive.repl.filter.transactions": "true"}
        options = ", ".join(f"'{key}'='{value}'" for key, value in settings.items())
        (dump,) = self.source.execute(f"REPL DUMP {source} WITH ({options})")
        (load,) = self.target.execute(f"REPL LOAD {source} INTO {replica} WITH ({options})")
        return Timing(dump.seconds, load.seconds)
