"""The mark of a source database: ``repl.source.for``, the only thing that a dump writes to a source (design).

A metastore has no call that sets one parameter: the whole description is read and written again. Who alters the database in
between loses what he set, or, where both write at the same moment, keeps it while the later event tells of one of them alone.
So the log is asked whether anybody did, and then what he wrote is written again, with the mark.
"""

from __future__ import annotations

import logging
from functools import reduce

from hive_replication.dump.source import SOURCE_FOR, Source
from hive_replication.errors import Refused, ReplicationError, Unreachable
from hive_replication.events.decoders_by_event_type import UnreadableMessage, decode
from hive_replication.events.described_objects import elsewhere
from hive_replication.events.event_records import AlterDatabase
from hive_replication.events.events_of_policy import notifications
from hive_replication.logs import about
from hive_replication.metastore.types import Database, copy_of

_LOG = logging.getLogger(__name__)
_TIMES = 5  # each only if somebody altered the database during the one before
_FIELDS = ("description", "ownerName", "ownerType", "locationUri", "managedLocationUri")


def mark(source: Source, database: Database) -> Database:
    """Sets ``repl.source.for`` on a database if it is not set; returns the database as it is then.

    From then on Hive keeps deleted files of the database's managed tables in cmroot. A policy that replicates no data needs
    none of this, and writes nothing to the source.

    Raises:
        BadRequest: it was dropped meanwhile.
        Refused: it cannot be set and the policy does not allow to go on without cmroot.
    """
    if source.policy.metadata_only or _is_marked(database):
        return database
    name, begin = database.name, source.metastore.current_event_id()
    marked = _marked(source, source.database(name))
    for _ in range(_TIMES):
        if not _write(source, marked):
            return database
        end = source.metastore.current_event_id()
        others, told = _altered_by_others(source, marked, begin, end)
        if not others:
            break
        now = source.database(name)
        begin, marked = end, _marked(source, reduce(_changed, others, now))
        if told and _told(now) == _told(marked) and _is_marked(now):
            break
    return marked


def _write(source: Source, marked: Database) -> bool:
    """Writes a database's description; whether it is written."""
    name = marked.name
    try:
        source.metastore.alter_database(name, marked)
    except Unreachable:
        raise
    except ReplicationError as error:  # whatever the metastore answers: rights, read-only hooks, listeners
        if source.policy.without_cmroot:
            _LOG.warning("replicated without deleted files: %s", error, extra=about(name))
            return False
        raise Refused(
            f"cannot set {SOURCE_FOR} on the source database {name!r}, without which Hive keeps no deleted files: {error}; "
            "let an administrator set it, or set without_cmroot in the policy to replicate without deleted files"
        ) from error
    return True


def _is_marked(database: Database) -> bool:
    return bool((database.parameters or {}).get(SOURCE_FOR))


def _marked(source: Source, database: Database) -> Database:
    marked = copy_of(database)
    marked.parameters = {**(database.parameters or {}), SOURCE_FOR: source.policy.name}
    return marked


def _altered_by_others(source: Source, marked: Database, begin: int, end: int) -> tuple[list[AlterDatabase], bool]:
    """What others did to a database after an event, and whether no event of its mark comes later, which would not tell of it.

    A mark that was written over is written again by the same call (:meth:`.Server.write`), with an event of its own, or, as by
    Hive 4, with none.
    """
    others, told = list[AlterDatabase](), True
    for row in notifications(source.metastore, begin, end, source.policy.max_message_bytes, marked.name):
        if row.type != "ALTER_DATABASE" or row.database != marked.name:
            continue
        try:
            event = decode(row)
        except UnreadableMessage:  # the dump reads the database again
            continue
        if isinstance(event, AlterDatabase) and not elsewhere(event):
            if _told(event.after) == _told(marked):
                told = not others
            else:
                others.append(event)
    return others, told


def _told(database: Database) -> tuple[object, ...]:
    """What a message tells of a database; the mark is left out of it, as Hive 4 does."""
    parameters = {name: value for name, value in (database.parameters or {}).items() if name != SOURCE_FOR}
    return parameters, *(getattr(database, name) or None for name in _FIELDS)


def _changed(database: Database, event: AlterDatabase) -> Database:
    """A database to which the change of an event is made once more."""
    changed, before, after = copy_of(database), event.before.parameters or {}, event.after.parameters or {}
    kept = {name: value for name, value in (database.parameters or {}).items() if name in after or name not in before}
    changed.parameters = kept | {name: value for name, value in after.items() if before.get(name) != value}
    for name in _FIELDS:
        if getattr(event.before, name) != getattr(event.after, name):
            setattr(changed, name, getattr(event.after, name))
    return changed
