"""Directories of replicas get their access before there are files in them, wherever they lie."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from hive_replication.copy.tasks import CopyTask
from hive_replication.events.files import FileRef
from hive_replication.load.apply.directory_access import DirectoryAccess
from hive_replication.load.apply.lane_placement import LanePlacement
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica.target import Target
from hive_replication.metastore.types import Table
from hive_replication.storage import FileStatus, Storage
from hive_replication.storage.access import Access, AclEntry
from tests.guarded_files import ROOT, WIDE, GuardedFiles

PRIVATE = Access.of_mode("etl", "finance", 0o750)
FILE = FileRef(f"{ROOT}/src/db/t/f", "f")


def access(files: GuardedFiles, location: str) -> DirectoryAccess:
    policy = SimpleNamespace(preserve=("owner", "group", "mode", "acl"))
    target = SimpleNamespace(storage=files, source_storage=files, policy=policy)
    return DirectoryAccess(cast("Target", target), "db", location, {})


def placed(directory: str) -> LanePlacement:
    content = op.Content((FILE,), "7-1", origin=f"{ROOT}/src/db/t")
    lane = LanePlan(("t",), 0, (op.CreateTable(7, "t", Table(tableName="t"), content, directory),))
    tasks = [((0, ""), CopyTask(FILE, f"{directory}/f", 7, "db.t"))]
    return LanePlacement(lane, directories={(0, ""): directory}, tasks=tasks)


@pytest.mark.parametrize("location", [f"{ROOT}/w/db", "s3://bucket/db"], ids=["not made yet", "on an object store"])
@pytest.mark.parametrize("directory", [f"{ROOT}/w/db/t", f"{ROOT}/external/t"])
def test_the_first_data_is_as_private_as_at_the_source_whatever_there_is_of_the_database(location: str, directory: str) -> None:
    """All had what HDFS gives by itself, as long as the database's directory was not there."""
    files = GuardedFiles({"src/db/t": PRIVATE, "src/db/t/f": WIDE})
    lane = placed(directory)
    access(files, location).prepare(lane)
    assert files.access[directory] == PRIVATE
    ((_, task),) = lane.tasks
    assert task.place is not None
    assert task.place.made


def test_a_file_from_another_directory_stays_as_private_as_that_one() -> None:
    """A function's second resource was as open as the directory of the first."""
    readable = Access.of_mode("etl", "etl", 0o644)
    files = GuardedFiles({"src/open/f": readable, "src/private": PRIVATE, "src/private/g": readable})
    uris = (f"{ROOT}/src/open/f", f"{ROOT}/src/private/g")
    lane, found = placed(f"{ROOT}/w/db/t"), tuple(FileRef(uri, uri[-1]) for uri in uris)
    content = op.Content(found, "7-1", origin="")
    lane.lane = LanePlan(("t",), 0, (op.CreateTable(7, "t", Table(tableName="t"), content, f"{ROOT}/w/db/t"),))
    lane.tasks = [((0, ""), CopyTask(file, f"{ROOT}/w/db/t/{file.relative}", 7, "db.t")) for file in found]
    access(files, f"{ROOT}/w/db").prepare(lane)
    shown: list[tuple[str, int]] = []
    for _, task in lane.tasks:
        assert task.place is not None
        status = FileStatus(task.file.uri, 1, False, 0.0, access=files.access[task.file.uri])
        wanted = task.place.wanted(cast("Storage", files), status)
        assert wanted is not None
        shown.append((wanted.group, wanted.mode))
    assert shown == [("etl", 0o644), ("finance", 0o640)]


@pytest.mark.parametrize(
    ("there", "mode", "expected"),
    [
        ({"src/db": PRIVATE, "src/db/t": PRIVATE, "src/db/t/delta": PRIVATE}, 0o640, ("etl", "finance", 0o640)),
        ({"src/db": PRIVATE, "src/db/t": PRIVATE, "src/db/t/delta": PRIVATE}, 0o644, ("etl", "finance", 0o640)),
        ({"src/db/t": PRIVATE, "src/db/t/delta": Access.of_mode("ann", "hr", 0o755)}, 0o640, ("ann", "hr", 0o640)),
        ({"src/db/t": PRIVATE}, 0o640, ("etl", "finance", 0o640)),
        ({"src/db": PRIVATE}, 0o644, ("hive", "staff", 0o600)),
        ({}, 0o644, ("hive", "staff", 0o600)),
    ],
    ids=["private", "no more than its directory", "its own group", "its transaction's gone", "its table's gone", "all gone"],
)
def test_a_file_from_cmroot_is_whose_it_was(there: dict[str, Access], mode: int, expected: tuple[str, str, int]) -> None:
    """It had the metastore's group, whose members could read what they cannot at the source; and its own could not."""
    files = GuardedFiles({"cm/x": Access.of_mode("hive", "hadoop", mode), **there})
    file = FileRef(f"{ROOT}/src/db/t/delta/f", "f", f"{ROOT}/cm", "delta")
    lane = placed(f"{ROOT}/w/db/t")
    content = op.Content((file,), "7-1", origin=f"{ROOT}/src/db/t")
    lane.lane = LanePlan(("t",), 0, (op.CreateTable(7, "t", Table(tableName="t"), content, f"{ROOT}/w/db/t"),))
    lane.tasks = [((0, ""), CopyTask(file, f"{ROOT}/w/db/t/delta/f", 7, "db.t"))]
    access(files, f"{ROOT}/w/db").prepare(lane)
    ((_, task),) = lane.tasks
    assert task.place is not None
    status = FileStatus(f"{ROOT}/cm/x", 1, False, 0.0, access=files.access[f"{ROOT}/cm/x"])
    wanted = task.place.wanted(cast("Storage", files), status, from_cmroot=True)
    assert wanted is not None
    assert (wanted.owner, wanted.group, wanted.mode) == expected


