"""The directories chosen for the data of one lane (by :mod:`~hive_replication.load.apply.placement`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from hive_replication.copy.preserve import Place
from hive_replication.copy.tasks import CopyResult, CopyTask
from hive_replication.load.apply.commit_places import DataKey
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.report import UnexpectedObject

#: How data becomes visible: nothing to do, move the staged files to the live directory, set the location to theirs, or to all.
Visibility = Literal["same", "append", "replace", "union"]


@dataclass
class LanePlacement:
    """The directories chosen for one lane.

    Args:
        lane: its plan.
        directories: directory of each content.
        live: the directory that a content is added to, where it is staged first or is there already.
        modes: how each ReplaceData or AppendData becomes visible, given the files present.
        tasks: files to copy, with the content that needs them.
        present: files that are in the live directory already, proven.
        changed: replicas to which files were added, or from which files were removed, other than by a load.
        taken: appends with the name of a file that has other content by then, as far as can be seen before anything is copied.
        absent: directories of new partitions that nobody has to look for any more: they do not exist.
    """

    lane: LanePlan
    directories: dict[DataKey, str] = field(default_factory=dict[DataKey, str])
    live: dict[DataKey, str] = field(default_factory=dict[DataKey, str])
    modes: dict[DataKey, Visibility] = field(default_factory=dict[DataKey, Visibility])
    tasks: list[tuple[DataKey, CopyTask]] = field(default_factory=list[tuple[DataKey, CopyTask]])
    present: list[CopyResult] = field(default_factory=list[CopyResult])
    changed: list[UnexpectedObject] = field(default_factory=list[UnexpectedObject])
    taken: list[DataKey] = field(default_factory=list[DataKey])
    absent: set[str] = field(default_factory=set[str])

    @cached_property
    def places(self) -> dict[DataKey, Place]:
        """Of one new file of each content, where access is preserved."""
        return {key: task.place for key, task in self.tasks if task.place}
