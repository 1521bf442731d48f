"""Mutated dumps of all layouts, read and planned against a recorded target."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hive_replication.dump.format.ack import ACK, ack_text
from hive_replication.dump.format.digests import digest_of
from hive_replication.dump.format.packed_store import PackedStore
from hive_replication.errors import ReplicationError
from hive_replication.load.command import plan_load
from hive_replication.load.operations.kinds import AddPartitions, CreateTable
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target import Target
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.types import Database, Partition, Table, copy_of
from hive_replication.policy import Policy, Root
from hive_replication.policy.model import Warehouse
from hive_replication.statements import ReplLoad
from hive_replication.storage import Storage
from tests.earlier import Recorded
from tests.fuzz.attacks import EXCLUDED, Attack
from tests.fuzz.bounds import Bounds
from tests.fuzz.memory import Blanks, MemoryMetastore, MemoryStorage
from tests.fuzz.mutations import TEXTS, changed_value, mutated
from tests.fuzz.subjects import Outcome, Subject

Files = dict[str, Any]  # bytes by URI; rarely blanks
_NUMBERS = ("tables", "partitions", "events", "functions")


@dataclass(frozen=True, eq=False)
class Dump:
    """A dump that was recorded, and the target that it was loaded into.

    Args:
        directory: its directory.
        files: by URI, as an earlier version wrote them: without digests.
        snapshot: the target before its load; None where that was empty.
        value: the whole recording.
    """

    directory: str
    files: Files
    snapshot: dict[str, Any] | None
    value: Recorded

    @property
    def paths(self) -> list[str]:
        """Its files, without the notes for resuming."""
        return sorted(uri for uri in self.files if "/_attempt_" not in uri and "/_checkpoint_" not in uri)

    @cached_property
    def home(self) -> str:
        """The source database's directory."""
        header = json.loads(self.files[f"{self.directory}/_dumpmetadata"])
        return str(tjson.loads(Database, header["db"]).locationUri)

    @property
    def cm_root(self) -> str:
        """Where the source kept deleted files."""
        return f"{self.home.rpartition('/')[0].rpartition('/')[0]}/cmroot"

    @cached_property
    def sealed(self) -> Files:
        """The same dump with digests, as versions since write it."""
        files, header = dict(self.files), json.loads(self.files[f"{self.directory}/_dumpmetadata"])
        files[f"{self.directory}/_dumpmetadata"] = json.dumps(header | {"digests": "sha256"}).encode()
        return resealed(self.directory, files)


def resealed(directory: str, files: Files) -> Files:
    """The files with an ack file that has their digests."""
    ack = json.loads(files[f"{directory}/{ACK}"])
    names = {uri.removeprefix(f"{directory}/"): data for uri, data in files.items()}
    digests = {name: digest_of(data) for name, data in names.items() if not name.startswith((ACK, "_attempt", "_checkpoint"))}
    more = {"parts": ack["parts"]} if "parts" in ack else {}
    text = ack_text({name: ack.get(name, 0) for name in _NUMBERS}, digests, more, directory, None)
    return files | {f"{directory}/{ACK}": text}


@cache
def dumps() -> tuple[Dump, ...]:
    """All that are recorded: of objects and of events, in both layouts, with and without transactions."""
    found: list[Dump] = []
    for name in ("replica", "acid"):
        recorded = Recorded.read("11f67ea", name)
        for kind, one in recorded.value["dumps"].items():
            directory, files = recorded.text(one["directory"]), recorded.files(one["files"])
            made = Dump(directory, files, None, recorded)
            if kind.startswith("window"):
                whole = next(one for one in found if one.value is recorded)
                made = replace(made, snapshot=recorded.value["replica"].get("bootstrap") or _bootstrapped(made, whole))
            found.append(made)
    return tuple(found)


