"""What a lane makes of the content of one table or partition, before any of it is carried out (pure)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from hive_replication.events.files import FileRef


@dataclass
class ContentInLane:
    """The content that earlier changes of a lane leave: the directory as it is before the lane tells no more of it.

    Attributes:
        replaced: whether nothing of before the lane is left.
        files: those that the changes bring, by their paths in the directory.
    """

    replaced: bool = False
    files: dict[str, FileRef] = field(default_factory=dict[str, FileRef])

    def follow(self, wanted: Mapping[str, FileRef], *, replaces: bool) -> None:
        """Takes in a change.

        Args:
            wanted: its files by their paths.
            replaces: whether nothing else is left.
        """
        self.replaced |= replaces
        self.files = {**({} if replaces else self.files), **wanted}

    def others(self, wanted: Mapping[str, FileRef]) -> dict[str, FileRef]:
        """The wanted files of whose names none was brought: only what was there before the lane can be one of them."""
        return {name: file for name, file in wanted.items() if name not in self.files}

    def brought(self, wanted: Mapping[str, FileRef]) -> set[str]:
        """Names of wanted files that are there by then, with the same content."""
        same = wanted.keys() & self.files.keys()
        return {name for name in same if wanted[name].checksum and wanted[name].checksum == self.files[name].checksum}

    def names(self, found: Collection[str]) -> set[str]:
        """Names of the files that there are by then.

        Args:
            found: names of those before the lane; none where they are replaced.
        """
        return self.files.keys() | set(found)
