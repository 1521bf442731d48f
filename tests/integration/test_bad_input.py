"""What hive-repl answers to bad input: one clear line, the right exit code, and an untouched target."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
import yaml

from hive_replication.cli.main import run
from hive_replication.connect import Connection, connect
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.types import Database, FieldSchema, SerDeInfo, StorageDescriptor, Table
from hive_replication.policy import load_policy
from resources.embedded.cluster import Cluster
from resources.embedded.policy import write_policy
from tests.dumps import reseal

pytestmark = pytest.mark.servers

PROGRAM = [sys.executable, "-c", "from hive_replication.cli import main; main()"]
CLOSED = "thrift://127.0.0.1:1"


@dataclass(frozen=True)
class Answer:
    """What one run of hive-repl said."""

    code: int
    out: str
    err: str

    def assert_held(self, table: str) -> None:
        """Nothing but this table is held, and nothing of it is on the target."""
        assert (self.code, self.out) == (3, ""), self
        assert [line.split()[1] for line in self.err.splitlines() if line.startswith("held: ")] == [table], self

    def assert_refused(self, code: int, *words: str) -> None:
        """Exactly one line that holds the words, and the exit code."""
        assert self.code == code, self
        assert self.out == ""
        assert self.err.startswith("hive-repl: ")
        assert self.err.count("\n") == 1, self.err
        for word in words:
            assert word in self.err


@dataclass(frozen=True)
class Site:
    """A source database with one table, and the means to run hive-repl on it."""

    policy: Path
    connection: Connection
    database: str

    def start(self, *words: str, policy: Path | None = None) -> subprocess.Popen[str]:
        """Starts hive-repl in a process of its own."""
        command = [*PROGRAM, "--config", str(policy or self.policy), *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words: str, policy: Path | None = None) -> Answer:
        """Runs hive-repl to its end, in this process: to start one takes longer than most of its work."""
        with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
            code = run(["--config", str(policy or self.policy), *words])
        return Answer(code, out.getvalue(), err.getvalue())

    def dump(self) -> str:
        """A bootstrap dump made by hive-repl; its directory."""
        answer = self.run("REPL", "DUMP", self.database)
        assert answer.code == 0, answer
        return answer.out.split("\t")[0]

    def edit(self, uri: str, change: Callable[[str], str]) -> None:
        """Changes a file of a dump, and the digest of the dump so that it does not show."""
        storage = self.connection.target.storage
        before = storage.read(uri).decode()
        after = change(before)
        assert after != before
        storage.write(uri, after.encode())
        root = self.connection.store.root
        reseal(storage, "/".join((root, *uri.removeprefix(f"{root}/").split("/")[:2])))

    def edit_table(self, dump: str, change: Callable[[Table], None]) -> None:
        """Changes the table in the ``_metadata`` of a dump."""

        def changed(text: str) -> str:
            value = json.loads(text)
            table = tjson.loads(Table, value["table"])
            change(table)
            return json.dumps(value | {"table": tjson.dumps(table)})

        self.edit(f"{dump}/{self.database}/orders/_metadata", changed)

    def replicated(self) -> list[str]:
        """Tables of the replica, and files of theirs, placed or on their way."""
        target = self.connection.target
        database = target.metastore.database(self.database)
        assert database is not None
        files = [file.uri for file in target.storage.files(str(database.locationUri), hidden=True)]
        return [*target.metastore.table_names(self.database), *(uri for uri in files if "/.repl/journal/" not in uri)]

    def target(self) -> object:
        """The target's newest event, objects and paths; of this database only where other tests use the same servers."""
        shared = "HIVE_REPL_TEST_CLUSTER" in os.environ
        target = self.connection.target
        found = target.metastore.database(self.database)
        tables = list(target.metastore.tables(self.database, target.metastore.table_names(self.database))) if found else []
        files = target.storage.files(target.policy.target.roots[0].uri, hidden=True)
        paths = [file.uri for file in files if not shared or self.database in file.uri]
        return None if shared else target.metastore.current_event_id(), found, tables, paths


