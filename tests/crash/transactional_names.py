"""What happened to a source database whose transactional tables are dropped, swapped, made again and renamed over, by Thrift."""

from __future__ import annotations

from dataclasses import replace

from hive_replication.connect import Connection
from resources.embedded.hive import HiveDriver
from tests.crash.story import Story
from tests.crash.transactions import unfinished
from tests.ledger import Ledger, make
from tests.writers import create

_TABLES = ("k", "l", "n")


def tell_of_transactional_names(connection: Connection, _: HiveDriver | None, database: str) -> Story:
    """A bootstrap and three windows: names used again, a swap, and a rename over a dropped table."""
    ledger = make(connection, database)
    story = Story(ledger, ("repair", "recover"), "k")
    for table in _TABLES:  # those of the ledger stand for tables that are written to together
        create(connection.source.metastore, connection.source.storage, database, table)
        write(story, ledger, table, "0 one", "0 two")
    story.end_chapter()
    first = story.chapters[0]
    story.chapters[0] = replace(first, states=[*unfinished(first.states[-1], _TABLES), first.states[-1]])
    for chapter in (_again, _swapped, _over):
        chapter(story, ledger)
        story.end_chapter()
    return story


def write(story: Story, ledger: Ledger, table: str, *rows: str) -> None:
    """One transaction a row; each step is recorded."""
    for row in rows:
        writer = ledger.begin()
        writer.insert(table, f"{row}\n")
        story.look()
        writer.commit()
        story.look()


def _drop(story: Story, ledger: Ledger, table: str) -> None:
    ledger.connection.source.metastore.drop_table(ledger.database, table, delete_data=True)
    story.look()


def rename(story: Story, ledger: Ledger, old: str, new: str) -> None:
    """Renames a table, and records the state after it."""
    ledger.rename(old, new)
    story.look()


def _again(story: Story, ledger: Ledger) -> None:
    """A table is dropped and made again; its write ids begin anew."""
    write(story, ledger, "n", "1 more")
    _drop(story, ledger, "n")
    source = ledger.connection.source
    create(source.metastore, source.storage, ledger.database, "n")
    story.look()
    write(story, ledger, "n", "1 again")


def _swapped(story: Story, ledger: Ledger) -> None:
    """Two tables change their names, and are written to before and after."""
    write(story, ledger, "n", "2 before")
    for old, new in (("n", "m"), ("l", "n"), ("m", "l")):
        rename(story, ledger, old, new)
    write(story, ledger, "n", "2 of l")
    write(story, ledger, "l", "2 of n")


def _over(story: Story, ledger: Ledger) -> None:
    """A table takes the name of one that was dropped; the name that it leaves is used again."""
    write(story, ledger, "k", "3 gone")
    _drop(story, ledger, "k")
    rename(story, ledger, "n", "k")
    source = ledger.connection.source
    create(source.metastore, source.storage, ledger.database, "n")
    story.look()
    write(story, ledger, "k", "3 of n")
    write(story, ledger, "n", "3 new")
