"""Dump directories that are not finished: scenarios S002, S086 to S115."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from hive_replication.connect import Connection
from hive_replication.dump.bootstrap.table_reader import ObjectReader
from hive_replication.dump.format.record_types import DumpResult
from hive_replication.dump.format.resume import WriterClaim
from hive_replication.dump.format.tree import TreeStore, TreeWriter
from hive_replication.errors import BadRequest, ReplicationError
from hive_replication.load.retention.sweep import sweep
from hive_replication.parallel import Threads
from resources.embedded.hive import HiveDriver
from tests.faults import DyingCopier, Killed
from tests.scenarios.support import Site, content, dying, modified, new_site, wait_for_the_clock

pytestmark = [pytest.mark.servers, pytest.mark.hive]


@pytest.fixture(scope="module")
def site(connection: Connection, hive3: HiveDriver) -> Site:
    """Tables t1 to t3 and a partitioned one, replicated."""
    store = TreeStore(connection.store.storage, connection.store.root)  # one file a record: what was written when is seen
    made = new_site(replace(connection, store=store), hive3)
    made.sql(*(f"CREATE TABLE t{n} (a INT)" for n in (1, 2, 3)), "CREATE TABLE parts (a INT) PARTITIONED BY (p STRING)")
    for name in ("t1", "t2", "t3"):
        made.insert(name, f"{name}\n")
    made.insert("parts", "p1\n", "p=1")
    made.step()
    return made


def interrupt(site: Site, events: int, start: int) -> str:
    """An incremental dump that ends after some events of the database; gives its directory."""
    found: list[str] = []

    def late(writer: TreeWriter, *_: object) -> bool:
        found[:] = [writer.directory]
        return writer.number_of_events == events

    with dying(TreeWriter, "put_event", late):
        site.dump(start)
    return found[0]


def interrupt_bootstrap(site: Site, table: str, number: int = 1) -> str:
    """A bootstrap dump that ends before it reads a table; gives its directory."""
    found: list[str] = []

    def late(reader: ObjectReader, name: str) -> bool:
        found[:] = [reader.writer.directory]
        return name == table

    # One table after another, so that those before it are read.
    with pytest.MonkeyPatch.context() as patch, dying(ObjectReader, "read", late):
        patch.setitem(vars(site.connection.source), "threads", Threads(1, "table"))
        site.dump()
    return found[0]


def assert_whole(site: Site, dump: DumpResult, start: int | None = None) -> None:
    """A dump that was gone on with holds what one holds that was not interrupted."""
    options = {} if start is None else {"to_evid": dump.last_evid}
    fresh = site.dump(start, **options)
    assert fresh.directory != dump.directory
    assert (fresh.tables, fresh.partitions, fresh.events, fresh.files) == (dump.tables, dump.partitions, dump.events, dump.files)
    assert content(site, dump) == content(site, fresh)


def bootstrap_again(site: Site) -> None:
    """Removes the replica, so that a bootstrap can be loaded."""
    site.connection.target.metastore.drop_database(site.database, delete_data=True, cascade=True)


def test_s002_failed_dump_then_retry(site: Site) -> None:
    """A dump made to fail leaves no ack; the next one is complete."""
    directory = interrupt_bootstrap(site, "t2")
    with pytest.raises(BadRequest, match="incomplete"):
        site.load(directory)
    bootstrap_again(site)
    dump = site.dump()
    assert site.load(dump.directory).held == ()
    site.assert_equal()


def test_s086_one_failed_dump(site: Site) -> None:
    """The dumping process is killed: without an ack nothing is loaded; the next dump has everything."""
    start = site.now()
    for number in range(3):
        site.insert("t1", f"s086-{number}\n")
    script = (
        "import os, sys, signal\n"
        "from hive_replication.connect import connect\n"
        "from hive_replication.dump import command\n"
        "from hive_replication.dump.format import resume, tree\n"
        "from hive_replication.policy import Policy\n"
        "from hive_replication.statements import ReplDump\n"
        "resume.INTERVAL = 0.0\n"
        "put = tree.TreeWriter.put_event\n"
        "def dying(writer, record):\n"
        "    if writer.number_of_events == 2:\n"
        "        print(writer.directory, flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    put(writer, record)\n"
        "tree.TreeWriter.put_event = dying\n"
        "sides = connect(Policy.model_validate_json(sys.argv[1]))\n"
        "store = tree.TreeStore(sides.store.storage, sides.store.root)\n"
        "command.repl_dump(sides.source, ReplDump(sys.argv[2], None, int(sys.argv[3])), store)\n"
    )
    policy = site.connection.source.policy.model_dump_json()
    command = [sys.executable, "-c", script, policy, site.database, str(start)]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert child.returncode == -signal.SIGKILL, child.stderr
    killed = child.stdout.strip()
    with pytest.raises(BadRequest, match="incomplete"):
        site.load(killed)
    dump = site.dump(start)
    assert (dump.directory, dump.events) == (killed, 3)
    assert_whole(site, dump, start)


def test_s091_incr_resume(site: Site) -> None:
    """Without an ack the same directory is gone on with, and what was complete is not written again; else a new one."""
    start = site.now()
    for number in range(4):
        site.insert("t1", f"s091-{number}\n")
    directory = interrupt(site, 2, start)
    before = {path: at for path, at in modified(site, directory).items() if path.endswith("_metadata")}
    assert len(before) == 2
    wait_for_the_clock()
    dump = site.dump(start)
    after = modified(site, dump.directory)
    assert (dump.directory, dump.events, dump.files) == (directory, 4, 4)
    assert {path: after[path] for path in before} == before
    assert_whole(site, dump, start)


@pytest.mark.parametrize("damage", [b"", b'{"evid": 1'])
def test_s092_incr_resume_bad_events_file(site: Site, damage: bytes) -> None:
    """A checkpoint that was not written whole does not count: a fresh directory."""
    start = site.now()
    site.insert("t1", "s092-1\n")
    site.insert("t1", "s092-2\n")
    directory = interrupt(site, 1, start)
    storage = site.connection.target.storage
    checkpoints = [status.uri for status in storage.ls(directory) if "/_checkpoint_" in status.uri]
    for uri in checkpoints:
        storage.write(uri, damage)
    dump = site.dump(start)
    assert checkpoints
    assert (dump.directory != directory, dump.events) == (True, 2)
    assert_whole(site, dump, start)


def test_s094_checkpoint_with_table_drop(site: Site) -> None:
    """A table is dropped between the interruption and the rest of the dump."""
    start = site.now()
    site.sql("CREATE TABLE s094 (a INT)")
    site.insert("s094", "1\n")
    site.insert("t1", "s094\n")
    directory = interrupt(site, 2, start)
    site.sql("DROP TABLE s094")
    dump = site.dump(start)
    assert (dump.directory, dump.events) == (directory, 4)
    assert_whole(site, dump, start)
    site.step()
    assert "s094" not in site.tables()
    site.assert_equal()


def test_s098_data_dump_failure_regular(site: Site) -> None:
    """Nothing was noted before the interruption: all is written again, with the same result."""
    found: list[str] = []

    def late(writer: TreeWriter, *_: object) -> bool:
        found[:] = [writer.directory]
        return True

    start = site.now()
    site.insert("t1", "s098\n")
    with dying(TreeWriter, "put_event", late, interval=3600):
        site.dump(start)
    assert not site.connection.target.storage.exists(found[0])
    dump = site.dump(start)
    assert dump.events == 1
    assert_whole(site, dump, start)


def test_s101_resume_with_new_rows(site: Site) -> None:
    """Rows come into a table that was read before the interruption, and into one that was not."""
    directory = interrupt_bootstrap(site, "t2")
    before = modified(site, directory)
    assert f"{site.database}/t1/_metadata" in before
    for table in ("t1", "t3"):
        site.insert(table, "s101\n")
    wait_for_the_clock()
    dump = site.dump()
    after = modified(site, dump.directory)
    untouched = f"{site.database}/parts/_metadata"
    assert dump.directory == directory
    assert after[untouched] == before[untouched]
    assert_whole(site, dump)


def test_s103_resume_with_dropped_table(site: Site) -> None:
    """Tables that were read are dropped, renamed and created again before the dump goes on."""
    site.sql("CREATE TABLE s103 (a INT)", "CREATE TABLE s103_old (a INT)", "CREATE TABLE s103_again (a INT)")
    site.insert("s103_old", "old\n")
    site.insert("s103_again", "first\n")
    directory = interrupt_bootstrap(site, "t1")
    site.sql("DROP TABLE s103", "ALTER TABLE s103_old RENAME TO s103_new")
    site.sql("DROP TABLE s103_again", "CREATE TABLE s103_again (a INT, b INT)")
    dump = site.dump()
    assert dump.directory == directory
    tables = [record.name for record in site.connection.store.open(dump.directory).tables()]
    assert [name for name in tables if name.startswith("s103")] == ["s103_again", "s103_new"]
    assert_whole(site, dump)


def test_s104_metadata_dump_failure(site: Site) -> None:
    """Interrupted while the events of its time are folded in, or without its notes: nothing of it is used."""
    with dying(TreeWriter, "finish", lambda *_: True):
        site.dump()
    half = interrupt_bootstrap(site, "t3")
    storage = site.connection.target.storage
    for status in storage.ls(half):
        if "/_attempt_" in status.uri:
            storage.delete(status.uri)
    dump = site.dump()
    assert dump.directory != half
    assert not [path for path in modified(site, dump.directory) if path == "_attempt_2"]
    assert_whole(site, dump)


def test_s106_event_batches(site: Site) -> None:
    """A checkpoint after the second event: after a failure what was complete then stays, what came later is written again."""
    start = site.now()
    for number in range(5):
        site.insert("t2", f"s106-{number}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TreeWriter, "due", lambda writer: writer.number_of_events == 2)
        directory = interrupt(site, 4, start)
    before = {path: at for path, at in modified(site, directory).items() if path.endswith("/_metadata")}
    wait_for_the_clock()
    dump = site.dump(start)
    after = modified(site, dump.directory)
    kept = sorted(int(path.split("/")[0]) for path, at in before.items() if after[path] == at)
    assert (dump.directory, dump.events) == (directory, 5)
    assert kept == sorted(int(path.split("/")[0]) for path in before)[:2]
    assert_whole(site, dump, start)


def test_s107_events_count_with_filter(site: Site) -> None:
    """The ack counts the events that were dumped, not those of other databases or tables left out."""
    start, other = site.now(), site.database + "o"
    site.hive.execute(f"CREATE DATABASE {other}", f"CREATE TABLE {other}.x (a INT)")
    site.insert("t1", "s107\n")
    site.insert("t3", "s107\n")
    dump = site.with_policy(tables=("t1",)).dump(start)
    ack = json.loads(site.connection.target.storage.read(f"{dump.directory}/_finished_dump"))
    assert dump.last_evid - start > 2
    assert (ack["events"], dump.events) == (1, 1)


def test_s109_same_policy_resume(site: Site) -> None:
    """The same policy and statement, a pattern of tables, goes on."""
    narrow, start = site.with_policy(tables=("t*",), exclude=("t3",)), site.now()
    for table in ("t1", "t2", "t3"):
        site.insert(table, "s109\n")
    directory = interrupt(narrow, 1, start)
    dump = narrow.dump(start)
    assert (dump.directory, dump.events) == (directory, 2)
    assert_whole(narrow, dump, start)


def test_s110_changed_policy_no_resume(site: Site) -> None:
    """Another choice of tables restarts a bootstrap dump."""
    directory = interrupt_bootstrap(site, "t3")
    dump = site.with_policy(exclude=("t1",)).dump()
    assert dump.directory != directory
    tables = {record.name for record in site.connection.store.open(dump.directory).tables()}
    assert set(site.tables(source=True)) - tables == {"t1"}


@pytest.mark.parametrize("other", [{"tables": ("t1",)}, {"to_evid": True}, {"batch": 9}])
def test_s112_incr_resume_diff_expression(site: Site, other: dict[str, object]) -> None:
    """Another choice of tables, or another window, restarts an incremental dump."""
    start = site.now()
    for table in ("t1", "t2"):
        site.insert(table, "s112\n")
    directory = interrupt(site, 1, start)
    if "tables" in other:
        dump = site.with_policy(**other).dump(start)
        assert dump.events == 1
    else:
        options = {"to_evid": site.now()} if "to_evid" in other else other
        dump = site.dump(start, **options)
        assert dump.events == 2
    assert dump.directory != directory


def test_s113_external_incr_checkpoint(site: Site) -> None:
    """Of an external table, whose files are listed at the dump: what the first event listed is not listed again."""
    start = site.now()
    site.sql("CREATE EXTERNAL TABLE s113 (a INT) PARTITIONED BY (p INT)")
    for part in ("p=1", "p=2"):
        site.insert("s113", f"{part}\n", part)
    directory = interrupt(site, 2, start)
    (first,) = (path for path in modified(site, directory) if path.endswith("p=1/_files"))
    before = modified(site, directory)[first]
    wait_for_the_clock()
    dump = site.dump(start)
    assert (dump.directory, dump.events) == (directory, 3)
    assert modified(site, directory)[first] == before
    site.step()
    assert site.rows("s113") == ["p=1", "p=2"]
    site.assert_equal()


def test_s095_bootstrap_in_incr_data_failure(site: Site) -> None:
    """A table that comes into the policy later is bootstrapped by itself; the load dies among its files, and is done again."""
    site.sql("CREATE TABLE s095 (a INT) PARTITIONED BY (p INT)")
    for part in range(3):
        site.insert("s095", f"{part}\n", f"p={part}")
    narrow = site.with_policy(exclude=("s095",))
    narrow.step()
    assert "s095" not in site.tables()
    dump = site.dump_table("s095")
    site.copier = DyingCopier(site.connection.copier, 2)
    with pytest.raises(Killed):
        site.load(dump.directory)
    site.copier = None
    site.insert("t1", "s095\n")
    report = site.load(dump.directory)
    assert (report.held, report.files_by_origin) == ((), {"present": 2, "source": 1})
    site.insert("s095", "later\n", "p=1")
    site.step()
    site.assert_equal()


def test_s097_data_dump_failure_distcp(site: Site) -> None:
    """Interrupted while data is copied, which the load does: what is proven stays untouched, the rest is copied."""
    bootstrap_again(site)
    dump = site.dump()
    site.copier = DyingCopier(site.connection.copier, 2)
    with pytest.raises(Killed):
        site.load(dump.directory)
    site.copier = None
    location = site.connection.target.metastore.database(site.database)
    assert location is not None
    storage = site.connection.target.storage
    before = {status.uri: status.modified for status in storage.files(str(location.locationUri), hidden=True)}
    wait_for_the_clock()
    report = site.load(dump.directory)
    after = {status.uri: status.modified for status in storage.files(str(location.locationUri), hidden=True)}
    assert [uri for uri, at in before.items() if after.get(uri) == at] == list(before)
    data = [uri for uri in after if "/.repl/" not in uri]  # of two that were copied, some may be visible already
    assert report.files_by_origin["source"] == len(data) - 2
    site.assert_equal()


def test_a_writer_that_lost_its_directory_stops(site: Site) -> None:
    """Two processes never write one dump: who is taken for dead stops at its next checkpoint, and at the end."""
    start = site.now()
    site.insert("t1", "lost\n")
    site.insert("t1", "lost too\n")

    def taken_over(writer: TreeWriter) -> bool:
        storage = site.connection.target.storage
        WriterClaim(storage, writer.directory, "", 2)
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TreeWriter, "due", taken_over)
        with pytest.raises(ReplicationError, match=r"(another process|exists)"):
            site.dump(start)
    assert site.dump(start).events == 2


def test_another_history_is_not_gone_on_with(site: Site) -> None:
    """The source's log has another event at the checkpoint than the interrupted dump saw."""
    start = site.now()
    for number in range(2):
        site.insert("t1", f"history-{number}\n")
    directory = interrupt(site, 1, start)
    storage = site.connection.target.storage
    (checkpoint, *_) = (status.uri for status in storage.ls(directory) if "/_checkpoint_" in status.uri)
    values = json.loads(storage.read(checkpoint))
    storage.write(checkpoint, json.dumps(values | {"hash": "0" * 16}).encode())
    dump = site.dump(start)
    assert dump.directory != directory
    assert not storage.exists(directory)
    assert_whole(site, dump, start)


def test_s088_retain_previous_dumps(site: Site) -> None:
    """Dumps are kept for a time, then those that are loaded are deleted, and those left unfinished; what waits stays."""
    site.insert("t1", "s088\n")
    loaded, left = site.step(), interrupt_bootstrap(site, "t2")
    site.insert("t1", "s088 again\n")
    waiting = site.dump(site.applied())
    store = site.connection.store
    kept = site.with_policy(retention_seconds=3600)
    assert [one for one in sweep(kept.connection.target, site.database, store) if one.what == "dump"] == []
    assert loaded.directory in store.dumps(site.database)
    time.sleep(1.1)  # the retention time, in whole seconds
    everything = site.with_policy(retention_seconds=0)
    swept = {one.path for one in sweep(everything.connection.target, site.database, store) if one.what == "dump"}
    assert {loaded.directory, left} <= swept
    assert store.dumps(site.database) == [waiting.directory]
    assert not site.connection.target.storage.exists(left)
    assert site.load(waiting.directory).held == ()
    site.assert_equal()
