"""Mutated dumps of all layouts, read and planned against a recorded target."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target import Target
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.types import Database, Partition, Table
from hive_replication.policy import Policy, Root
from hive_replication.policy.model import Warehouse
from hive_replication.statements import ReplLoad
from hive_replication.storage import Storage
from tests.earlier import Recorded
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
            before = recorded.value["replica"].get("bootstrap") or _empty(recorded, files[f"{directory}/_dumpmetadata"])
            found.append(Dump(directory, files, before if kind.startswith("window") else None, recorded))
    return tuple(found)


def _empty(recorded: Recorded, header: bytes) -> dict[str, Any]:
    """A replica without tables, where a dump of events begins."""
    value = json.loads(header)
    database = tjson.loads(Database, recorded.value["replica"]["window"]["database"])
    database.parameters = ReplicaState(f"{value['source']}/{database.name}", value["from_evid"]).parameters()
    return {"database": tjson.dumps(database), "tables": [], "partitions": []}


def target_of(dump: Dump, changes: list[str]) -> Target:
    """The target as it was before the dump's load."""
    names, snapshot = dump.value.value["names"], dump.snapshot
    database = None if snapshot is None else tjson.loads(Database, snapshot["database"])
    tables = [] if snapshot is None else [tjson.loads(Table, text) for text in snapshot["tables"]]
    parts = [] if snapshot is None else [tjson.loads(Partition, text) for text in snapshot["partitions"]]
    policy = Policy(
        source=Warehouse(metastore="thrift://s:1", roots=(Root(uri=names["source"]),)),
        target=Warehouse(metastore="thrift://t:1", roots=(Root(uri=names["target"]),)),
        dump_root=f"{names['target']}repl/dumps",
        external_root=f"{names['target']}external",
        databases={names["database"]: names["database"]},
    )
    metastore: Any = MemoryMetastore(database, tables, parts, changes)
    return Target(metastore, MemoryStorage(names["target"], {}, changes), policy, Storage(policy.source.roots))


def plan(dump: Dump, files: Files) -> tuple[Any, list[str]]:
    """The plan of a dump's load, and what it changed."""
    changes: list[str] = []
    target = target_of(dump, changes)
    root = target.policy.dump_root
    store = PackedStore(MemoryStorage(root, files), root)
    return plan_load(target, ReplLoad(dump.directory), store), changes


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
    dump, sealing = chance.choice(dumps()), chance.choice(("kept", "anew", "anew", "none"))
    files = dump.files if sealing == "none" else dump.sealed
    if chance.random() < 0.001:
        files, sealing = files | {chance.choice(dump.paths): Blanks()}, "none"
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
        return Outcome(accepted=True, changed="; ".join([*changes, *_wrong(dump, made, as_written)]))

    return read


def _wrong(dump: Dump, made: Any, as_written: Any) -> Iterator[str]:
    """Why a plan must not have been made."""
    if as_written is not None and made != as_written:
        yield f"{dump.directory}: accepted with another content than its digest says"
    if made.database != dump.value.value["names"]["database"]:
        yield f"a plan for the database {made.database}"
    for lane in made.lanes:
        for one in lane.operations:
            if not made.from_evid <= one.evid <= made.to_evid:
                yield f"an operation of event {one.evid} outside the window"


DUMPS: dict[str, Subject] = {"dumps": subject}
