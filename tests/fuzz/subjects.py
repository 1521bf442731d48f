"""What is read from outside, each with samples, and with what the product does with it first."""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from tempfile import gettempdir
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import urllib3

from hive_replication.errors import ReplicationError
from hive_replication.events.decoders_by_event_type import UnreadableMessage, decode, notification
from hive_replication.lag.waiting_event import waiting_event
from hive_replication.load.journal.journal import Journal
from hive_replication.load.operations.conflict_resolutions import adopted_at
from hive_replication.load.operations.functions import state_id
from hive_replication.load.replica.repl_status import held_tables, repl_status
from hive_replication.load.replica.state import LAST_ID, ReplicaState, object_id, replica_state
from hive_replication.metastore.types import Database, Function, NotificationEvent, ResourceUri, Table
from hive_replication.policy import load_policy
from hive_replication.statements import parse
from hive_replication.storage.webhdfs import WebHdfs
from hive_replication.storage.webhdfs_answers import Busy
from tests.earlier import Recorded
from tests.fuzz.memory import MemoryStorage
from tests.fuzz.mutations import TEXTS, changed_value, mutated
from tests.lags import POLICY

_ADOPTED = "hive_replication.adopted"
FIXTURES = Path(__file__).parents[1] / "fixtures"


@dataclass(frozen=True)
class Outcome:
    """What became of an input.

    Args:
        accepted: whether it was taken, rather than refused by an error of ours.
        changed: what it changed, or wrongly would change, of the target; "" for nothing.
    """

    accepted: bool
    changed: str = ""


#: Makes an input; what it returns reads it, within the limits. Whatever that raises is a traceback.
Subject = Callable[[random.Random], Callable[[], Outcome]]


def tried(read: Callable[[], object]) -> Outcome:
    """Reads an input: errors of ours refuse it."""
    try:
        read()
    except (ReplicationError, UnreadableMessage, FileNotFoundError, PermissionError):
        return Outcome(accepted=False)
    return Outcome(accepted=True)


@cache
def _events() -> tuple[Mapping[str, Any], ...]:
    return tuple(row for name in ("hive3", "hive4") for row in json.loads((FIXTURES / f"events/{name}.json").read_text()))


def message(chance: random.Random) -> Callable[[], Outcome]:
    """A row of the notification log: its fields, its packing, and what its message says."""
    row = dict(chance.choice(_events()))
    packed = row["messageFormat"].startswith("gzip")
    text = gzip.decompress(base64.b64decode(row["message"])) if packed else row["message"].encode()
    what = chance.random()
    if what < 0.8:
        text = mutated(chance, text)
    if packed:
        data = gzip.compress(text, 1) if chance.random() > 0.002 else gzip.compress(bytes(200 << 20), 9)
        data = mutated(chance, data) if what > 0.8 else data
        text = base64.b64encode(data)
        text = mutated(chance, text) if what > 0.95 else text
    row["message"] = text.decode(errors="replace")
    if chance.random() < 0.1:
        row[chance.choice(("dbName", "tableName", "eventType", "messageFormat"))] = chance.choice([*TEXTS, None])

    def read() -> None:
        noted = notification(NotificationEvent(**row))
        event = decode(noted)
        repr((event.names, event.name_changes, waiting_event(noted)))

    return partial(tried, read)


@cache
def _journal() -> tuple[tuple[str, bytes], ...]:
    found: dict[str, bytes] = {}
    for name in ("replica", "acid"):
        for snapshot in Recorded.read("11f67ea", name).value["replica"].values():
            files = Recorded.read("11f67ea", name).files(snapshot["files"])
            found |= {uri: data for uri, data in files.items() if "/.repl/journal/" in uri}
    return tuple(found.items())


def journal(chance: random.Random) -> Callable[[], Outcome]:
    """A file of the journal: a lane, a state, or the database before a load; and the names of files and directories."""
    uri, data = chance.choice(_journal())
    location, _, below = uri.partition("/.repl/")
    if chance.random() < 0.1:
        below = mutated(chance, below.encode()).decode(errors="replace").replace("\0", "").strip("/") or "x"
    storage = MemoryStorage("hdfs://127.0.0.1/", {}, changes := [])
    storage = MemoryStorage(location.rpartition("/")[0], {f"{location}/.repl/{below}": mutated(chance, data)}, changes)

    def read() -> None:
        found = Journal(storage, location)
        for entry in found.entries():
            found.state(entry)
            found.database(entry)
            for lane in found.lanes(entry):
                repr(lane.record.kept)

    return lambda: replace(tried(read), changed="".join(changes))


