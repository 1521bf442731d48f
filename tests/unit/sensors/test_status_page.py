"""The page of a policy in Dagster: what it shows, and that it is observed seldom."""

# No postponed annotations here: Dagster compares those of contexts as types.
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg
import pytest

from hive_replication.errors import Unreachable
from hive_replication.health import HeldStatus, held_by_lag
from hive_replication.lag import HALF_REVERSED, Lag
from hive_replication.policy import Policy
from repl_assets.catalog.keys import Names
from repl_assets.checks.no_alarms import OpenAlarm
from repl_assets.recording.metadata import asset_url
from sensors.alarms import status_page
from sensors.alarms.sensor import Observed, Watched, tick
from sensors.alarms.status_page import Seen, show
from tests.lags import HELD, LATE, POLICY, WELL

ALARM = OpenAlarm("sales", 990_000.0, "sales is 20 min behind", "look at its last runs", "/assets/default/sales__load")
NAMES = Names.of(POLICY)


def many(*databases: str) -> Policy:
    return POLICY.model_copy(update={"databases": {name: name for name in databases}})


@dataclass
class Page:
    """The page over time."""

    instance: dg.DagsterInstance
    policy: Policy = POLICY
    now: float = 1_000_000.0

    def show(self, *lags: Lag, alarms: tuple[OpenAlarm, ...] = (), after: float = 60.0, problem: str = "") -> None:
        self.now += after
        show(self.instance, self.policy, Seen(lags, problem), alarms, self.now)

    @property
    def observed(self) -> Sequence[dg.AssetObservation]:
        """All observations, the newest first."""
        records = self.instance.fetch_observations(Names.of(self.policy).status, limit=1000).records
        return [one.asset_observation for one in records if one.asset_observation]

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Of the newest."""
        return {name: value.value for name, value in self.observed[0].metadata.items()}

    @property
    def rows(self) -> list[list[str]]:
        """Cells of the databases' table."""
        lines = [line for line in str(self.metadata["databases"]).splitlines()[2:] if line.startswith("| ")]
        return [[cell.strip() for cell in line.removeprefix("| ").removesuffix(" |").split(" | ")] for line in lines]


@pytest.fixture
def page() -> Iterator[Page]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Page(instance)


def load(page: Page, window: str, database: str = "sales") -> str:
    """A run that has loaded a window; its id."""
    key = Names.of(page.policy).database(database, "load")

    @dg.op(out=dg.Out(dg.Nothing))
    def step(context: dg.OpExecutionContext) -> None:
        context.log_event(dg.AssetMaterialization(key, partition=window))

    @dg.job
    def job() -> None:
        step()

    return job.execute_in_process(instance=page.instance).run_id


def test_it_says_how_each_database_stands_and_what_to_do(page: Page) -> None:
    run_id = load(page, "90-100")
    page.show(LATE, alarms=(ALARM,))
    ((database, target, state, behind, waiting, last, window, advice),) = page.rows
    assert (database, target) == ("[sales](/assets/default/sales__load)", "sales")
    assert (state, behind, waiting, window) == ("behind", "20\u00a0min", "50", "90-100")
    assert re.fullmatch(rf"\[20\d\d-.* UTC\]\(/runs/{run_id}\)", last)
    assert advice.startswith("look at its last runs and the sensor notification")
    assert "sales is 20 min behind | look at its last runs | [look](/assets/default/sales__load) |" in page.metadata["alarms"]
    assert page.observed[0].description == "1 of 1 database to look at, 1 alarm"
    figures = {name: value for name, value in page.metadata.items() if not isinstance(value, str)}
    assert figures == {
        "databases up to date": 0,
        "databases to look at": 1,
        "databases stopped": 0,
        "tables held": 0,
        "open alarms": 1,
        "behind (s)": 1200.0,
    }


def test_held_tables_have_the_reason_and_what_to_do(page: Page) -> None:
    page.show(HELD)
    assert page.rows[0][2] == "tables held"
    first, second = str(page.metadata["held"]).splitlines()[2:]
    assert first.startswith("| sales.orders | no \\<space\\> | remove the cause")
    assert second.startswith("| sales.old | undone to 90 | ")


