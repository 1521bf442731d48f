"""Logging of the engine: fields that every message may have, and how messages are written as text and as JSON.

Each module logs by its own name, below ``hive_replication``. Nothing is written unless a program asks for it: the command line
with ``-v``, Dagster in its runs and sensors.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenacity import RetryCallState

_LOG = logging.getLogger(__name__)

#: The logger above all those of the engine.
PACKAGE = "hive_replication"
_TOKENS = "delegation|token|x-amz-signature|x-amz-security-token"
_SECRET = re.compile(rf"(://)[^/@\s]*:[^/@\s]*(?=@)|([?&](?:{_TOKENS})=)[^&\s]+", re.IGNORECASE)
_MOST = 500  # characters of an error: what a server answers may be long
_TRACEBACK = "Traceback (most recent call last):\n"
_CALLED = re.compile(r"An error occurred while calling .*\n(: )?")


About = dict[str, str | int | None]


def about(database: str | None = None, table: str | None = None, evid: int | None = None) -> About:
    """What a message is about, for the ``extra`` of a call to a logger.

    Args:
        database: a database; which side's, the message says.
        table: its table, or another object in it.
        evid: an event id of the source.
    """
    return {"database": database, "table": table, "evid": evid}


def fields(record: logging.LogRecord) -> dict[str, object]:
    """What a message is about, as far as it says so; see :func:`about`."""
    found = {name: getattr(record, name, None) for name in ("database", "table", "evid")}
    return {name: value for name, value in found.items() if value is not None}


def described(record: logging.LogRecord) -> str:
    """The message on one line, with what it is about: ``... [database=sales table=orders evid=170]``."""
    what = " ".join(f"{name}={value}" for name, value in fields(record).items())
    message = without_secrets(record.getMessage())
    return printable(f"{message} [{what}]" if what else message)


def printable(text: str) -> str:
    """The text with control characters spelled as in Python: names come from the source, and must not steer a terminal."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def printable_lines(text: str) -> str:
    """The text as :func:`printable` spells it, but with its lines as they are."""
    return "\n".join(map(printable, text.split("\n")))


def without_secrets(text: str) -> str:
    """The text without tokens in the query of a URL (WebHDFS redirects with one) and passwords before its host."""
    return _SECRET.sub(r"\1\2***", text)


def reason(error: BaseException) -> str:
    """The first line of an error; Hadoop's go on with a stack trace. Without words, its cause's or its type.

    Those of Spark begin with the call that failed, or with the traceback of a worker: the line is what comes after.
    """
    text = str(error) or str(error.__cause__ or "") or type(error).__name__
    if (called := _CALLED.match(text)) and called.end() < len(text):
        text = text[called.end() :]
    if _TRACEBACK in text:
        ends = (line for line in text.rpartition(_TRACEBACK)[2].split("\n") if line and not line[0].isspace())
        text = next(ends, text)
    return text.split("\n", 1)[0].split("\\n", 1)[0][:_MOST]


def unexpected(error: BaseException, extra: About | None = None) -> str:
    """What is said of an error that nobody foresaw, where it concerns one thing and others go on; its stack goes to the log.

    Args:
        error: the error.
        extra: see :func:`about`.
    """
    _LOG.error("an unexpected error", exc_info=error, extra=extra)
    return f"an unexpected error, which is to be reported with its stack in the log: {type(error).__name__}: {reason(error)}"


def repeats(log: logging.Logger, what: str, *args: object, extra: About | None = None) -> Callable[[RetryCallState], None]:
    """For tenacity's ``before_sleep``: a warning for each attempt that failed and is made again.

    Args:
        log: the module's logger.
        what: the operation that is repeated, e.g. ``%s at %s``.
        args: arguments of ``what``.
        extra: see :func:`about`.
    """

    def say(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        log.warning(
            f"{what} failed in attempt %d and is tried again in %.1f s: %s",  # noqa: G004 - of constants
            *args,
            state.attempt_number,
            state.upcoming_sleep,
            reason(error) if error else "",
            extra=extra,
        )

    return say


def stack_of(record: logging.LogRecord) -> list[str]:
    """The stack of the error that a message tells of, line by line, without secrets; empty where it tells of none."""
    return [*map(printable, _stack(record).splitlines())]


class TextFormatter(logging.Formatter):
    """One line: time (UTC), level, logger, message, what it is about; the stack of an error on lines below."""

    def format(self, record: logging.LogRecord) -> str:
        """See :meth:`logging.Formatter.format`."""
        lines = [f"{_time(record)} {record.levelname} {record.name}: {described(record)}"]
        return "\n".join([*lines, *stack_of(record)])


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and where they are known database, table, evid, exception."""

    def format(self, record: logging.LogRecord) -> str:
        """See :meth:`logging.Formatter.format`."""
        values = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": without_secrets(record.getMessage()),
        }
        stack = _stack(record)
        return json.dumps(values | fields(record) | ({"exception": stack} if stack else {}), default=str)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _stack(record: logging.LogRecord) -> str:
    return without_secrets(logging.Formatter().formatException(record.exc_info)) if record.exc_info else ""
