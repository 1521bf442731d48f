"""What Dagster checks of replicas, how the witness compares both sides, and when drift is looked for: parts of the policy."""

from __future__ import annotations

import logging
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, ValidationInfo

from hive_replication.policy.cron import valid_cron
from hive_replication.policy.warehouse import Settings
from hive_replication.policy.wrong_setting import WrongSetting

_LOG = logging.getLogger(__name__)


class Witness(Settings):
    """How the check ``same_objects`` compares all objects of both sides, from their metastores and storages alone."""

    schedule: Annotated[str, AfterValidator(valid_cron)] | None = Field(
        default="30 * * * *",
        description="When Dagster compares, apart from after each window: a cron expression in time_zone; only then where null",
    )
    partitions: int = Field(
        default=5_000, ge=0, description="Most partitions of a database that one round describes; it compares the names of all"
    )
    directories: int = Field(default=500, ge=0, description="Most directories of a database whose files one round lists")
    checksums: int = Field(default=100, ge=0, description="Most files of a database whose checksums one round compares")


#: What Dagster checks of replicas.
CheckName = Literal[
    "files_proven",
    "nothing_held",
    "same_objects",
    "no_strays",
    "not_held",
    "schema_equal",
    "replica_equal",
    "row_counts",
    "row_diff",
]


class Checks(Settings):
    """What Dagster checks of replicas, and what follows from a failure."""

    run: tuple[CheckName, ...] = Field(default=get_args(CheckName), description="The checks that there are")
    blocking: tuple[CheckName, ...] = Field(
        default=(), description="Checks whose failure keeps assets that depend on the checked one from running"
    )
    repair: bool = Field(default=False, description="Repair what a failed check of a table names, once until it passes again")
    schedule: Annotated[str, AfterValidator(valid_cron)] | None = Field(
        default=None, description="When Dagster answers them for all tables: a cron expression in time_zone, e.g. 0 4 * * Sun"
    )
    sample: float = Field(default=1.0, gt=0, le=1, description="Share of the rows that row_diff compares")

    def without_effect(self) -> list[WrongSetting]:
        """What is wrong with settings that do nothing."""
        absent = ", ".join(name for name in self.blocking if name not in self.run)
        said = f"checks.blocking names {absent}, which run does not: a check that is not there blocks nothing"
        return [WrongSetting(("checks", "blocking"), said)] if absent else []


def _at_most(most: float) -> AfterValidator:
    """Takes a larger number as ``most``: earlier versions took any, and a policy that is refused replicates nothing."""

    def limited(value: float, info: ValidationInfo) -> float:
        if value > most:
            _LOG.warning("drift.%s: %s is taken as %s, since Dagster ends a tick after 60 s", info.field_name, value, most)
        return min(value, most)

    return AfterValidator(limited)


class Drift(Settings):
    """When to look for writes that leave no event (Dagster)."""

    every: int = Field(default=3600, gt=0, description="Seconds between the beginnings of two rounds over all tables")
    # Dagster ends a tick after 60 s and drops what it found. Its last table may begin when the budget ends, and waits for the
    # second look all the same: with longer ones drift would be found, and never repaired.
    settle: Annotated[float, _at_most(15)] = Field(
        default=10.0,
        ge=0,
        json_schema_extra={"maximum": 15},
        description="Seconds between the two looks at what seems to have changed",
    )
    budget: Annotated[float, _at_most(40)] = Field(
        default=30.0, gt=0, json_schema_extra={"maximum": 40}, description="Seconds for which one tick of the sensor looks"
    )
    snapshots: bool = Field(
        default=False,
        description="Make HDFS snapshots at the source, where it allows them, and list only the directories that have changed "
        "since the last one",
    )
    list_all_every: int = Field(
        default=86_400, ge=0, description="Seconds after which a directory is listed though snapshots tell of no change in it"
    )
