"""Directories below the dump root that this account may not read: they are passed over and told of, and no other dump's matter.

Several accounts may write below one dump root, and an administrator may dump by hand what nobody else reads.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager

from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.storage import Denied

_LOG = logging.getLogger(__name__)


@contextmanager
def passed_over_if_closed(what: str, directory: str) -> Generator[None]:
    """Ends what is done with a directory, and nothing else, where this account may not read it.

    Args:
        what: what the directory is called in the log, e.g. ``the dump``.
        directory: its URI.
    """
    try:
        yield
    except Denied as error:
        _LOG.warning("%s %s is passed over: %s", what, directory, error)


@contextmanager
def passed_over(what: str, directory: str) -> Generator[None]:
    """The same where it cannot be read for whatever reason, but that its storage does not answer."""
    try:
        yield
    except Unreachable:
        raise
    except ReplicationError as error:
        _LOG.warning("%s %s is passed over: %s", what, directory, error)


def chosen(directories: Iterable[str], wanted: Callable[[str], bool]) -> list[str]:
    """Those of some dump directories that are wanted, without any that cannot be read."""
    found: list[str] = []
    for directory in directories:
        with passed_over("the dump", directory):
            if wanted(directory):
                found.append(directory)
    return found
