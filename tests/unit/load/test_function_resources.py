"""Resources of functions on the target that are not what they were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from hive_replication.dump.format.record_types import FunctionRecord
from hive_replication.events.files import FileRef
from hive_replication.load import bootstrap
from hive_replication.load.operations.functions import CreateFunction, create_function, differing_copies, state_id
from hive_replication.load.plan.bootstrap_functions import plan_functions
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target_view import TargetView
from hive_replication.metastore.types import Function, ResourceUri
from hive_replication.policy import Root
from hive_replication.storage import FileChecksum, Storage
from tests.bootstraps import SOURCE, header, loading
from tests.replica import MAPPING

JAR = "hdfs://src/jars/f.jar"


class Store(Storage):
    """A directory whose files' content is their checksum."""

    def __init__(self, folder: Path) -> None:
        super().__init__((Root(uri=folder.as_uri()),))

    def checksum(self, uri: str) -> FileChecksum:
        return FileChecksum("TEXT", Path(uri.removeprefix("file://")).read_text())


class Target:
    """A target with one function."""

    def __init__(self, held: Function) -> None:
        self.held, self.metastore = [held], self

    def function(self, *_: object) -> Function:
        return self.held[0]

    def drop_function(self, *_: object) -> None:
        self.held.clear()

    def create_function(self, image: Function) -> None:
        self.held.append(image)


def function() -> Function:
    return Function(functionName="f", dbName="db", className="C", ownerName="o", resourceUris=[ResourceUri(uri=JAR)])


def test_a_repair_copies_resources_again_that_are_damaged_or_gone_though_no_event_came_since(tmp_path: Path) -> None:
    """They go beside those that are there: who has loaded these goes on using them, and a load overwrites no file."""
    mapping = replace(MAPPING, functions_root=tmp_path.as_uri())
    record = FunctionRecord(function(), (FileRef(JAR, "right"),))
    made = create_function(mapping, record.function, record.files, 50)

    def planned(there: Function, state: str | None, evid: int = 50) -> list[CreateFunction]:
        jar = Path(there.resourceUris[0].uri.removeprefix("file://"))
        jar.parent.mkdir(parents=True, exist_ok=True)
        jar.unlink(missing_ok=True)
        if state is not None:
            jar.write_text(state)
        found = {"f": there}
        again = differing_copies(Store(tmp_path), mapping, [record], found, evid)
        lanes = plan_functions(mapping, TargetView(ReplicaState("s", evid)), [record], found, evid, differing=again)
        return [one for lane in lanes for one in lane.operations if isinstance(one, CreateFunction)]

    assert planned(made.image, "right") == []
    for state in ("wrong", None):
        (again,) = planned(made.image, state)
        assert (again.directory, again.image.resourceUris[0].uri) == (f"{made.directory}/1", f"{made.directory}/1/f.jar")
        assert state_id(again.image, again.homes) == 50
        target = Target(made.image)
        again.carry_out(cast("Any", target), "db")
        assert target.held == [again.image]
    assert planned(again.image, "right") == []
    (third,) = planned(again.image, "wrong")
    assert third.directory == f"{made.directory}/2"
    (later,) = planned(made.image, "wrong", 60)
    assert later.directory == f"{made.homes[0]}/60"
    assert planned(made.image, "wrong", 40) == []


@pytest.mark.parametrize("repair", [True, False])
def test_only_a_repair_looks_at_them(tmp_path: Path, *, repair: bool) -> None:
    session = loading(ReplicaState(SOURCE, 50), header(50), [])
    made = create_function(session.mapping, function(), (FileRef(JAR, "right"),), 50)
    there: Any = session.target
    there.storage, there.source_storage = Store(tmp_path), Storage((Root(uri="hdfs://src/"),))
    there.metastore.functions, there.metastore.database = lambda _: [made.image], lambda _: None
    reader: Any = session.reader
    reader.functions = lambda: iter([FunctionRecord(function(), (FileRef(JAR, "right"),))])
    bootstrap.load_objects(session, repair=repair)
    assert [type(one) for lane in session.lanes.values() for one in lane.operations] == [CreateFunction] * repair