def parameters(chance: random.Random) -> Callable[[], Outcome]:
    """The parameters of a target database and of its objects, and the number in the place of a function's files."""
    state = ReplicaState("uuid/sales", 170, 5, "hash", {"a": 150, "b": 180}, {"a": "why"}, origins=("x", "y,z"), undone=160)
    values = state.failed("a", 151, 1.0).parameters() | {_ADOPTED: "170"}
    for _ in range(chance.choice((1, 1, 2))):
        key = chance.choice(list(values))
        what = chance.random()
        value = values.pop(key)
        if what < 0.15:
            key = mutated(chance, key.encode()).decode(errors="replace")
        values[key] = (
            chance.choice(TEXTS) if what < 0.6 else mutated(chance, value.encode(errors="surrogatepass")).decode(errors="replace")
        )
    database = Database(name="sales", parameters=values)
    metastore: Any = SimpleNamespace(database=lambda _: database, table=lambda *_: Table(parameters=values))
    jar = ResourceUri(uri=f"hdfs://t/sales/f/{values.get(_ADOPTED)}/1/f.jar")

    def read() -> None:
        found = replica_state(database)
        repr((found.last_id, found.lost, found.tried, object_id(Table(parameters=values))))
        found.advanced(200, 7, "x").quarantine("c", 3, "d").at_position("a", 9).parameters()
        list(held_tables(found))
        repl_status(metastore, "sales", "a")
        adopted_at(Table(parameters={**values, LAST_ID: "0"}))
        state_id(Function(resourceUris=[jar]), ("hdfs://t/sales/f",))

    return partial(tried, read)


def policy(chance: random.Random) -> Callable[[], Outcome]:
    """A policy file."""
    path = Path(gettempdir()) / f"hive-repl-fuzz-{chance.random()}.yaml"
    plain = POLICY.model_copy(update={"signing_key": "${env:KEY}", "schedule": "*/5 * * * *"}).model_dump(mode="json")
    text = json.dumps(changed_value(chance, plain), ensure_ascii=False).encode(errors="replace")
    data = mutated(chance, text) if chance.random() < 0.4 else text

    def read() -> Outcome:
        path.write_bytes(data)
        try:
            return tried(lambda: load_policy(path))
        finally:
            path.unlink()

    return read


STATEMENTS = (
    "REPL DUMP sales FROM 200 TO 1400 BATCH 100",
    "REPL LOAD copy.orders FROM 'hdfs://nn:8020/dumps/sales/1' TO 7",
    "REPL STATUS sales.orders",
    'repl dump "*"',
)


def statement(chance: random.Random) -> Callable[[], Outcome]:
    """A statement."""
    words = chance.choice(STATEMENTS).split(" ")
    for _ in range(chance.randrange(4)):
        place = chance.randrange(len(words))
        words[place : place + chance.randrange(2)] = [chance.choice([*TEXTS, *words])]
    text = " ".join(words)
    text = text if chance.random() < 0.6 else mutated(chance, text.encode(errors="replace")).decode(errors="replace")
    return partial(tried, lambda: parse(text))


ANSWERS: Sequence[tuple[int, Mapping[str, Any]]] = (
    (200, {"FileChecksum": {"algorithm": "MD5-of-0MD5-of-512CRC32C", "bytes": "AB" * 28 + "00000000", "length": 28}}),
    (403, {"RemoteException": {"exception": "AccessControlException", "message": "why"}}),
    (404, {"RemoteException": {"exception": "FileNotFoundException", "message": "why"}}),
    (200, {"beans": [{"CapacityTotal": 100, "CapacityRemaining": 50}]}),
)


def webhdfs(chance: random.Random) -> Callable[[], Outcome]:
    """An answer of WebHDFS: status, headers, and body."""
    status, value = chance.choice(ANSWERS)
    body = mutated(chance, json.dumps(value).encode()) if chance.random() < 0.9 else b"<html>log in</html>"
    if chance.random() < 0.002:
        body = b" " * (200 << 20)
    headers = {} if chance.random() < 0.7 else {"Location": chance.choice(TEXTS).encode(errors="replace").decode()}
    status = status if chance.random() < 0.8 else chance.choice((200, 201, 307, 400, 401, 500, 503))

    def answer(*_: object, **more: Any) -> urllib3.HTTPResponse:
        return urllib3.HTTPResponse(
            io.BytesIO(body), headers, status, preload_content=more.get("preload_content", True), request_url="http://nn/x"
        )

    number = chance.randrange(3)

    def read() -> None:
        server = WebHdfs("http://nn:9870")
        (lambda: server.checksum("/a"), server.space, lambda: server.write("/a", b"1", overwrite=True))[number]()

    def limited() -> Outcome:
        with patch.object(urllib3.HTTPConnectionPool, "urlopen", answer), patch("tenacity.nap.time.sleep"):
            try:
                return tried(read)
            except OSError as error:  # translated into ours by the storage, with the file's name
                if isinstance(error, FileExistsError | Busy):
                    return Outcome(accepted=False)
                raise

    return limited


SUBJECTS: dict[str, Subject] = {
    "messages": message,
    "journals": journal,
    "parameters": parameters,
    "policies": policy,
    "statements": statement,
    "WebHDFS": webhdfs,
}
