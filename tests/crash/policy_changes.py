"""What happened to a source database whose policy changes, and whose tables are renamed into it and out of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hive_replication.connect import Connection
from hive_replication.dump.command import repl_dump
from hive_replication.dump.format.record_types import DumpResult, MadeWith
from hive_replication.dump.source import Source
from hive_replication.statements import ReplDump
from resources.embedded.hive import HiveDriver
from tests.crash.states import Seen, State
from tests.crash.story import Chapter, Story, create_database
from tests.warehouse import Warehouse


@dataclass
class PolicyStory(Story):
    """A story of which a replica has what the policy includes, and what it was told to keep."""

    _settings: Mapping[str, object] = field(default_factory=dict[str, object])
    _scope: str = ""
    _kept: State = field(default_factory=dict[str, Seen])

    def look(self) -> None:
        """Records what a replica would have of the present state."""
        super().look()
        included = {key: seen for key, seen in self._states[-1].items() if self._includes(key)}
        self._states[-1] = {**self._kept, **included}

    def change(self, **settings: object) -> None:
        """Gives the replica another policy from this chapter on; what comes back is made anew, and is not there in between."""
        self._settings = {"tables": (), "exclude": (), **settings}
        if not self._states:
            return
        shown, keeps = self._states[-1], settings.get("excluded") != "drop"
        stay = {key: seen for key, seen in shown.items() if self._includes(key) and key not in self._kept}
        self._kept = {key: seen for key, seen in shown.items() if keeps and not self._includes(key)}
        self._states.append({**stay, **self._kept})
        self.look()

    def end_chapter(self) -> None:
        """Dumps for a replica that was made with the policy of the last chapter."""
        super().end_chapter()
        self._scope = self._text

    def _dump(self, after: int | None) -> DumpResult:
        connection = self.warehouse.with_policy(**self._settings).connection
        made = MadeWith(self._scope) if self._scope not in ("", self._text) else None
        return repl_dump(connection.source, ReplDump(self.database, None, after), connection.store, made_with=made)

    def _chapter(self, dump: DumpResult, states: list[State]) -> Chapter:
        return Chapter(dump, states, self._settings, self._scope)

    def _includes(self, key: str) -> bool:
        return not key or self._source.policy.includes(key.partition("/")[0])

    @property
    def _source(self) -> Source:
        return self.warehouse.with_policy(**self._settings).connection.source

    @property
    def _text(self) -> str:
        source = self._source
        return source.policy.scope("", acid=source.acid).text


def tell_of_policies(connection: Connection, hive: HiveDriver, database: str) -> Story:
    """Tables that are included, excluded and renamed, with and without other events: a bootstrap and five windows."""
    create_database(hive, database)
    story = PolicyStory(Warehouse(connection, hive, database))
    chapters: tuple[tuple[dict[str, object], Callable[[Story], None]], ...] = (
        ({"exclude": ("x_*",)}, _before),
        ({"exclude": ("x_*",)}, _renames),
        ({"exclude": ("facts", "x_late")}, _others),
        ({"tables": ("FACTS", "d*", "guest", "x_*"), "excluded": "drop"}, _nothing),
        ({"exclude": ("facts",)}, _swap),
        ({"tables": ("*",)}, _back),
    )
    for settings, happens in chapters:
        story.change(**settings)
        happens(story)
        story.end_chapter()
    return story


def _before(story: Story) -> None:
    for table in ("facts", "days", "x_guest", "x_stray", "x_late"):
        story.warehouse.sql(f"CREATE TABLE {table} (a STRING) PARTITIONED BY (p STRING)")
        for part in "12":
            story.warehouse.load_data(f"{table} PARTITION (p='{part}')", f"0 {table} {part}\n")
    story.warehouse.sql("CREATE TABLE plain (a STRING)", "CREATE TABLE x_plain (a STRING)")
    for table in ("plain", "x_plain"):
        story.warehouse.load_data(table, f"0 {table}\n")
    story.look()


def _renames(story: Story) -> None:
    """Into the policy and on, out of it and back under another name; with what happens to them there."""
    story.put("x_guest PARTITION (p='1')", "1 unseen\n")
    story.sql("ALTER TABLE x_guest RENAME TO visitor")
    story.put("visitor PARTITION (p='3')", "1 seen\n")
    story.sql("ALTER TABLE visitor RENAME TO guest", "ALTER TABLE plain RENAME TO x_gone", "ALTER TABLE x_plain RENAME TO plain")
    story.put("plain", "1 of the other\n")
    story.put("x_gone", "1 unseen\n")
    story.sql("ALTER TABLE x_gone RENAME TO back")
    story.put("days PARTITION (p='1')", "1 more\n")


def _others(story: Story) -> None:
    """Tables come by the policy, and one leaves it; some have events."""
    story.put("x_stray PARTITION (p='2')", "2 more\n", overwrite=True)
    story.put("facts PARTITION (p='1')", "2 unseen\n")
    story.sql("ALTER TABLE facts DROP PARTITION (p='2')", "ALTER TABLE guest RENAME TO x_guest", "CREATE TABLE x_made (a STRING)")
    story.put("x_made", "2 made\n")


def _nothing(_: Story) -> None:
    """The change alone is work: facts and x_late come, plain and back are dropped."""


def _swap(story: Story) -> None:
    """A table of the policy and one that has left it change names; another is dropped and made again while it comes."""
    story.sql("ALTER TABLE x_stray RENAME TO y", "ALTER TABLE facts RENAME TO x_stray", "ALTER TABLE y RENAME TO facts")
    story.put("x_stray PARTITION (p='1')", "4 of facts\n")
    story.sql("DROP TABLE back", "CREATE TABLE back (b INT)")
    story.put("back", "4\n")


def _back(story: Story) -> None:
    """Everything; a name that left is another table's by now."""
    story.put("facts PARTITION (p='5')", "5 of stray\n")
    story.sql("ALTER TABLE days RENAME TO d", "ALTER TABLE facts RENAME TO days")
