"""The witness (pure): which objects of a source and its replica differ, and which of the differences are wrong.

It shares nothing with plans and loads: no gate, no state ids of objects, no reports. Of the replication's own state it takes one
number, the event id that the replica claims to have applied, as the claim that it tests: what differs although no later event
concerns it is wrong. What a later event concerns may only wait. It is remembered, and if it still differs when the replica claims
to have applied all that the source held when the difference was seen, it is wrong too. So a table that is written all the time
is never called wrong for its writes, and hides nothing for longer than until the next round.

Keep out of here: calls of a metastore or storage (``look``).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from hive_replication.verify.columns_and_parameters import shape_differences

#: Differences of one kind of one object that are told one by one: files of a partition, for example.
MOST_OF_OBJECT = 200

#: By table the partitions to look at, "" for the table itself, and files of each that are looked at before others.
Objects = Mapping[str, Mapping[str, Collection[str]]]


@dataclass(frozen=True, slots=True)
class Held:
    """A table or partition as one side holds it.

    Args:
        created: when the metastore created it, seconds since the epoch: tells it from another one of its name.
        shape: its description by aspects (see ``verify.columns_and_parameters``); empty where it was not read.
        transactional: whether it is, or belongs to, a transactional table.
        files: by relative name what was read of each data file; None where they were not listed.
    """

    created: int
    shape: Mapping[str, str] = field(default_factory=dict[str, str])
    transactional: bool = False
    files: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs in one object.

    Args:
        table: its name, "" for the database itself.
        partition: its name, "" for the table itself.
        text: one sentence.
        key: the same for the same difference of the same incarnations, in whatever round it is seen.
        transactional: whether the object belongs to a transactional table.
        file: relative name of the data file that differs, "" where it is something else.
    """

    table: str
    partition: str
    text: str
    key: str
    transactional: bool = False
    file: str = ""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A difference as one round tells it to the next one, which looks at its object again.

    Args:
        difference: what differs.
        evid: the source's newest event when it was first seen.
        wrong: whether it was wrong; else it may only have waited for events.
    """

    difference: Difference
    evid: int
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class Pending:
    """Which tables have events that the replica does not claim to have applied.

    Args:
        tables: their names.
        everything: whether any table may have some: of a database as a whole, unreadable, or too many to be read.
        transactions: whether a transaction has ended that may have written to any transactional table.
    """

    tables: frozenset[str] = frozenset()
    everything: bool = False
    transactions: bool = False

    def concern(self, difference: Difference) -> bool:
        """Whether an event that waits may explain a difference."""
        return self.everything or difference.table in self.tables or (self.transactions and difference.transactional)


@dataclass(frozen=True, slots=True)
class Counts:
    """How much was compared, at the source and at the target.

    Args:
        tables, partitions: of which the names were compared.
        described: partitions whose descriptions were compared.
        directories: whose files were listed.
        files: in them.
        checksums: of files, or their content.
        unread: transactional tables and partitions of which a side was compacted, and whose rows are too many to be compared.
    """

    tables: tuple[int, int] = (0, 0)
    partitions: tuple[int, int] = (0, 0)
    described: int = 0
    directories: int = 0
    files: tuple[int, int] = (0, 0)
    checksums: int = 0
    unread: int = 0

    def __add__(self, other: Counts) -> Counts:
        """The sum."""
        return Counts(
            _sum(self.tables, other.tables),
            _sum(self.partitions, other.partitions),
            self.described + other.described,
            self.directories + other.directories,
            _sum(self.files, other.files),
            self.checksums + other.checksums,
            self.unread + other.unread,
        )


@dataclass(frozen=True, slots=True)
class Round:
    """What one round of the witness found.

    Args:
        applied: the event id that the replica claims to have applied; None where no bootstrap is finished.
        current: the source's newest event at the end of the round.
        counts: how much was compared.
        digests: of the names of all tables and partitions, at the source and at the target.
        differences: what differs.
    """

    applied: int | None
    current: int = 0
    counts: Counts = Counts()
    digests: tuple[str, str] = ("", "")
    differences: tuple[Remembered, ...] = ()

    @property
    def wrong(self) -> list[Difference]:
        """Differences that no waiting event explains."""
        return [one.difference for one in self.differences if one.wrong]

    @property
    def waiting(self) -> list[Difference]:
        """Differences that may only wait for events."""
        return [one.difference for one in self.differences if not one.wrong]


def difference_of(
    table: str, partition: str, text: str, created: tuple[int | None, int | None], *, facts: str = "", transactional: bool = False
) -> Difference:
    """A difference of an object, with its key.

    Args:
        table: its name, a function's as ``f()``, "" for the database itself.
        partition: its name, "" for the table itself.
        text: one sentence.
        created: when both sides' metastores created it.
        facts: what tells it from another difference of the same text.
        transactional: whether the object belongs to a transactional table.
    """
    ours, theirs = ("" if one is None else one for one in created)
    said = f"{table}\0{partition}\0{text}\0{facts}\0{ours}/{theirs}"
    return Difference(table, partition, text, hashlib.sha256(said.encode()).hexdigest()[:16], transactional)


def object_differences(
    table: str, partition: str, source: Held | None, target: Held | None, source_roots: Sequence[str]
) -> Iterator[Difference]:
    """What differs in an object of which at least one side has something."""
    created = source.created if source else None, target.created if target else None
    transactional = any(side is not None and side.transactional for side in (source, target))

    def difference(text: str, facts: str = "") -> Difference:
        return difference_of(table, partition, text, created, facts=facts, transactional=transactional)

    if source is None or target is None:
        there, missing = ("source", "target") if target is None else ("target", "source")
        yield difference(f"is on the {there}, not on the {missing}")
        return
    if source.shape and target.shape:
        yield from map(difference, shape_differences(source.shape, target.shape, source_roots))
    if source.files is not None and target.files is not None:
        for name, text, facts in islice(_files(source.files, target.files), MOST_OF_OBJECT):
            yield replace(difference(text, facts), file=name)


def _files(source: Mapping[str, str], target: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Files that differ, each with a sentence and what was read of the file; or, without one, why they could not be read."""
    if "" in source:
        yield "", f"its files cannot be compared: {source['']}", ""
        return
    for name in sorted(source.keys() | target.keys()):
        ours, theirs = source.get(name), target.get(name)
        if theirs is None:
            yield name, f"file {name} is on the source only", str(ours)
        elif ours is None:
            yield name, f"file {name} is on the target only", theirs
        elif ours != theirs:
            yield name, f"file {name} is {theirs} on the target, {ours} on the source", ""