def _bootstrapped(window: Dump, bootstrap: Dump) -> dict[str, Any]:
    """A replica where a dump of events begins, as its bootstrap was planned."""
    value = json.loads(window.files[f"{window.directory}/_dumpmetadata"])
    database = tjson.loads(Database, window.value.value["replica"]["window"]["database"])
    database.parameters = ReplicaState(f"{value['source']}/{database.name}", value["from_evid"]).parameters()
    tables, parts = dict[str, Table](), list[Partition]()
    for one in (one for lane in plan(bootstrap, bootstrap.files)[0].lanes for one in lane.operations):
        if isinstance(one, CreateTable):
            tables[one.table] = image = copy_of(one.image)
            image.sd.location = f"{database.locationUri}/{one.table}"
        for new in one.added if isinstance(one, AddPartitions) else ():
            parts.append(copy_of(new.image))
            parts[-1].sd.location = f"{tables[one.table].sd.location}/{new.name}"
    return {
        "database": tjson.dumps(database),
        "tables": [*map(tjson.dumps, tables.values())],
        "partitions": [*map(tjson.dumps, parts)],
    }


def target_of(dump: Dump, changes: list[str]) -> Target:
    """The target as it was before the dump's load."""
    names, snapshot = dump.value.value["names"], dump.snapshot
    database = None if snapshot is None else tjson.loads(Database, snapshot["database"])
    tables = [] if snapshot is None else [tjson.loads(Table, text) for text in snapshot["tables"]]
    parts = [] if snapshot is None else [tjson.loads(Partition, text) for text in snapshot["partitions"]]
    policy = Policy(
        source=Warehouse(metastore="thrift://s:1", roots=(Root(uri=names["source"]),), paths=(f"{names['source']}listed",)),
        target=Warehouse(metastore="thrift://t:1", roots=(Root(uri=names["target"]),), paths=(f"{names['target']}listed",)),
        dump_root=f"{names['target']}repl/dumps",
        external_root=f"{names['target']}external",
        databases={names["database"]: names["database"]},
        exclude=(f"{EXCLUDED}*",),
    )
    metastore: Any = MemoryMetastore(database, tables, parts, changes)
    storage = MemoryStorage(names["target"], {}, changes)
    return Target(metastore, storage, policy, Storage(policy.source.roots), source_of(dump))


def source_of(dump: Dump) -> Any:
    """The source's metastore, which alone is believed where the database lies."""
    settings = {"hive.repl.cmrootdir": dump.cm_root, "hive.metastore.warehouse.dir": dump.home.rpartition("/")[0]}
    database = Database(dump.value.value["names"]["database"], locationUri=dump.home, parameters={})
    return MemoryMetastore(database, [], [], [], settings)


def bounds_of(dump: Dump) -> Bounds:
    """What the policy allows."""
    names, policy = dump.value.value["names"], target_of(dump, []).policy
    own = target_of(dump, []).metastore.database(names["database"])
    home = own.locationUri if own and own.locationUri else f"{names['target']}user/hive/warehouse/{names['database']}.db"
    read, written = (
        (dump.home, dump.cm_root, f"{names['source']}listed"),
        (f"{names['target']}external", f"{names['target']}listed"),
    )
    return Bounds(names["database"], policy.tables, policy.exclude, "", read, home, written)


def plan(dump: Dump, files: Files) -> tuple[Any, list[str]]:
    """The plan of a dump's load, and what it changed."""
    changes: list[str] = []
    target = target_of(dump, changes)
    return plan_load(target, ReplLoad(dump.directory), store_of(target.policy, files)), changes


def store_of(policy: Policy, files: Files) -> PackedStore:
    """Dumps in memory."""
    return PackedStore(MemoryStorage(str(policy.dump_root), files), str(policy.dump_root))


@cache
def _as_written(dump: Dump) -> Any:
    return plan(dump, dump.sealed)[0]


