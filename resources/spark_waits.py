"""Warnings in a run's log while Spark waits for a cluster that has no room: Spark itself says so at a level that is not shown."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock, Thread, Timer
from time import sleep
from typing import TYPE_CHECKING

from hive_replication.logs import PACKAGE

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOG = logging.getLogger(f"{PACKAGE}.spark")
_LOOK = 5.0  # seconds between two looks
_LONG = 60.0  # seconds after which a wait is told
_watched: set[str] = set()
_guard = Lock()


@contextmanager
def told_when_slow(master: str) -> Generator[None]:
    """Warns when its body, the start of a session, takes long: YARN lets it wait for the room of its own process."""
    words = "Spark has not started for %.0f seconds: its cluster may be full, or not be reached (master %s)"
    timer = Timer(_LONG, _LOG.warning, (words, _LONG, master))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def watch(context: SparkContext) -> None:
    """Warns, once for each wait, when an application has had work for long and none of its tasks runs; until the context ends."""
    with _guard:
        if context.applicationId in _watched:
            return
        _watched.add(context.applicationId)
    Thread(target=_watch, args=(context, str(context.applicationId)), name="spark waits", daemon=True).start()


def _watch(context: SparkContext, application: str) -> None:
    waited = 0.0
    try:
        while True:
            sleep(_LOOK)
            before, waited = waited, waited + _LOOK if _waits(context) else 0.0
            if before < _LONG <= waited:
                words = (
                    "Spark application %s waits: it has work, and none of its tasks has run for %.0f seconds; the cluster may be "
                )
                words += "full, or have no room of the size that executors ask for (master %s)"
                _LOG.warning(words, application, waited, context.master)
    except Exception as error:  # noqa: BLE001 (the context has ended)
        _LOG.debug("Spark application %s is no longer watched: %s", application, error)
    finally:
        with _guard:
            _watched.discard(application)


def _waits(context: SparkContext) -> bool:
    tracker = context.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return bool(stages) and not any(stage and stage.numActiveTasks for stage in stages)