def test_a_file_from_cmroot_whose_own_directory_is_gone_is_for_its_owner_alone() -> None:
    """That of another file of the same object, such as a function's first resource, does not tell whose it was."""
    readable = Access.of_mode("etl", "etl", 0o644)
    files = GuardedFiles({"src/open/f": readable, "cm/x": readable})
    found = (FileRef(f"{ROOT}/src/open/f", "f"), FileRef(f"{ROOT}/src/gone/g", "g", f"{ROOT}/cm"))
    lane = placed(f"{ROOT}/w/db/t")
    content = op.Content(found, "7-1", origin="")
    lane.lane = LanePlan(("t",), 0, (op.CreateTable(7, "t", Table(tableName="t"), content, f"{ROOT}/w/db/t"),))
    lane.tasks = [((0, ""), CopyTask(file, f"{ROOT}/w/db/t/{file.relative}", 7, "db.t")) for file in found]
    access(files, f"{ROOT}/w/db").prepare(lane)
    place = lane.tasks[1][1].place
    assert place is not None
    wanted = place.wanted(cast("Storage", files), FileStatus(f"{ROOT}/cm/x", 1, False, 0.0, access=readable), from_cmroot=True)
    assert wanted is not None
    assert wanted.mode == 0o600


def test_data_on_a_store_without_access_is_left() -> None:
    files = GuardedFiles({"src/db/t": PRIVATE})
    lane = placed("s3://bucket/db/t")
    access(files, f"{ROOT}/w/db").prepare(lane)
    assert [task.place for _, task in lane.tasks] == [None]


@pytest.mark.parametrize("there", [False, True])
def test_the_directory_of_a_new_database_is_as_at_the_source(*, there: bool) -> None:
    files = GuardedFiles({"src/db": PRIVATE} | ({"w/db": WIDE} if there else {}))
    access(files, f"{ROOT}/w/db").database_directory(f"{ROOT}/src/db")
    assert files.access[f"{ROOT}/w/db"] == PRIVATE


def test_no_directory_is_made_for_a_database_that_has_none_at_the_source() -> None:
    files = GuardedFiles({})
    access(files, f"{ROOT}/w/db").database_directory(f"{ROOT}/src/db")
    assert list(files.access) == [f"{ROOT}/"]


@pytest.mark.parametrize("name", ["7-1", "repl-7-1"])
def test_values_of_partitions_show_in_no_directory_that_readers_only_pass(name: str) -> None:
    """Whoever could list the database's directory read them, though the table was private; its own readers still pass."""
    files = GuardedFiles({"src/db/t/customer=acme": PRIVATE, "src/db/t/customer=acme/f": WIDE})
    staged = f"{ROOT}/w/db/{'.repl/' if name == '7-1' else ''}{name}"
    content = op.Content((FileRef(f"{ROOT}/src/db/t/customer=acme/f", "f"),), "7-1", origin=f"{ROOT}/src/db/t/customer=acme")
    lane = placed(f"{staged}/customer=acme")
    lane.lane = LanePlan(("t",), 0, (op.CreateTable(7, "t", Table(tableName="t"), content, f"{staged}/customer=acme"),))
    lane.tasks = [((0, ""), replace(task, file=content.files[0])) for _, task in lane.tasks]
    access(files, f"{ROOT}/w/db").prepare(lane)
    assert files.access[staged].mode == 0o711
    assert (files.access[f"{staged}/customer=acme"], files.allows(f"{staged}/customer=acme")) == (PRIVATE, PRIVATE)


@pytest.mark.parametrize("before", [None, 0o775, 0o750])
def test_notes_of_replication_are_for_its_account_alone(before: int | None) -> None:
    """The journal has images of private tables, their partition values and names of their files."""
    notes = [f"w/db/.repl/{name}" for name in ("journal", "listing", "retired")]
    files = GuardedFiles({} if before is None else {one: Access.of_mode("repl", "staff", before) for one in notes})
    access(files, f"{ROOT}/w/db").hide_notes()
    modes = {one[len("w/db/.repl/") :]: files.access[f"{ROOT}/{one}"].mode for one in notes if f"{ROOT}/{one}" in files.access}
    opened = {"journal": 0o770, "listing": 0o770, "retired": 0o771}
    assert modes == ({"journal": 0o700} if before is None else opened if before == 0o775 else dict.fromkeys(modes, 0o750))
    assert files.access[f"{ROOT}/w/db/.repl"].mode == 0o755


def test_who_was_given_the_notes_of_replication_by_name_keeps_them() -> None:
    """The mode that took them from others was the mask of the ACL, too."""
    ann = AclEntry("user", "ann", 5)
    files = GuardedFiles({"w/db/.repl/journal": Access("repl", "staff", 7, 5, 5, named=(ann,))})
    access(files, f"{ROOT}/w/db").hide_notes()
    assert files.access[f"{ROOT}/w/db/.repl/journal"] == Access("repl", "staff", 7, 5, 0, named=(ann,))