def changed_rows(chance: random.Random, data: bytes) -> bytes:
    """A Parquet file in which one value of one row is another one."""
    rows = pq.read_table(BytesIO(data))
    values = rows.to_pylist()
    row = chance.choice(values)
    name = chance.choice(list(row))
    match row[name]:
        case bytes() as record:
            row[name] = mutated(chance, record)
        case list() as files if files:
            file = chance.choice(files)
            key = chance.choice(list(file))
            file[key] = chance.choice((0, -1, 7, 2**31 - 1)) if key == "group" else chance.choice(TEXTS)
        case int():
            row[name] = chance.choice((0, -1, 10**15, 2**63 - 1))
        case _:
            row[name] = chance.choice([*TEXTS, None]) if name != "files" else []
    if chance.random() < 0.1:
        values.append(dict(chance.choice(values)))
    if chance.random() < 0.1:
        chance.shuffle(values)
    out = BytesIO()
    try:
        pq.write_table(pa.Table.from_pylist(values, rows.schema), out, compression=chance.choice(("zstd", "snappy", "none")))
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
        return mutated(chance, data)
    return out.getvalue()


def _change(chance: random.Random, dump: Dump, files: Files) -> Files:
    """One file is changed, lost, or named otherwise."""
    uri = chance.choice(dump.paths)
    data, what = files[uri], chance.random()
    if what < 0.05:
        return {one: content for one, content in files.items() if one != uri}
    if what < 0.1:
        other = chance.choice(dump.paths)
        return files | {other: data}
    if uri.endswith(".parquet") and what < 0.6:
        return files | {uri: changed_rows(chance, data)}
    if uri.endswith("_dumpmetadata") and what < 0.5:
        return files | {uri: json.dumps(changed_value(chance, json.loads(data))).encode(errors="surrogatepass")}
    return files | {uri: mutated(chance, data)}


def subject(chance: random.Random) -> Callable[[], Outcome]:
    """A dump, changed with or without its digest made anew, or one of a version without digests."""
    dump, sealing = chance.choice(dumps()), chance.choice(("kept", "anew", "anew", "none", "attack", "attack"))
    files = dump.files if sealing == "none" else dump.sealed
    if chance.random() < 0.001:
        files, sealing = files | {chance.choice(dump.paths): Blanks()}, "none"
    elif sealing == "attack":
        files = attacked(chance, dump)
    else:
        files = _change(chance, dump, files)
    if sealing == "anew":
        try:
            files = resealed(dump.directory, files)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # the ack file itself was changed
            sealing = "kept"
    as_written = _as_written(dump) if sealing == "kept" else None

    def read() -> Outcome:
        try:
            made, changes = plan(dump, files)
        except ReplicationError:
            return Outcome(accepted=False)
        return Outcome(accepted=True, changed="; ".join([*changes, *wrong(dump, files, made, as_written)]))

    return read


def attacked(chance: random.Random, dump: Dump) -> Files:
    """The dump as somebody would write it who wants to read or write elsewhere."""
    reader = store_of(target_of(dump, []).policy, dump.sealed).open(dump.directory)
    attack = Attack(chance, dump.home, dump.value.value["names"]["target"])
    try:
        return attack.written(reader)
    except (ReplicationError, UnicodeError):  # no writer would write it
        return _change(chance, dump, dump.sealed)


def wrong(dump: Dump, files: Files, made: Any, as_written: Any) -> Iterator[str]:
    """Why a plan must not have been made."""
    if as_written is not None and made != as_written:
        yield f"{dump.directory}: accepted with another content than its digest says"
    if made.database != dump.value.value["names"]["database"]:
        yield f"a plan for the database {made.database}"
    for lane in made.lanes:
        for one in lane.operations:
            if not made.from_evid <= one.evid <= made.to_evid:
                yield f"an operation of event {one.evid} outside the window"
    header = json.loads(files[f"{dump.directory}/_dumpmetadata"])
    yield from bounds_of(dump).of(header).wrong(target_of(dump, []), made)


DUMPS: dict[str, Subject] = {"dumps": subject}