def judged(
    found: Iterable[Difference], pending: Pending, earlier: Iterable[Remembered], applied: int, current: int
) -> Iterator[Remembered]:
    """Tells differences that are wrong from those that may only wait.

    Args:
        found: in this round.
        pending: events of the source after ``applied``.
        earlier: what the last round found.
        applied: what the replica claimed to have applied when the round began.
        current: the source's newest event when it ended.
    """
    since = {one.difference.key: one.evid for one in earlier}
    for one in found:
        evid = since.get(one.key, current)
        yield Remembered(one, evid, not pending.concern(one) or (one.key in since and evid <= applied))


def confirmed(before: Round, after: Round, doubtful: Collection[str]) -> Round:
    """What a further look leaves of what seemed wrong: what is new, or other than before, may wait until the next round.

    Args:
        before: what was found so far.
        after: what the further look found of the objects that seemed wrong.
        doubtful: keys of what seemed wrong and was to be looked at again.
    """
    seen = {one.difference.key for one in after.differences}
    kept = [one for one in before.differences if one.difference.key not in {*doubtful, *seen}]
    known = {one.difference.key for one in before.differences}
    again = [one if one.difference.key in known else replace(one, wrong=False) for one in after.differences]
    return replace(before, applied=after.applied, differences=(*kept, *again))


def objects_of(differences: Iterable[Difference]) -> Objects:
    """The objects in which something differs, and the files that do."""
    found: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for one in differences:
        found[one.table][one.partition].update({one.file} - {""})
    return found


def names_digest(names: Iterable[str]) -> str:
    """16 hex digits of names; order does not matter."""
    return joined_digest(hashlib.sha256(name.encode()).hexdigest()[:16] for name in names)


def joined_digest(digests: Iterable[str]) -> str:
    """The digest of several sets of names that have none in common, from theirs."""
    total = 0
    for one in digests:
        total ^= int(one, 16)
    return f"{total:016x}"


def _sum(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    return left[0] + right[0], left[1] + right[1]
