"""The engine's messages on stderr: ``-v``, ``-vv`` and ``--log-format``."""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Literal

import typer

LogFormat = Literal["text", "json"]

Verbose = Annotated[
    int,
    typer.Option(
        "-v", "--verbose", count=True, metavar="", envvar="HIVE_REPL_VERBOSE",
        help="Write on stderr what is decided and what goes wrong on the way; -vv: each detail.", show_default=False,
    ),
]  # fmt: skip
Format = Annotated[
    LogFormat, typer.Option("--log-format", envvar="HIVE_REPL_LOG_FORMAT", help="How -v writes: text, or JSON for programs.")
]


class _StderrHandler(logging.Handler):
    """Writes to the stderr of the moment: progress bars put their own in its place, and then lines go above the bars."""

    def emit(self, record: logging.LogRecord) -> None:
        """See :meth:`logging.Handler.emit`."""
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except Exception:  # noqa: BLE001 - as all of logging's handlers do: a lost line stops no load
            self.handleError(record)


@contextmanager
def shown(verbosity: int, style: LogFormat) -> Generator[None]:
    """Shows the engine's messages while the context is open.

    Args:
        verbosity: 0 for none, 1 for INFO and above, more for DEBUG.
        style: how they are written.
    """
    if not verbosity:
        yield
        return
    from hive_replication.logs import PACKAGE, JsonFormatter, TextFormatter

    handler, logger = _StderrHandler(), logging.getLogger(PACKAGE)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO if verbosity == 1 else logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
