"""What the metastore's own exceptions become: one sentence with the call, the server and its words."""

from __future__ import annotations

import re

from hive_metastore.ttypes import (
    AlreadyExistsException,
    ConfigValSecurityException,
    MetaException,
    NoSuchObjectException,
    NoSuchTxnException,
    TxnAbortedException,
    UnknownDBException,
    UnknownTableException,
)
from thrift.Thrift import TApplicationException, TException

from hive_replication.errors import MetastoreError

# The metastore's words for a lost connection to its own database. It rolled the call back, so a repeat may succeed.
_TRANSIENT = re.compile(
    r"communications link failure|connection (is |has been |was )?(already )?(closed|reset|refused)|closed connection"
    r"|connection is not available|timed? ?out waiting for connection|deadlock|lock wait timeout|could not serialize access"
    r"|lock could not be obtained within the time requested",
    re.IGNORECASE,
)
# What metastore 4 says of any fault of its database in a call about transactions or locks, all of which may be repeated.
_UNTOLD = re.compile(r"internal error processing \w*(txn|write_?id|lock|heartbeat)\w*$", re.IGNORECASE)


class NotFound(MetastoreError):
    """The object that a call is about does not exist, or no setting of such a name (``get_config_value`` of the metastore)."""


class AlreadyExists(MetastoreError):
    """The object to create exists."""


class TransactionGone(MetastoreError):
    """A transaction is not open: aborted, or not there."""


def from_thrift(what: str, uri: str, fault: TException) -> MetastoreError:
    """The error for an exception of the metastore.

    Args:
        what: the call and its object, e.g. ``create_table sales.orders``.
        uri: the metastore.
        fault: what it raised.
    """
    kind = MetastoreError
    if isinstance(fault, (NoSuchObjectException, UnknownDBException, UnknownTableException, ConfigValSecurityException)):
        kind = NotFound
    elif isinstance(fault, AlreadyExistsException):
        kind = AlreadyExists
    elif isinstance(fault, (NoSuchTxnException, TxnAbortedException)):
        kind = TransactionGone
    words = (getattr(fault, "message", None) or type(fault).__name__).split("\n\tat ", 1)[0]  # without Hadoop's stack trace
    return kind(f"{what} at {uri}: {words}")


def is_transient(fault: TException) -> bool:
    """Whether the metastore says that it lost its own database for a moment, or may mean that."""
    words = getattr(fault, "message", None) or ""
    if isinstance(fault, TApplicationException):
        return bool(_UNTOLD.search(words))
    return isinstance(fault, MetaException) and bool(_TRANSIENT.search(words))