def ended(process: subprocess.Popen[str]) -> Answer:
    out, err = process.communicate(timeout=120)
    return Answer(process.returncode, out, err)


@pytest.fixture
def site(cluster: Cluster, tmp_path: Path, unique: str) -> Site:
    policy = tmp_path / "policy.yaml"
    write_policy(cluster, policy, {unique: unique})
    connection = connect(load_policy(policy))
    metastore = connection.source.metastore
    metastore.create_database(Database(name=unique, ownerName="hive"))
    add_table(connection, unique, "orders")
    return Site(policy, connection, unique)


def add_table(connection: Connection, database: str, name: str, *, target: bool = False) -> None:
    """Makes a table with one file."""
    side = connection.target if target else connection.source
    found = side.metastore.database(database)
    assert found is not None
    location = f"{found.locationUri}/{name}"
    side.storage.write(f"{location}/data", b"1\n2\n")
    serde = SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={})
    sd = StorageDescriptor(
        cols=[FieldSchema(name="id", type="int")],
        location=location,
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=serde,
        parameters={},
        bucketCols=[],
        sortCols=[],
    )
    side.metastore.create_table(
        Table(tableName=name, dbName=database, tableType="MANAGED_TABLE", sd=sd, partitionKeys=[], parameters={})
    )


def test_the_whole_way_works_without_bad_input(site: Site) -> None:
    """What the refusals below are compared with."""
    assert site.run("REPL", "STATUS", site.database) == Answer(0, "", "")
    dumped = site.run(f"repl dump {site.database}", "--json")
    answer = json.loads(dumped.out)
    assert (answer["tables"], answer["files"]) == (1, 1)
    before = site.target()
    plan = site.run("plan", "FROM", answer["dir-name"])
    assert (plan.code, plan.err.splitlines()[-1]) == (0, "Conflicts: none"), plan
    assert [line.split("\t")[2:6] for line in plan.out.splitlines()] == [
        ["CreateDatabase", site.database, "", ""],
        ["CreateTable", f"{site.database}.orders", "1", "4"],
    ]
    assert site.target() == before
    loaded = site.run("REPL", "LOAD", "FROM", answer["dir-name"])
    assert (loaded.code, loaded.out) == (0, "")
    assert "files: 1 (1 from source), 4 B copied, all proven" in loaded.err
    assert site.run("REPL", "STATUS", site.database).out == f"{answer['last-evid']}\n"
    assert site.run("verify", site.database) == Answer(0, "orders\t0\t0\t1\t1\t1\t\n", "")
    lag = json.loads(site.run("--json", "lag").out)[0]
    assert (lag["applied"], lag["waiting"], lag["seconds_behind"]) == (answer["last-evid"], 0, 0)

    add_table(site.connection, site.database, "items")
    lag = json.loads(site.run("--json", "lag").out)[0]
    assert lag["waiting"] == 1
    assert lag["seconds_behind"] >= 0
    different = site.run("verify", site.database, "--json")
    assert different.code == 1
    assert json.loads(different.out)["tables"][0]["differences"] == ["the table is on the source, not on the target"]


