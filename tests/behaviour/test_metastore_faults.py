"""Lost connections, and the lock, against real metastores of Hive 3.1.3 and 4.2.0."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from hive_metastore.ttypes import ShowLocksRequest

from hive_replication.errors import Refused, Unreachable
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.lock import RESERVED_DATABASE, MetastoreLock
from hive_replication.metastore.types import Database, FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table, copy_of

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module", params=["source", "source4"], ids=["hive-3.1.3", "hive-4.2.0"])
def metastore(request: pytest.FixtureRequest) -> Iterator[Metastore]:
    with Metastore(request.getfixturevalue(request.param).metastore) as client:
        yield client


class LossyProxy:
    """Passes calls on, and cuts the connection instead of the next ``lose`` answers: the server has done the work by then."""

    def __init__(self, uri: str):
        url = urlsplit(uri)
        self._server = (url.hostname, url.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"thrift://127.0.0.1:{self._listener.getsockname()[1]}"
        self.lose = 0
        self.connections = 0
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        for end in self._open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._open.clear()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self.connections += 1
                self._open += [client, server]
                threading.Thread(target=self._pass, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._pass, args=(server, client, True), daemon=True).start()

    def _pass(self, origin: socket.socket, destination: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := origin.recv(65536):
                if answers and self.lose:
                    self.lose -= 1
                    break
                destination.sendall(data)
            destination.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(metastore: Metastore) -> Iterator[LossyProxy]:
    proxy = LossyProxy(metastore.uri)
    yield proxy
    proxy.close()


@pytest.fixture
def db(metastore: Metastore) -> Iterator[str]:
    name = f"msf_{uuid4().hex[:8]}"
    metastore.create_database(Database(name=name))
    yield name
    metastore.drop_database(name, delete_data=True, cascade=True)


def table_of(db: str, name: str, **parameters: str) -> Table:
    return Table(
        tableName=name,
        dbName=db,
        tableType="EXTERNAL_TABLE",
        partitionKeys=[FieldSchema(name="ds", type="string")],
        parameters={"EXTERNAL": "TRUE", **parameters},
        sd=StorageDescriptor(cols=[], serdeInfo=SerDeInfo(parameters={}), parameters={}, numBuckets=-1, compressed=False),
    )


def test_a_closed_connection_is_opened_again(proxy: LossyProxy, db: str) -> None:
    with Metastore(proxy.uri) as client:
        assert client.database(db)
        proxy.cut()
        time.sleep(0.1)
        assert client.database(db)
        client.close()
        assert client.database(db)
    assert proxy.connections == 3


def test_threads_share_a_limited_number_of_connections(proxy: LossyProxy, db: str) -> None:
    with Metastore(proxy.uri, connections=3, retries=2) as client, ThreadPoolExecutor(12) as pool:
        assert all(pool.map(client.database, [db] * 60))
        assert 1 < proxy.connections <= 3
        proxy.cut()
        time.sleep(0.1)
        assert client.database(db)  # with the second attempt: all idle ones are lost, not only the one that was tried


class Forgetful(Metastore):
    """Of a server that answers well to the next ``forget`` changes, and has rolled them back."""

    forget = 0

    def _attempt(self, what: str, do: Callable[[Any], Any], repeatable: bool) -> Any:
        if self.forget and not what.startswith("get_"):
            self.forget -= 1
            return None
        return super()._attempt(what, do, repeatable)


def test_changes_that_the_metastore_takes_back_although_it_answers_well_are_made_again(metastore: Metastore, db: str) -> None:
    with Forgetful(metastore.uri) as client:

        def made(change: Callable[[], object]) -> None:
            client.forget = 1
            change()
            assert client.forget == 0

        before = metastore.database(db)
        assert before is not None
        for parameters, owner in ({"a": "1", "b": "2"}, "hive"), ({"b": "2"}, "hive"), ({"b": "2"}, "sam"):
            altered = copy_of(before)
            altered.parameters, altered.ownerName = parameters, owner
            made(lambda altered=altered, before=before: client.alter_database(db, altered, before))
            before = metastore.database(db)
            assert before is not None
            assert (before.parameters, before.ownerName) == (parameters, owner)
        made(lambda: client.create_table(table_of(db, "t")))
        table = metastore.table(db, "t")
        assert table is not None
        parts = [Partition(values=[day], dbName=db, tableName="t", sd=copy_of(table.sd), parameters={}) for day in "12"]
        for part in parts:
            part.sd.location = f"{table.sd.location}/ds={part.values[0]}"
        made(lambda: client.add_partitions(db, "t", parts))
        assert metastore.partition_names(db, "t") == ["ds=1", "ds=2"]
        for part in parts:
            part.parameters = {"repl.last.id": "7"}
        made(lambda: client.alter_partitions(db, "t", parts))
        assert [part.parameters.get("repl.last.id") for part in metastore.partitions(db, "t")] == ["7", "7"]
        part = copy_of(parts[0])
        part.values = ["3"]
        made(lambda: client.rename_partitions(db, "t", [(["1"], part)]))
        part.values = ["4"]
        made(lambda: client.rename_partition(db, "t", ["3"], part))
        assert metastore.partition_names(db, "t") == ["ds=2", "ds=4"]
        made(lambda: client.drop_partitions(db, "t", ["ds=2"]))
        assert metastore.partition_names(db, "t") == ["ds=4"]
        table.parameters["hive_replication.source"] = "here"
        made(lambda: client.alter_table(db, "t", table))
        table.tableName = "u"
        made(lambda: client.alter_table(db, "t", table))
        assert metastore.table_names(db) == ["u"]
        database = metastore.database(db)
        assert database is not None
        database.parameters = {"repl.last.id": "7"}
        made(lambda: client.alter_database(db, database))
        assert metastore.database(db).parameters.get("repl.last.id") == "7"  # type: ignore[union-attr]
        made(lambda: client.drop_table(db, "u"))
        assert metastore.table_names(db) == []


def test_a_change_that_the_metastore_takes_back_each_time_is_an_error(metastore: Metastore, db: str) -> None:
    with Forgetful(metastore.uri) as client:
        client.forget = 99
        with pytest.raises(MetastoreError, match=r"create_table .*: the metastore answers that it is done, and it is not"):
            client.create_table(table_of(db, "t"))
    assert metastore.table_names(db) == []


def test_writes_whose_answers_are_lost_are_made_once(proxy: LossyProxy, metastore: Metastore, db: str) -> None:
    with Metastore(proxy.uri) as client:
        start = metastore.current_event_id()
        proxy.lose = 1
        client.create_table(table_of(db, "t", mark="1"))
        made = metastore.table(db, "t")
        assert made is not None
        assert made.parameters["mark"] == "1"
        partition = Partition(values=["1"], dbName=db, tableName="t", sd=copy_of(made.sd), parameters={})
        partition.sd.location = f"{made.sd.location}/ds=1"
        proxy.lose = 1
        client.add_partitions(db, "t", [partition])
        partition.values = ["2"]
        proxy.lose = 1
        client.rename_partition(db, "t", ["1"], partition)
        assert metastore.partition_names(db, "t") == ["ds=2"]
        made.tableName = "t2"
        proxy.lose = 1
        client.alter_table(db, "t", made)
        assert metastore.table_names(db) == ["t2"]
        proxy.lose = 1
        assert client.drop_table(db, "t2")
        assert metastore.table_names(db) == []
        proxy.lose = 1
        client.create_database(Database(name=f"{db}_2"))
        proxy.lose = 1
        assert client.drop_database(f"{db}_2")
        kinds = [event.eventType for event in metastore.events(start) if event.dbName == db]
        assert kinds == ["CREATE_TABLE", "ADD_PARTITION", "ALTER_PARTITION", "ALTER_TABLE", "DROP_TABLE"]
        assert proxy.lose == 0


def test_a_table_of_somebody_else_is_not_taken_for_ours(proxy: LossyProxy, metastore: Metastore, db: str) -> None:
    metastore.create_table(table_of(db, "t", mark="theirs"))
    with Metastore(proxy.uri) as client:
        proxy.lose = 1
        with pytest.raises(Exception, match="already exists"):
            client.create_table(table_of(db, "t", mark="ours"))


def test_an_insert_event_is_never_fired_twice(proxy: LossyProxy, metastore: Metastore, db: str) -> None:
    metastore.create_table(table_of(db, "t"))
    start = metastore.current_event_id()
    with Metastore(proxy.uri) as client:
        client.version()
        proxy.lose = 1
        with pytest.raises(Unreachable, match="may have been carried out"):
            client.fire_insert_event(db, "t", values=None, files=[], checksums=[], replace=False)
    assert [event.eventType for event in metastore.events(start) if event.dbName == db].count("INSERT") == 1


def locks(metastore: Metastore, name: str) -> int:
    request = ShowLocksRequest(dbname=RESERVED_DATABASE, tablename=name.lower())
    return len(metastore.call("show_locks", lambda client: client.show_locks(request)).locks or [])


def test_a_lock_keeps_others_out_and_leaves_nothing(metastore: Metastore) -> None:
    name = f"Lock_{uuid4().hex[:8]}"
    start = metastore.current_event_id()
    with MetastoreLock(metastore, name, heartbeat=0.2) as lock, Metastore(metastore.uri) as other:
        with pytest.raises(Refused, match=rf"another load of {name} runs: .*:\d+:.* since .* UTC; wait"):
            MetastoreLock(other, name).acquire()
        assert locks(metastore, name) == 1
        with MetastoreLock(other, f"{name}_2"):
            pass
        time.sleep(0.5)
        lock.check()
    assert locks(metastore, name) == 0
    with MetastoreLock(metastore, name):
        assert locks(metastore, name) == 1
    assert metastore.current_event_id() == start


HOLD = """
import sys, time
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.lock import MetastoreLock
with MetastoreLock(Metastore(sys.argv[1]), sys.argv[2]):
    print("held", flush=True)
    time.sleep(600)
