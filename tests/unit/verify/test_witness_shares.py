"""How one round of the witness deals out what it looks at."""

from __future__ import annotations

import random
from collections import Counter

from hive_replication.verify.witness.sides import Shares, chosen, dealt


def test_all_of_many_tables_get_checksums_in_the_course_of_rounds() -> None:
    """Whoever came first by name got those of each round."""
    chance, got = random.Random(1), Counter[str]()
    names = [f"t{n:03d}" for n in range(300)]
    for _ in range(50):
        shares, used = Shares(5000, 500, 100, len(names), chance), 0
        for name in names:
            _, directories, checksums = shares.take(name)
            asked = min(directories, 1) * min(checksums, 2)
            shares.used(1, min(directories, 1), asked)
            got[name] += bool(asked)
            used += asked
        assert 50 <= used <= 100
    assert set(got) == set(names)
    assert max(got.values()) < 35


def test_few_tables_get_all_of_them() -> None:
    shares = Shares(5000, 500, 100, 2, random.Random(1))
    assert shares.take("a")[2] == 50
    shares.used(0, 1, 2)
    assert shares.take("b")[2] == 98


def test_tables_without_a_directory_take_none_from_those_with_one() -> None:
    chance, got = random.Random(1), 0
    shares = Shares(5000, 100, 100, 5000, chance)
    for n in range(5000):
        _, directories, checksums = shares.take(str(n))
        assert directories or not checksums
        shares.used(0, directories, checksums)
        got += checksums
    assert got > 60


def test_all_partitions_of_a_table_get_checksums_in_the_course_of_rounds() -> None:
    """The names that come first, mostly the oldest partitions, got those of each round."""
    chance, got = random.Random(1), Counter[str]()
    names = [f"d={n}" for n in range(200)]
    for _ in range(50):
        share = dealt(names, 101, 2, chance)
        assert (sum(share.values()), max(share.values())) == (101, 2)
        got.update(name for name in names if share[name])
    assert set(got) == set(names)


def test_all_partitions_of_many_tables_are_listed_in_the_course_of_rounds() -> None:
    """Of a table that gets one directory in each round nothing but the newest partition was ever listed."""
    chance, names, got = random.Random(1), [f"d={n:03d}" for n in range(50)], list[str]()
    for _ in range(1000):
        describe, directories, _ = Shares(5000, 500, 100, 500, chance).take("t")
        assert directories == 1
        got += chosen(chosen(names, describe, chance), directories, chance)
    assert len(got) == 1000
    assert set(got) == set(names)
    assert 400 < got.count(names[-1]) < 600
