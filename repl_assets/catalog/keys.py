"""Names in Dagster and back: asset keys, partition keys, windows, groups, owners and tags. The only place that makes them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import dagster as dg

from hive_replication.policy import Policy
from repl_assets.dagster_private import HIDDEN_TAG_PREFIX, PRIORITY_TAG, is_valid_email

Stage = Literal["source", "dump", "plan", "approval", "load"]

POLICY_TAG = "hive_replication/policy"
KIND_TAG = "hive_replication/kind"
ATTEMPT_TAG = "hive_replication/attempt"
#: Of runs that can wait for all others.
AFTER_OTHERS = {PRIORITY_TAG: "-10"}
DATABASE_TAG = "hive_replication/database"
#: The metastores of a run that dumps and loads: Dagster's ``tag_concurrency_limits`` limit how many there are of each.
SOURCE_TAG, TARGET_TAG = "hive_replication/source", "hive_replication/target"
TAG_LENGTH = 200  # characters of a list of names; Dagster's storage on PostgreSQL indexes tags
#: The policy whose objects a run's load left unrecorded; empty once they are recorded.
UNRECORDED_TAG = "hive_replication/unrecorded"
#: The policy of a run that loads databases; beside it stands, for each, the event after which it loads (:func:`loading_tag`).
LOADING_TAG = f"{HIDDEN_TAG_PREFIX}hive_replication/loading"
#: Name of the check that a replica is fresh, which windows and the lag sensor answer.
UP_TO_DATE = "up_to_date"
#: Name of the check that no alarm of a database is open, which the sensor ``alarms`` answers.
NO_ALARMS = "no_alarms"
#: Names of the checks that no table of a database is held, and that a table is not.
NOTHING_HELD, NOT_HELD = "nothing_held", "not_held"
#: Tables that are held since a run, or before it; only to be seen in lists of runs.
HELD_TAG = "hive_replication/held"
#: Name of the check that the files of a load are proven.
FILES_PROVEN = "files_proven"
#: Name of the check that both sides hold the same, which windows and a schedule answer.
SAME_OBJECTS = "same_objects"
NO_STRAYS = "no_strays"

_OF_A_DATABASE = frozenset({*get_args(Stage), "tables"})  # ends of its assets' keys
_STAGED = re.compile("(.*)__(source|dump|load|tables)", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z0-9_-]")
_HEX = re.compile(r"\.([0-9a-f]{2})")


def metastore_tags(policy: Policy) -> dict[str, str]:
    """Source and target of a run, as the policy names them."""
    return {SOURCE_TAG: policy.source.metastore[:TAG_LENGTH], TARGET_TAG: policy.target.metastore[:TAG_LENGTH]}


def loading_tag(database: str) -> str:
    """Name of a run's tag that says that it loads a database, and has not recorded yet what the load changed.

    Names of databases may hold what tags do not; steps of one run that load at the same time each have their own.
    """
    return f"{LOADING_TAG}-{hashlib.sha256(database.encode()).hexdigest()[:8]}"


@lru_cache(maxsize=10_000)  # definitions ask for each table's a dozen times
def component(name: str) -> str:
    """A Hive name as one component of an asset key, which holds letters, digits, ``_``, ``-`` and ``.`` only.

    Other characters become ``.`` and two hex digits for each byte; so does the ``_`` that makes a name look like a stage of
    another table (``orders__dump``).
    """
    if staged := _STAGED.fullmatch(name):
        return f"{_escaped(staged[1])}.5f_{staged[2]}"
    return _escaped(name)


def in_dagster(name: str) -> str:
    """What Dagster makes of a table's name for the outputs of a step: one name of ``a-b`` and ``a_b``."""
    return re.sub("[.-]", "_", component(name))


def hive_name(part: str) -> str:
    """The inverse of :func:`component`."""
    return _HEX.sub(lambda match: chr(int(match[1], 16)), part).encode("latin-1").decode()