def test_retention_and_undo(site: Site) -> None:
    """What they do, their dry runs, and what they refuse."""
    settings = yaml.safe_load(site.policy.read_text())
    site.policy.write_text(yaml.safe_dump(settings | {"grace_seconds": 0, "retention_seconds": 0}))
    storage, database = site.connection.target.storage, site.database
    dump = site.dump()
    assert site.run("REPL", "LOAD", "FROM", dump).code == 0
    first = site.run("REPL", "STATUS", database).out.strip()
    dry = site.run("retention", database, "--dry-run")
    assert (dry.code, "0 B would be moved aside" in dry.err) == (0, True), dry
    assert dump in dry.out
    assert storage.exists(dump)

    add_table(site.connection, database, "items")
    site.connection.source.metastore.drop_table(database, "orders", delete_data=False)
    later = site.run("REPL", "DUMP", database, "FROM", first).out.split("\t")[0]
    assert site.run("REPL", "LOAD", "FROM", later).code == 0
    before = site.target()
    dry = site.run("undo", database, "--to", first, "--dry-run")
    assert (dry.code, "would be back at event" in dry.err) == (0, True), dry
    assert [line.split("\t")[1:] for line in dry.out.splitlines()] == [
        ["DropTable", f"{database}.orders"],
        ["CreateTable", f"{database}.items"],
    ]
    assert site.target() == before
    site.run("undo", database, "--to", "1").assert_refused(2, "the nearest that can be undone to", first)
    assert site.run("undo", database, "--to", first).code == 0
    assert site.run("REPL", "STATUS", database).out == f"{first}\n"
    site.run("REPL", "LOAD", "FROM", later).assert_refused(3, f"hive-repl undo {database} --release")
    assert "loads later events again" in site.run("undo", database, "--release").err
    assert "was not undone" in site.run("undo", database, "--release").err
    assert site.run("REPL", "LOAD", "FROM", later).code == 0

    swept = site.run("retention", database)
    assert (swept.code, f"{dump}\tdeleted" in swept.out) == (0, True), swept
    assert not storage.exists(dump)
    site.run("undo", database, "--to", first).assert_refused(2, "the nearest that can be undone to")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("REPL DUMP {db}_absent", "has no database '{db}_absent'"),
        ("REPL DUMP {db}.absent", "has no table {db}.absent"),
        ("REPL DUMP {db} FROM", "the event id after FROM"),
        ("REPL DUMP {db} FROM 99999999", "99999999"),
        ("REPL LOAD {db} FROM {dumps}/{db}/absent", "there is no dump at {dumps}/{db}/absent"),
        ("undo {db} --to 5", "'{db}' is no replica with anything to undo"),
        ("undo {db}", "either --to with an event id, or --release"),
        ("undo {db} --to 5 --release", "either --to with an event id, or --release"),
        ("undo {db} --to soon", "Invalid value for '--to'"),
        ("retention {db}_absent", "has no database '{db}_absent'"),
        ("verify {db}_absent", "has no database '{db}_absent'"),
        ("verify {db}.absent", "has a table {db}.absent to compare"),
    ],
)
def test_requests_for_what_is_not_there(site: Site, words: str, said: str) -> None:
    names = {"db": site.database, "dumps": site.connection.source.policy.dump_root}
    before = site.target()
    site.run(*words.format(**names).split()).assert_refused(2, said.format(**names))
    assert site.target() == before


def test_incomplete_dumps(site: Site) -> None:
    storage, database = site.connection.target.storage, site.database
    dump = site.dump()
    damages = {
        "_finished_dump": "is incomplete (it has no _finished_dump): dump again",
        f"{database}/orders/_files": "is incomplete",
        f"{database}/orders": "is incomplete",
        "_dumpmetadata": "is incomplete",
    }
    for lost, said in damages.items():
        dump = site.dump()
        storage.delete(f"{dump}/{lost}", recursive=True)
        before = site.target()
        site.run("REPL", "LOAD", "FROM", dump).assert_refused(2, dump, said)
        assert site.target() == before
    dump = site.dump()
    site.edit(f"{dump}/_dumpmetadata", lambda text: text[:-20])
    before = site.target()
    site.run("REPL", "LOAD", "FROM", dump).assert_refused(2, dump, "is unreadable")
    assert site.target() == before