@pytest.mark.parametrize(
    ("lag", "state", "advice"),
    [
        (WELL, "up to date", ""),
        (replace(WELL, stopped="paused since 10:00 by jo@shop"), "paused since 10:00 by jo@shop", "hive-repl resume sales"),
        (replace(WELL, gap="events 5 to 9 are gone"), "gap", "the next window recovers by itself"),
        (replace(WELL, gap="sales: 'x' is no number", unreadable=True), "unknown", "set the parameter back to what it was"),
        (replace(LATE, complete=False), "behind", "look at its last runs"),
        (Lag("sales", "sales", None, 9, None, None), "no replica", "the sensor bootstraps it"),
        (Lag("sales", "sales", None, 9, None, None, in_source=False), "not at the source", "the source has no such database"),
    ],
)
def test_states_are_those_of_hive_repl_status(page: Page, lag: Lag, state: str, advice: str) -> None:
    page.show(lag)
    assert page.rows[0][2] == state
    assert page.rows[0][7].startswith(advice)
    assert page.rows[0][4].endswith(" so far") != lag.complete


def test_names_and_reasons_become_no_markup(page: Page) -> None:
    name = "a|b](x) <img>"
    page.policy = many(name)
    page.show(replace(LATE, database=name, target_database="![](http://evil)", gap="", held=(("t|u", "[no](http://evil)"),)))
    line = str(page.metadata["databases"]).splitlines()[2]
    key = Names.of(page.policy).database(name, "load")
    assert line.startswith(f"| [a\\|b\\](x) \\<img\\>]({asset_url(key)}) | \\!\\[\\](http://evil) |")
    assert "\\[no\\](http://evil)" in page.metadata["held"]


def test_what_needs_attention_comes_first_and_the_page_is_bounded(page: Page) -> None:
    names = [f"db{number:04d}" for number in range(1_000)]
    page.policy = many(*names)
    lags = [replace(WELL, database=name, target_database=name) for name in names]
    lags[700] = replace(LATE, database="db0700", target_database="db0700")
    lags[800] = replace(lags[800], stopped="paused since 10:00 by jo")
    lags[900] = replace(lags[900], held=tuple((f"t{number}", "no space " * 20) for number in range(1_000)))
    alarms = tuple(replace(ALARM, database="db0900", title=f"t{number} is held: " + "no space " * 20) for number in range(1_000))
    page.show(*lags, alarms=alarms)
    assert [row[0][1:7] for row in page.rows[:4]] == ["db0700", "db0900", "db0800", "db0000"]
    assert len(page.rows) == 100
    assert str(page.metadata["databases"]).endswith("… and 900 more")
    assert (page.metadata["tables held"], page.metadata["open alarms"]) == (1_000, 1_000)
    assert sum(len(str(value)) for value in page.metadata.values()) < 50_000


@pytest.mark.parametrize(
    ("lag", "to_look_at", "stopped"),
    [
        (Lag("sales", "sales", None, 9, None, None, in_source=False), 0, 0),
        (replace(LATE, stopped="paused since 10:00 by jo"), 0, 1),
        (replace(LATE, stopped="opened by a failover"), 0, 1),
        (replace(LATE, stopped=HALF_REVERSED), 1, 0),
    ],
)
def test_what_is_to_be_looked_at(page: Page, lag: Lag, to_look_at: int, stopped: int) -> None:
    """Neither what the source dropped nor what an operator stopped; but a failback that was stopped half-way."""
    page.show(lag)
    assert (page.metadata["databases to look at"], page.metadata["databases stopped"]) == (to_look_at, stopped)
    assert page.observed[0].description == f"{to_look_at} of 1 database to look at, 0 alarms"


