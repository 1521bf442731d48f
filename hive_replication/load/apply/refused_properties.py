"""What a database is to have of its source's, where the target's metastore refuses it: that stops nothing else of the database.

Its own database may not hold a text (Hive's schema for MySQL keeps parameters in Latin-1), or a listener may refuse. The replica
is then without, and the load's report says so; the next change at the source, or a repair of the database, brings all of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from hive_replication.errors import MetastoreError
from hive_replication.load.replica.failover_marks import READ_ONLY
from hive_replication.load.replica.state import is_state
from hive_replication.logs import about
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import AlreadyExists, NotFound
from hive_replication.metastore.types import Database, copy_of

_LOG = logging.getLogger(__name__)


def created(metastore: Metastore, image: Database, check: Callable[[], None]) -> str:
    """Creates a database, with replication's own properties alone where the source's are refused; returns why they are, or "".

    Args:
        metastore: the target's.
        image: the database.
        check: raises if the lock is lost.

    Raises:
        MetastoreError: it is refused in any case, or exists.
    """
    try:
        metastore.create_database(image)
    except AlreadyExists:
        raise
    except MetastoreError as error:
        bare = copy_of(image)
        bare.description = bare.ownerName = bare.ownerType = None
        bare.parameters = {key: value for key, value in (image.parameters or {}).items() if is_state(key) or key == READ_ONLY}
        if bare == image:
            raise
        check()
        metastore.create_database(bare)
        return _told(image.name, error)
    return ""


def altered(metastore: Metastore, name: str, image: Database, before: Database) -> str:
    """Replaces what a database has of its source's; returns why that is refused, or "".

    Raises:
        NotFound: the database went away.
        MetastoreError: nor does the metastore take the database as it is.
    """
    try:
        metastore.alter_database(name, image, before)
    except NotFound:
        raise
    except MetastoreError as error:
        metastore.alter_database(name, before, before)  # raises where it takes nothing at all now, which passes
        return _told(name, error)
    return ""


def _told(name: str, error: MetastoreError) -> str:
    why = (
        "the database's properties, comment and owner are not those of the source, which the target's metastore refuses: "
        f"{error}; change them at the source, or repair the database with --force when it takes them"
    )
    _LOG.warning("target database %s: %s", name, why, extra=about(name))
    return why
