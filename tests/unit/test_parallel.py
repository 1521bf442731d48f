"""Sets of threads: how many there are, in what order results come, and that waiting for each other never stops them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from hive_replication.parallel import Threads, per_core


def test_results_come_in_order_and_items_are_taken_as_they_are_needed() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(10_000):
            taken.append(number)
            yield number

    threads = Threads(4, "ordered")
    found = threads.map(lambda number: number * 2, items())
    assert [next(found) for _ in range(10)] == list(range(0, 20, 2))
    assert len(taken) < 100
    assert list(threads.map(str, [])) == []


def test_results_come_when_they_are_there_and_few_calls_wait() -> None:
    slow, taken = threading.Event(), list[int]()

    def items() -> Iterator[int]:
        for number in range(1_000):
            taken.append(number)
            yield number

    def call(number: int) -> int:
        if not number:
            slow.wait(10)
        return number

    found = Threads(2, "unordered").unordered(call, items())
    assert [next(found) for _ in range(5)] == [1, 2, 3, 4, 5]
    assert len(taken) < 12
    slow.set()
    assert sorted(found) == [0, *range(6, 1_000)]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("number", [1, 3])
def test_calls_that_wait_for_calls_of_the_same_set_come_to_their_end(number: int) -> None:
    threads = Threads(number, f"nested{number}")

    def call(depth: int) -> int:
        return 1 + sum(threads.map(call, [depth - 1] * 3)) if depth else 1

    assert sum(threads.map(call, [3] * 5)) == 5 * 40
    assert len([one for one in threading.enumerate() if one.name.startswith(f"nested{number}")]) <= number


def test_what_fails_is_raised_when_nothing_is_under_way_any_more() -> None:
    under_way, done = set[int](), list[int]()

    def call(number: int) -> int:
        under_way.add(number)
        time.sleep(0.01)
        under_way.remove(number)
        if number == 5:
            raise ValueError(number)
        done.append(number)
        return number

    threads = Threads(3, "failing")
    with pytest.raises(ValueError, match="5"):
        list(threads.map(call, range(1_000)))
    assert not under_way
    with pytest.raises(ValueError, match="5"):
        list(threads.unordered(call, range(1_000)))
    assert not under_way
    assert len(done) < 100


def test_threads_end_with_their_set() -> None:
    threads = Threads(3, "ending")
    assert list(threads.map(abs, range(-9, 0))) == list(range(9, 0, -1))
    del threads
    until = time.monotonic() + 10
    while any(one.name.startswith("ending") for one in threading.enumerate()):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_defaults_go_by_cores_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, tables in ((1, 4), (2, 8), (64, 32)):
        monkeypatch.setattr("os.sched_getaffinity", lambda _, cores=cores: set(range(cores)))
        assert per_core(4, most=32) == tables