def test_long_reasons_are_cut_and_only_the_held_tables_that_are_shown_are_looked_into(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[HeldStatus] = []

    def counted(lag: Lag) -> Iterator[HeldStatus]:
        for one in held_by_lag(lag):
            made.append(one)
            yield replace(one, advice=one.advice * 10)

    monkeypatch.setattr(status_page, "held_by_lag", counted)
    names = [f"analytics_department_{number:04d}" for number in range(200)]
    page.policy = many(*names)
    reason = "no space left on device hdfs://target:8020/warehouse/".ljust(950, "x")
    held = tuple((f"t{number}", reason) for number in range(100))
    alarms = tuple(replace(ALARM, database=name, title=reason, advice=reason) for name in names)
    page.show(*(replace(LATE, database=name, target_database=name, held=held) for name in names), alarms=alarms)
    rows = [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in page.metadata["held"].splitlines()[2:52]]
    assert {len(cell) for _, *cells in rows for cell in cells} == {300}
    assert (len(made), len(rows), page.metadata["tables held"]) == (50, 50, 20_000)
    assert page.metadata["held"].endswith("… and 19950 more")
    assert sum(len(str(value)) for value in page.metadata.values()) < 85_000


def test_it_is_observed_when_something_changes_and_seldom_else(page: Page) -> None:
    """A state at once, figures after five minutes, nothing after an hour."""

    def counted(lag: Lag, ticks: int, *alarms: OpenAlarm) -> int:
        before = len(page.observed)
        for number in range(ticks):
            waits = {"waiting": number, "seconds_behind": lag.seconds_behind and lag.seconds_behind + number}
            page.show(replace(lag, **waits) if lag.seconds_behind else lag, alarms=alarms)
        return len(page.observed) - before

    assert counted(WELL, 60) == 1
    assert counted(WELL, 120) == 2  # one an hour
    assert counted(LATE, 1) == 1
    assert counted(LATE, 60) == 12
    assert counted(LATE, 1, ALARM) == 1
    assert counted(WELL, 1) == 1
    load(page, "100-150")
    assert counted(WELL, 4) == 0
    assert counted(WELL, 55) == 1  # the load
    assert page.rows[0][6] == "100-150"


def test_while_a_server_does_not_answer_it_says_so_of_all_databases(page: Page) -> None:
    page.policy = many("sales", "hr")
    page.show(WELL, replace(WELL, database="hr", target_database="hr"))
    load(page, "90-100")
    page.show(problem="the source's metastore thrift://s does not answer")
    assert [(row[0].partition("]")[0], *row[2:5], *row[6:]) for row in page.rows] == [
        ("[hr", "unknown", "", "", "", "see the alarms"),
        ("[sales", "unknown", "", "", "90-100", "see the alarms"),
    ]
    assert page.metadata["not known"] == "the source's metastore thrift://s does not answer"
    figures = {name: value for name, value in page.metadata.items() if not isinstance(value, str)}
    assert figures == {"open alarms": 0}  # a plot would show that holds and pauses have ended
    page.show(WELL, replace(WELL, database="hr", target_database="hr"))
    assert [row[2] for row in page.rows] == ["up to date"] * 2
    assert "not known" not in page.metadata


def test_the_sensor_alarms_shows_what_it_has_read(page: Page) -> None:
    """It asks nobody twice: also the end of an outage shows with the tick that notices it."""
    found: list[Lag] = [LATE]
    asked: list[int] = []

    def observe(*_: Collection[str]) -> Observed:
        asked.append(1)
        if not found:
            raise Unreachable("nobody answers")
        return found, [], "", {}, {}

    def ticks() -> None:
        page.now += 60
        context = dg.build_sensor_context(page.instance, cursor=None)
        tick(context, page.policy, observe, page.now, Watched())

    ticks()
    assert (page.rows[0][2], page.metadata["open alarms"]) == ("behind", 1)
    assert "20 min behind" in page.metadata["alarms"]
    found.clear()
    ticks()
    assert (page.rows[0][2], page.metadata["not known"]) == ("unknown", "nobody answers")
    assert page.metadata["open alarms"] == 2  # the lag is not known to have ended
    found.append(WELL)
    ticks()
    assert (page.rows[0][2], page.metadata["open alarms"], len(asked)) == ("up to date", 0, 3)


def test_policies_have_pages_of_their_own(page: Page) -> None:
    other = Page(page.instance, POLICY.model_copy(update={"name": "fin"}))
    page.show(WELL)
    other.show(LATE)
    assert (page.rows[0][2], other.rows[0][2]) == ("up to date", "behind")
    assert other.rows[0][0] == "[sales](/assets/fin/sales__load)"
