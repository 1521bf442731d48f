"""What happened to a source database with transactional tables, through Thrift: concurrent transactions over several windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from hive_replication.connect import Connection
from hive_replication.metastore.types import copy_of
from resources.embedded.hive import HiveDriver
from tests.crash.states import State, together
from tests.crash.story import Story
from tests.ledger import Ledger, make, partition_of
from tests.writers import Writer, create


def tell_of_transactions(connection: Connection, _: HiveDriver | None, database: str) -> Story:
    """Commits and aborts, several tables in one, open ones at the end of a window: a bootstrap and two windows."""
    ledger = make(connection, database)
    story = Story(ledger, ("repair", "recover"), "a")
    _before(ledger)
    story.look()
    story.end_chapter()
    first = story.chapters[0]
    story.chapters[0] = replace(first, states=[*unfinished(first.states[-1], ("a", "b", "p")), first.states[-1]])
    left = _interleaved(story, ledger)
    story.end_chapter()
    _names(story, ledger, left)
    story.end_chapter()
    return story


def _before(ledger: Ledger) -> None:
    metastore = ledger.connection.source.metastore
    metastore.add_partitions(ledger.database, "p", [partition_of(ledger, day) for day in "12"])
    for number in range(2):
        writer = ledger.begin()
        for table in "ab":
            writer.insert(table, f"0 {number}\n")
        writer.insert("p", f"0 {number}\n", "ds=1")
        writer.commit()
    aborted = ledger.begin()
    # Hive forgets an aborted write id once its cleaner has seen it, and would read the file then.
    ledger.connection.source.storage.delete(aborted.insert("a", "never\n"))
    aborted.abort()


def unfinished(state: State, tables: Sequence[str]) -> Iterator[State]:
    """What a bootstrap shows on its way: tables whose write ids are not set yet are empty."""
    for number in range(len(tables)):
        for done in combinations(tables, number):
            empty = {key: replace(seen, files=frozenset()) for key, seen in state.items() if key.partition("/")[0] not in done}
            zero = {f"{name} write ids": replace(state[f"{name} write ids"], shape="0") for name in tables if name not in done}
            made = {**state, **empty, **zero}
            yield {**made, **together(made)}


def _interleaved(story: Story, ledger: Ledger) -> Writer:
    first, second, left, aborted = (ledger.begin() for _ in range(4))

    def insert(writer: Writer, table: str, text: str, partition: str = "") -> None:
        path = writer.insert(table, f"1 {text}\n", partition)
        if writer is aborted:
            ledger.connection.source.storage.delete(path)
        story.look()

    insert(first, "a", "first")
    insert(second, "b", "second")
    insert(aborted, "b", "never")
    insert(second, "p", "second", "ds=2")
    insert(left, "b", "left")
    insert(first, "b", "first")
    insert(second, "a", "second")
    for end in (first.commit, aborted.abort, second.commit):
        end()
        story.look()
    return left


def _names(story: Story, ledger: Ledger, left: Writer) -> None:
    source, database = ledger.connection.source, ledger.database
    _overwritten(story, ledger)
    create(source.metastore, source.storage, database, "n")
    story.look()
    writer = ledger.begin()
    for table in "nab":
        writer.insert(table, "2 new\n")
        story.look()
    source.metastore.add_partitions(database, "p", [partition_of(ledger, "3")])
    story.look()
    writer.insert("p", "2 new\n", "ds=3")
    story.look()
    left.insert("a", "2 left\n")
    story.look()
    for end in (writer.commit, left.commit):
        end()
        story.look()
    source.metastore.drop_partitions(database, "p", ["ds=1"])
    story.look()
    _staged(story, ledger)
    _truncations(story, ledger)
    image = copy_of(source.metastore.table(database, "n"))
    assert image is not None
    image.tableName = "m"
    source.metastore.alter_table(database, "n", image)
    story.look()
    last = ledger.begin()
    last.insert("m", "2 last\n")
    story.look()
    last.commit()
    story.look()


def _staged(story: Story, ledger: Ledger) -> None:
    """A partition that was written in this window gets another name, and the next one its former name."""
    metastore = ledger.connection.source.metastore
    (part,) = metastore.partitions(ledger.database, "p", ["ds=3"])
    part.values = ["4"]
    metastore.rename_partition(ledger.database, "p", ["3"], part)
    story.look()
    metastore.add_partitions(ledger.database, "p", [partition_of(ledger, "3")])
    story.look()
    writer = ledger.begin()
    writer.insert("p", "2 next\n", "ds=3")
    story.look()
    writer.commit()
    story.look()


def _overwritten(story: Story, ledger: Ledger) -> None:
    """INSERT OVERWRITE of a partition, the first write to its table: readers of the source wait for its lock."""
    writer = ledger.begin()
    writer.overwrite("p", *(f"2 over {number}\n" for number in range(8)), partition="ds=2")
    writer.commit()
    story.look()


def _truncations(story: Story, ledger: Ledger) -> None:
    """TRUNCATE of a table and of a partition: the events of their change come before the commit that shows it."""
    for table, partitions in (("b", ()), ("p", ("ds=2",))):
        writer = ledger.begin()
        writer.truncate(table, *partitions)
        story.look()
        writer.commit()
        story.look()
