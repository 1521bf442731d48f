"""Files of transactional tables as the witness compares them: names and checksums, after compactions rows or directories."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

from hive_replication.acid.directories import AcidDirectory
from hive_replication.acid.rows import Rows
from hive_replication.events.files import FileRef
from hive_replication.metastore.types import Partition, Table
from hive_replication.storage import FileStatus, paths
from hive_replication.verify.acid import Seen
from hive_replication.verify.compare import same_rows
from hive_replication.verify.witness.files import EVERY, FileFacts, content_checksums, is_comparable, sampled

_MOST_BYTES = 16 << 20  # of a table or partition, on both sides, of which rows are added up where files differ: seconds of CPU
_MOST_FILES = 1000  # likewise: each is a call
_ADDING_UP = Lock()  # work of the processor, with files whole in memory: in one thread at a time
_ORIGINALS = AcidDirectory("", "", "base", 0, 0, -1, 0)  # stands for files of before the table was transactional


@dataclass(frozen=True)
class Shown:
    """What a reader sees of a transactional table or partition on one side.

    Args:
        seen: the table as it stands.
        thing: the table or its partition.
        files: those that the reader needs.
    """

    seen: Seen
    thing: Table | Partition
    files: tuple[FileRef, ...]

    @cached_property
    def by_name(self) -> dict[str, FileRef]:
        """The files by the names that a replica gives them."""
        return {file.relative: file for file in self.files}

    @property
    def statuses(self) -> dict[str, FileStatus]:
        """Sizes and times of its files by URI, listed once."""
        # No cached_property: before Python 3.12 one lock is held for all instances, and each listing would wait for the others.
        known: dict[str, FileStatus] | None = vars(self).get("_statuses")
        if known is None:
            known = {status.uri: status for status in self.seen.storage.files(self.thing.sd.location or "")}
            vars(self)["_statuses"] = known
        return known

    @property
    def rows(self) -> Callable[[], Rows] | None:
        """Adds up the rows that the reader sees; None where they cannot be read."""
        return self.seen.rows(self.thing, self.files)

    @cached_property
    def directories(self) -> dict[str, AcidDirectory]:
        """The directories with files by the names that a replica gives them, as they are called on this side."""
        return {_directory(file): _as_it_lies(file) for file in self.files}

    def compactions(self) -> Iterator[AcidDirectory]:
        """What compactions of this side have made, also where no row was left."""
        try:
            listed = self.seen.storage.ls(self.thing.sd.location or "")
        except FileNotFoundError:
            return
        for status in listed:
            found = AcidDirectory.parsed(paths.name(status.uri.rstrip("/"))) if status.is_dir else None
            if found is not None and found.visibility:
                yield found

    def status(self, name: str) -> FileStatus | None:
        """Size and time of a file; None where it is gone."""
        return self.statuses.get(self.by_name[name].uri)


def transactional_facts(source: Shown, target: Shown, most: int, first: Collection[str] = ()) -> FileFacts:
    """What is read of the files of a transactional table or partition on both sides; nothing of those that count as equal.

    Where files differ, as after a compaction of one side, the rows decide. Of more than can be read here only what no compaction
    explains is told.

    Args:
        source: the source's.
        target: the replica's.
        most: files of stores without checksums whose content may be read.
        first: names of files that are among these whatever happens.
    """
    left, right = ({file.relative: file.checksum[-16:] for file in side.files} for side in (source, target))
    compared = _without_checksums(source, target, (left, right), most, first)
    if left == right:
        return FileFacts({}, {}, compared)
    rows = source.rows, target.rows
    if None in rows or _is_readable(source, target):
        with _ADDING_UP:
            same = same_rows(*rows)
        return FileFacts({}, {}, compared) if same else FileFacts(left, right, compared)
    ours, theirs, more = _unexplained(source, target)
    return FileFacts(ours, theirs, compared + more, unread=ours == theirs)


def _is_readable(source: Shown, target: Shown) -> bool:
    sizes = [status.size for side in (source, target) for file in side.files if (status := side.statuses.get(file.uri))]
    return len(sizes) <= _MOST_FILES and sum(sizes) <= _MOST_BYTES


def _without_checksums(
    source: Shown, target: Shown, facts: tuple[dict[str, str], dict[str, str]], most: int, first: Collection[str]
) -> int:
    """Adds sizes to what is known of files without checksums, and for some of them the content. Answers of how many."""
    names = [name for name, checksum in facts[0].items() if not (checksum or facts[1].get(name, "absent"))]
    stores = source.seen.storage, target.seen.storage
    same: dict[str, tuple[FileStatus, FileStatus]] = {}
    for name in names:
        ours, theirs = source.status(name), target.status(name)
        if ours and theirs:
            facts[0][name], facts[1][name] = f"{ours.size} bytes", f"{theirs.size} bytes"
            copied = not target.directories[_directory(target.by_name[name])].visibility
            if copied and ours.size == theirs.size > 0 and is_comparable(*stores, ours, theirs):
                same[name] = ours, theirs
    compared = 0
    for name in sampled(same, most, first):
        checksums = content_checksums(*stores, *same[name])
        for side, checksum in zip(facts, checksums, strict=False):
            side[name] += f", checksum {checksum[-16:]}"
        compared += bool(checksums)
    return compared


def _unexplained(source: Shown, target: Shown) -> tuple[dict[str, str], dict[str, str], int]:
    """Files that differ although no compaction of either side can have made their directories; and how many were compared."""
    there, here = ([*side.directories.values(), *side.compactions()] for side in (target, source))
    told = {
        name
        for name in source.directories.keys() | target.directories.keys()
        if not _is_explained(source.directories.get(name), target.directories.get(name), here, there)
    }
    ours, theirs = (
        {name: _fact(side, name) for name, file in side.by_name.items() if _directory(file) in told} for side in (source, target)
    )
    compared = 0
    for name in sorted(ours.keys() & theirs.keys()):
        one, other = source.by_name[name].checksum, target.by_name[name].checksum
        left, right = source.status(name), target.status(name)
        checksums = (one, other) if one and one == other else ()
        if not checksums and left and right and left.size == right.size and compared < EVERY:
            checksums = content_checksums(source.seen.storage, target.seen.storage, left, right)
            compared += bool(checksums)
        if (checksums and checksums[0] == checksums[1]) or (not checksums and left and right and left.size == right.size):
            del ours[name], theirs[name]
        elif checksums:
            ours[name], theirs[name] = (f"checksum {one[-16:]}" for one in checksums)
    return ours, theirs, compared


def _fact(side: Shown, name: str) -> str:
    status = side.status(name)
    return f"{status.size} bytes" if status else "gone"


def _is_explained(
    ours: AcidDirectory | None, theirs: AcidDirectory | None, here: Iterable[AcidDirectory], there: Iterable[AcidDirectory]
) -> bool:
    """Whether a compaction may have made a directory of one side what it is, or have taken it from the other side.

    What a compaction at the source has made is copied as it is: Hive makes none of the same writes again.
    """
    if ours and theirs:
        return bool(theirs.visibility)
    one, others = (ours, there) if ours else (theirs, here)
    return one is not None and any((one.visibility or other.visibility) and _overlap(one, other) for other in others)


def _overlap(one: AcidDirectory, other: AcidDirectory) -> bool:
    """Whether two directories may hold rows of the same writes."""
    alike = one.kind == other.kind or "base" in (one.kind, other.kind)
    return alike and one.first <= other.last and other.first <= one.last


def _directory(file: FileRef) -> str:
    """Name of the directory that a file is in, "" for files of before the table was transactional."""
    top = file.subdir.partition("/")[0]
    return top if AcidDirectory.parsed(top) else ""


def _as_it_lies(file: FileRef) -> AcidDirectory:
    """The directory that a file is in, with its name on its side, which tells whether a compaction has made it."""
    return AcidDirectory.parsed(file.uri.split("/")[-len(file.relative.split("/"))]) or _ORIGINALS
