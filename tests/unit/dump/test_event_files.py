"""Files that events bring, as a directory's listing at the dump tells them."""

from __future__ import annotations

from hive_replication.dump.format.record_types import FileGroup
from hive_replication.dump.incremental.event_files import without_later_files
from hive_replication.events import event_records as r
from hive_replication.events.files import FileRef
from hive_replication.metastore.types import Table

FIRST, SECOND = (FileRef(f"hdfs://s/new/{name}", "", "", "") for name in "ab")


def insert(*files: FileRef) -> r.Insert:
    return r.Insert(7, 8, "INSERT", "db", "t", Table(), None, "", replace=False, files=files)


def test_a_listing_has_no_files_of_later_inserts() -> None:
    """A table gets another location, is renamed, and is written to: under its old name it never had what was written last."""
    listed, named = FileGroup("", (FIRST, SECOND), listed=True), FileGroup("", (SECOND,))
    brought = without_later_files([None, insert(SECOND)], [(listed,), (named,)])
    assert brought == [(FileGroup("", (FIRST,), listed=True),), (named,)]


def test_a_listing_has_files_of_earlier_inserts() -> None:
    listed, named = FileGroup("", (FIRST, SECOND), listed=True), FileGroup("", (SECOND,))
    assert without_later_files([insert(SECOND), None], [(named,), (listed,)]) == [(named,), (listed,)]


def test_what_a_message_names_stays() -> None:
    named = FileGroup("", (FIRST,))
    assert without_later_files([insert(FIRST), insert(FIRST)], [(named,), (named,)]) == [(named,), (named,)]