def test_a_dump_of_another_source(site: Site) -> None:
    first, second = site.dump(), site.dump()
    assert site.run("REPL", "LOAD", "FROM", first).code == 0
    site.edit(f"{second}/_dumpmetadata", lambda text: re.sub(r'"source": "[^"]+"', '"source": "another"', text))
    before = site.target()
    said = f"the target database '{site.database}' is a replica of"
    site.run("REPL", "LOAD", "FROM", second).assert_refused(3, said, f"not of another/{site.database}")
    assert site.target() == before


def _location(location: str) -> Callable[[Table], None]:
    def change(table: Table) -> None:
        table.sd.location = location.format(own=table.sd.location)

    return change


def _name(name: str) -> Callable[[Table], None]:
    def change(table: Table) -> None:
        table.tableName = name

    return change


FILE_EDITS = {
    "another cluster": lambda line: "hdfs://127.0.0.1:1/etc/passwd###\n",
    "a local file": lambda line: "file:///etc/passwd###\n",
    "above the root": lambda line: re.sub(r"/orders/data#", "/orders/../../../../data#", line),
    "a foreign cmroot": lambda line: line.replace("/cmroot", "/../cmroot") if "/cmroot" in line else line + "x",
    "out of the replica": lambda line: line.rstrip("\n") + "../../../..\n",
}


@pytest.mark.parametrize("change", FILE_EDITS.values(), ids=FILE_EDITS.keys())
def test_files_that_lead_out_of_the_roots(site: Site, change: Callable[[str], str]) -> None:
    dump = site.dump()
    site.edit(f"{dump}/{site.database}/orders/_files", change)
    site.run("REPL", "LOAD", "FROM", dump).assert_held("orders")
    assert site.replicated() == []


def test_a_location_that_leads_out_of_the_roots(site: Site) -> None:
    dump = site.dump()
    site.edit_table(dump, _location("{own}/../../../../evil"))
    site.run("REPL", "LOAD", "FROM", dump).assert_held("orders")
    assert site.replicated() == []


def test_a_table_whose_name_is_a_path(site: Site) -> None:
    dump = site.dump()
    site.edit_table(dump, _name("../../evil"))
    before = site.target()
    site.run("REPL", "LOAD", "FROM", dump).assert_refused(3)
    assert site.target() == before


@pytest.mark.parametrize(
    ("directory", "exit_code"),
    [("{dumps}/../dumps2/x", 3), ("{dumps}2/x", 3), ("file:///etc", 3), ("hdfs://127.0.0.1:1/x", 3), ("relative", 2)],
)
def test_dump_directories_outside_the_dump_root(site: Site, directory: str, exit_code: int) -> None:
    before = site.target()
    path = directory.format(dumps=site.connection.source.policy.dump_root)
    site.run("REPL", "LOAD", "FROM", path).assert_refused(exit_code, path)
    assert site.target() == before


def test_unreachable_metastores(site: Site, tmp_path: Path) -> None:
    dump = site.dump()
    before = site.target()
    started: list[subprocess.Popen[str]] = []
    for side, words in {"source": ("REPL", "DUMP", site.database), "target": ("REPL", "LOAD", "FROM", dump)}.items():
        content = yaml.safe_load(site.policy.read_text())
        content[side]["metastore"] = CLOSED
        path = tmp_path / f"{side}.yaml"
        path.write_text(yaml.safe_dump(content))
        started.append(site.start(*words, policy=path))
    for process in started:
        ended(process).assert_refused(1, CLOSED, "check that the metastore runs")
    assert site.target() == before


def test_a_target_database_that_is_no_replica(site: Site) -> None:
    metastore = site.connection.target.metastore
    metastore.create_database(Database(name=site.database, ownerName="hive"))
    add_table(site.connection, site.database, "orders", target=True)
    dump = site.dump()
    before = site.target()
    site.run("REPL", "LOAD", "FROM", dump).assert_refused(3, f"'{site.database}' exists and is not a replica of this source")
    assert site.target() == before
    assert site.run("REPL", "STATUS", site.database).out == ""