def database_of(key: dg.AssetKey) -> str:
    """The database at the source that an asset of this project is of."""
    path = key.path
    return hive_name(path[1] if len(path) > 2 else path[1].rpartition("__")[0])


def partition_key(name: str) -> str:
    """A Hive partition name as a Dagster partition key.

    Dagster reads ``...`` as a range and ``|`` as two dimensions; Hive's own escape leaves both alone. They are escaped the way
    Hive escapes other characters, so that the key is still a spelling of the same partition that Hive reads.
    """
    return name.replace("...", "%2E%2E%2E").replace("|", "%7C")


def partition_name(key: str) -> str:
    """The inverse of :func:`partition_key`: Hive never writes ``%2E`` or ``%7C`` into a partition name itself."""
    return key.replace("%2E", ".").replace("%7C", "|")


@dataclass(frozen=True, slots=True)
class Window:
    """A window of the source's notification log, ``(start, end]``, or a bootstrap requested at event ``end``."""

    start: int | None
    end: int

    def __str__(self) -> str:
        return f"{'bootstrap' if self.start is None else self.start}-{self.end}"

    @classmethod
    def parse(cls, key: str) -> Window:
        """Reads a partition key such as ``170-1400`` or ``bootstrap-170``.

        Raises:
            ValueError: it is no window.
        """
        match = re.fullmatch(r"(bootstrap|\d+)-(\d+)", key)
        if match is None or (match[1] != "bootstrap" and int(match[1]) > int(match[2])):
            raise ValueError(f"{key!r} is not a window such as 170-1400 or bootstrap-170")
        return cls(None if match[1] == "bootstrap" else int(match[1]), int(match[2]))


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one policy.

    Args:
        policy: its name.
        overflow: databases whose tables have no assets of their own, but are partitions of one asset.
        others: names of the project's other policies.
    """

    policy: str
    overflow: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()

    @classmethod
    def of(cls, policy: Policy) -> Names:
        """The names of a policy."""
        return cls(policy.name)

    def database(self, database: str, stage: Stage) -> dg.AssetKey:
        """``<policy>/<db>__load``: a database's asset."""
        return dg.AssetKey([self.policy, f"{component(database)}__{stage}"])

    def table(self, database: str, table: str, stage: Stage) -> dg.AssetKey:
        """``<policy>/<db>/<t>__dump``: a table's asset; the replica is ``<policy>/<db>/<t>``."""
        suffix = "" if stage == "load" else f"__{stage}"
        return dg.AssetKey([self.policy, component(database), component(table) + suffix])

    def tables(self, database: str) -> dg.AssetKey:
        """``<policy>/<db>__tables``: the asset whose partitions are the tables of a database in overflow."""
        return dg.AssetKey([self.policy, f"{component(database)}__tables"])

    @property
    def status(self) -> dg.AssetKey:
        """``<policy>/status``: the policy's page; the keys of databases end with ``__`` and a stage."""
        return dg.AssetKey([self.policy, "status"])

    def own(self, keys: Iterable[dg.AssetKey], databases: Collection[str]) -> list[dg.AssetKey]:
        """Those keys that are of this policy's databases: those of other projects of the instance may begin with its name, too.

        Args:
            keys: of whatever assets.
            databases: source names of the policy.
        """
        parts = {component(database) for database in databases}

        def is_own(policy: str, database: str = "", *tables: str) -> bool:
            name, _, stage = database.rpartition("__")
            of_database = name in parts and stage in _OF_A_DATABASE
            return policy == self.policy and (of_database if not tables else database in parts and len(tables) == 1)

        return [key for key in keys if is_own(*key.path)]

    def repaired(self, keys: Iterable[dg.AssetKey], databases: Collection[str]) -> set[str]:
        """The databases of which a run of these assets repairs tables, and so loads into.

        Args:
            keys: of the run's assets.
            databases: source names of the policy.
        """

        def is_replica(key: dg.AssetKey) -> bool:
            return key == self.tables(database_of(key)) or (len(key.path) > 2 and not _STAGED.fullmatch(key.path[-1]))

        return {database_of(key) for key in self.own(keys, databases) if is_replica(key)}

    def replica(self, database: str, table: str, partition: str | None = None) -> tuple[dg.AssetKey, str | None]:
        """Asset key and partition key under which Dagster shows a table of the replica, or a Hive partition of it."""
        if database in self.overflow:
            return self.tables(database), partition_key(table)
        return self.table(database, table, "load"), None if partition is None else partition_key(partition)

    @staticmethod
    def hive_table(key: dg.AssetKey) -> tuple[str, str]:
        """Database and table at the source for the asset key of a replica: the inverse of :meth:`table`."""
        _, database, table = key.path
        return hive_name(database), hive_name(table)

    def group(self, database: str) -> str:
        """A database's group, nested in that of its policy, unless that is ``default``: the lineage opens with databases then."""
        return _identifier(database) if self.policy == "default" else f"{self.policy}/{_identifier(database)}"

    @property
    def windows(self) -> dg.DynamicPartitionsDefinition:
        """Windows of the source's log: partitions of all database assets of the policy, so that one run can load all of them."""
        return dg.DynamicPartitionsDefinition(name=f"{self.policy}.windows")

    def table_partitions(self, database: str) -> dg.DynamicPartitionsDefinition:
        """The tables of a database in overflow; no Hive name holds a colon."""
        return dg.DynamicPartitionsDefinition(name=f"{self.policy}.{database}:tables")

    def partitions(self, database: str, table: str) -> dg.DynamicPartitionsDefinition:
        """A table's own Hive partitions."""
        return dg.DynamicPartitionsDefinition(name=f"{self.policy}.{database}.{table}")

    def local(self, name: str) -> str:
        """A name of an op, job, sensor or resource; without the policy's name for the policy ``default``."""
        return _identifier(name if self.policy == "default" else f"{self.policy}_{name}")

    def of_database(self, database: str, step: str) -> str:
        """A name of an op of a database.

        The policies ``fin`` and ``fin_eu`` may have databases ``eu_sales`` and ``sales``: what could be a name of the
        other one too has a hash in it.
        """
        own, start = self.local(""), self.local(database)
        longer = (f"{_identifier(other)}_" for other in self.others if other != "default")
        if any(other.startswith(own) and start.startswith(other) for other in longer):
            start += f"_{hashlib.sha256(f'{self.policy}.{database}'.encode()).hexdigest()[:8]}"
        return f"{start}__{step}"

    def load_pool(self, database: str) -> str:
        """The pool of a target database: one load runs at a time."""
        return self.of_database(database, "load")

    @property
    def connection(self) -> str:
        """Key of the policy's resource."""
        return self._resource("connection")

    @property
    def spark(self) -> str:
        """Key of the resource of the policy's Spark session."""
        return self._resource("spark")

    @property
    def resources(self) -> set[str]:
        """Keys of the resources that a step needs."""
        return {self.connection, self.spark}

    def _resource(self, name: str) -> str:
        """A key that Dagster takes: one of a resource has to be an identifier in Python, which begins with no digit."""
        key = self.local(name)
        return key if key.isidentifier() else f"{name}_{key}"


def owner(name: str | None) -> str | None:
    """A Hive owner in the form that Dagster takes: an e-mail address or ``team:<name>``; None without one."""
    if not name:
        return None
    return name if is_valid_email(name) else f"team:{name}"


def _escaped(name: str) -> str:
    return "".join(c if _PLAIN.fullmatch(c) else "".join(f".{byte:02x}" for byte in c.encode()) for c in name)


def _identifier(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", lambda match: "".join(f"_{byte:02x}" for byte in match[0].encode()), name)
