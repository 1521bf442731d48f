"""Messages of the engine's loggers in Dagster: in a run's event log, and in the log of a sensor's tick."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager

import dagster as dg

from hive_replication.logs import PACKAGE, described, stack_of

#: Most messages below a warning in a run: each is a row of Dagster's database.
MOST = 1_000
_GUARD = threading.Lock()


class _Forward(logging.Handler):
    """Forwards messages with their fields as text: Dagster keeps no others."""

    def __init__(self, to: logging.Logger, thread: int | None) -> None:
        super().__init__()
        self._to, self._thread, self._left = to, thread, MOST

    def filter(self, record: logging.LogRecord) -> bool:
        """Only messages of the handler's thread, if it has one."""
        return self._thread in (None, record.thread)

    def emit(self, record: logging.LogRecord) -> None:
        """See :meth:`logging.Handler.emit`; handlers are called by one thread at a time."""
        try:
            self._forward(record)
        except Exception:  # noqa: BLE001 (Dagster's storage is away for a moment: a line is lost, not a load)
            self.handleError(record)

    def _forward(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.WARNING:
            self._left -= 1
            if self._left == -1:
                self._to.info("only warnings from here on: the engine wrote more than %d others", MOST)
            if self._left < 0:
                return
        # Dagster would store the stack as it is.
        self._to.log(record.levelno, "%s", "\n".join([described(record), *stack_of(record)]))


@contextmanager
def in_run() -> Generator[None]:
    """Forwards messages of the whole process to the run's event log, under the present step."""
    with _forwarded(dg.get_dagster_logger(PACKAGE), None):
        yield


@contextmanager
def in_tick(log: logging.Logger) -> Generator[None]:
    """Forwards messages of this thread to the log of a tick: sensors of a code server tick in threads of one process."""
    with _forwarded(log, threading.get_ident()):
        yield


@contextmanager
def _forwarded(to: logging.Logger, thread: int | None) -> Generator[None]:
    logger, handler = logging.getLogger(PACKAGE), _Forward(to, thread)
    with _GUARD:
        logger.addHandler(handler)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        with _GUARD:
            logger.removeHandler(handler)
            if not any(isinstance(one, _Forward) for one in logger.handlers):
                logger.setLevel(logging.NOTSET)
