"""Ticks that wait for something to do."""

from __future__ import annotations

import threading
import time

import dagster as dg
import pytest

from hive_replication.errors import BadRequest
from sensors.notification_log.listening import listen
from sensors.notification_log.sensor import SensorSettings

FOUND = dg.SensorResult(run_requests=[dg.RunRequest()])
NOTHING = dg.SkipReason("nothing")


def test_a_tick_ends_with_what_it_finds() -> None:
    answers = iter([NOTHING, NOTHING, FOUND])
    assert listen(lambda: next(answers), 60.0) is FOUND


def test_a_tick_ends_when_its_time_is_over() -> None:
    looks: list[float] = []

    def look() -> dg.SkipReason:
        looks.append(time.monotonic())
        return NOTHING

    assert listen(look, 1.2) is NOTHING
    assert len(looks) == 3
    assert listen(look, 0.0) is NOTHING
    assert len(looks) == 4


def test_a_long_look_is_followed_by_a_long_pause() -> None:
    looks: list[float] = []

    def look() -> dg.SkipReason:
        looks.append(time.monotonic())
        time.sleep(0.3)
        return NOTHING

    listen(look, 2.2)
    assert len(looks) == 2
    assert looks[1] - looks[0] >= 1.8


def test_few_ticks_listen_at_a_time_and_a_failed_one_gives_its_place_back() -> None:
    def fail() -> dg.SkipReason:
        raise OSError("gone")

    for _ in range(3):
        with pytest.raises(OSError, match="gone"):
            listen(fail, 60.0)
    two = [threading.Thread(target=listen, args=(lambda: NOTHING, 2.0)) for _ in range(2)]
    for thread in two:
        thread.start()
    time.sleep(0.2)
    began = time.monotonic()
    assert listen(lambda: NOTHING, 60.0) is NOTHING
    assert time.monotonic() - began < 1
    for thread in two:
        thread.join()


def test_a_tick_stays_below_the_time_that_dagster_gives_it() -> None:
    with pytest.raises(BadRequest, match="listen_seconds is 60: at most 40"):
        SensorSettings(listen=60)
