"""A policy of 200 databases on real metastores: how long a tick takes, and a storm of events in one of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import dagster as dg
import pytest

from hive_replication.connect import Connection
from hive_replication.dump.source import SOURCE_FOR
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Database, copy_of
from hive_replication.policy import Policy
from repl_assets.catalog.keys import Window
from sensors.notification_log.decision import MANY_EVENTS
from tests.origin import Origin
from tests.policy_sensor import Sensor
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]

_DATABASES = 200
_STORM = 2_000  # events
_THREADS = 8


@pytest.fixture
def many(connection: Connection, unique: str) -> Iterator[Sensor]:
    """The sensor of 200 databases without tables, each replicated to an event of its own."""
    names = [f"{unique}_{number:03}" for number in range(_DATABASES)]
    source, target = connection.source, connection.target.metastore
    with ThreadPoolExecutor(_THREADS) as threads, dg.DagsterInstance.ephemeral() as instance:
        marked = {SOURCE_FOR: "hive_replication"}
        stands = dict[str, int]()
        for name in names:
            source.metastore.create_database(Database(name=name, parameters=marked))
            stands[name] = source.metastore.current_event_id()

        def replicate(name: str) -> None:
            """Makes what the load of a dump without tables leaves."""
            state = ReplicaState(f"{source.identity}/{name}", stands[name], *source.reach(stands[name]))
            target.create_database(Database(name=name, parameters=state.parameters()))

        list(threads.map(replicate, names))
        made = Sensor(Warehouse(connection, None, names[0]), instance)  # type: ignore[arg-type] (no Hive driver is needed)
        made.set_policy(databases={name: name for name in names})
        yield made
        list(threads.map(partial(_drop, source.metastore), names))
        list(threads.map(partial(_drop, target), names))


def _drop(metastore: Metastore, name: str) -> None:
    """Drops a database; a metastore refuses to drop one that is marked as a source."""
    plain = copy_of(metastore.database(name) or Database(name=name))
    plain.parameters = {}
    metastore.alter_database(name, plain)
    metastore.drop_database(name, cascade=True, delete_data=True)


def test_a_tick_over_many_databases_takes_less_than_a_second(many: Sensor, connection: Connection) -> None:
    """On a machine that others leave alone; on any other little more than its calls."""
    assert many.reason().startswith("no events")
    names = sorted(many.policy.databases)
    for name in (names[7], names[42], names[150]):
        Origin(many.connection, name).create("t")
    before, took, calls = many.cursor, list[float](), list[float]()
    for _ in range(40):  # others may work on the machine
        many.cursor, began = before, time.perf_counter()
        request = many.request()
        took.append(time.perf_counter() - began)
        if took[-1] < 1:
            break
        began = time.perf_counter()
        for name in names:
            connection.target.metastore.database(name)
        calls.append(time.perf_counter() - began)
    print(f"\na tick over {_DATABASES} databases: {min(took):.3f} s, calls {many.source.calls} and {many.target.calls}")
    assert request.tags["hive_replication/database"] == f"{names[7]}, {names[42]}, {names[150]}"
    assert min(took) < max(1, 3 * min(calls, default=0))
    assert many.source.calls <= 10
    assert many.target.calls == _DATABASES


@pytest.mark.long
def test_a_storm_in_one_database_delays_no_other(many: Sensor) -> None:
    hot, quiet, other = sorted(many.policy.databases)[:3]
    assert many.reason().startswith("no events")
    _storm(Origin(many.connection, hot))
    Origin(many.connection, quiet).create("t")
    result = many.tick()
    assert isinstance(result, dg.SensorResult)
    requests = {request.tags["hive_replication/database"]: request for request in result.run_requests or ()}
    assert requests.keys() == {hot, quiet}
    many.record(requests[hot], dg.DagsterRunStatus.STARTED)
    _run(many, requests[quiet], quiet)
    assert many.target.table(quiet, "t")
    assert many.target.table(hot, "t") is None
    Origin(many.connection, other).create("t")
    Origin(many.connection, hot).create("later")
    began = time.perf_counter()
    request = many.request()
    print(f"\na tick during the storm: {time.perf_counter() - began:.3f} s, calls {many.source.calls} and {many.target.calls}")
    assert request.tags["hive_replication/database"] == other
    _run(many, request, other)
    assert many.target.table(other, "t")
    assert "is in progress" in many.reason()
    (run,) = many.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
    many.instance.report_run_failed(run)
    assert f"{hot}: attempt 2 of window" in many.reason()
    again = many.request(later=60)
    assert (again.tags["hive_replication/database"], again.partition_key) == (hot, requests[hot].partition_key)


def _storm(origin: Origin) -> None:
    """Alters a table and adds partitions, each with an event."""
    origin.create("t")
    origin.create("p", "first")
    metastore = origin.connection.source.metastore
    table = metastore.table(origin.database, "t")
    (first,) = metastore.partitions(origin.database, "p", ["ds=first"])
    assert table
    began, events = time.perf_counter(), metastore.current_event_id()

    def change(number: int) -> None:
        if number % 2:
            altered = copy_of(table)
            altered.parameters = {**(altered.parameters or {}), "number": str(number)}
            metastore.call("alter_table", lambda client: client.alter_table(origin.database, "t", altered))
        else:
            part = copy_of(first)
            part.values = [str(number)]
            metastore.call("add_partition", lambda client: client.add_partition(part))

    with ThreadPoolExecutor(_THREADS) as threads:
        list(threads.map(change, range(_STORM)))
    events = metastore.current_event_id() - events
    assert events >= _STORM > MANY_EVENTS
    print(f"\n{events} events in {time.perf_counter() - began:.1f} s")


def _run(many: Sensor, request: dg.RunRequest, database: str) -> None:
    """Executes a run in a code location of its database alone, which takes less time to make."""
    whole: Policy = many.policy
    many.instance.add_dynamic_partitions(str(many.names.windows.name), [str(request.partition_key)])
    many.set_policy(databases={database: database})
    try:
        assert many.run(request).success
    finally:
        many.set_policy(databases=whole.databases)
    assert replica_state(many.target.database(database)).applied == Window.parse(str(request.partition_key)).end