"""


def test_the_lock_of_a_killed_process_is_taken_over(metastore: Metastore) -> None:
    name = f"lock_{uuid4().hex[:8]}"
    with subprocess.Popen([sys.executable, "-c", HOLD, metastore.uri, name], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(Refused, match=f":{child.pid}:"):
            MetastoreLock(metastore, name).acquire()
        child.kill()
        child.wait()
        with MetastoreLock(metastore, name):
            assert locks(metastore, name) == 1


def test_a_lock_without_heartbeats_is_taken_over_and_its_holder_notices(metastore: Metastore) -> None:
    name = f"lock_{uuid4().hex[:8]}"
    holder = MetastoreLock(metastore, name, heartbeat=2)
    with holder:
        time.sleep(1)
        with MetastoreLock(metastore, name, stale_after=0.5):
            time.sleep(1.5)
            with pytest.raises(Refused, match="was lost"):
                holder.check()
            assert locks(metastore, name) == 1


def test_of_many_that_ask_at_once_one_wins(metastore: Metastore) -> None:
    name = f"lock_{uuid4().hex[:8]}"
    ready = threading.Barrier(6)
    asked = threading.Barrier(6)
    won: list[int] = []

    def ask(number: int) -> None:
        ready.wait()
        lock = MetastoreLock(metastore, name)
        with suppress(Refused):
            lock.acquire()
            won.append(number)
        asked.wait()
        lock.release()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert locks(metastore, name) == 0
