"""One round of the witness: a look at everything, and further looks at what seems wrong."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from hive_replication.dump.source import Source
from hive_replication.load.replica.target import Target
from hive_replication.verify.witness.comparison import Remembered, Round, confirmed, objects_of
from hive_replication.verify.witness.look import Look

#: Seconds before each further look at what seems wrong: files of an INSERT lie at the source before its event is written.
PAUSES = (1.0, 2.0, 4.0, 8.0)


def witness(source: Source, target: Target, database: str, *, earlier: Sequence[Remembered] = ()) -> Round:
    """One round: compares all objects of the policy in a database with the replica's, as both metastores and storages hold them.

    What seems wrong, and was not in the last round, is looked at again after a while: it is wrong if it still is.

    Args:
        source: the source side.
        target: the target side.
        database: source name.
        earlier: what the last round found.

    Raises:
        BadRequest: the source has no such database.
        Unreachable: a server does not answer.
    """
    source.database(database)
    look = Look(source, target, database, random.Random())  # noqa: S311 (a sample)
    found = look.at(None, earlier)
    told = {one.difference.key for one in earlier if one.wrong}
    for pause in PAUSES:
        doubtful = [one for one in found.wrong if one.key not in told]
        if not doubtful:
            break
        time.sleep(pause)
        found = confirmed(found, look.at(objects_of(doubtful), earlier), {one.key for one in doubtful})
    return found
