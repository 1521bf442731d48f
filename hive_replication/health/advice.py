"""What to do about a held table, by the reason for which it is held (pure). The manual's Troubleshooting says more."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hive_replication.events.event_records import is_function
from hive_replication.load.replica.held_reasons import (
    HIDDEN_REASON,
    JOINED_REASON,
    LEFT_OUT_REASON,
    PASSED_REASON,
    RELEASED_REASON,
    UNDONE_REASON,
    UNSHOWN_REASON,
)
from hive_replication.load.replica.state import ReplicaState
from hive_replication.statements import for_shell

_BY_REASON = (
    (
        rf"^{re.escape(UNDONE_REASON)}",
        "it was undone on purpose: hive-repl undo {target} --release lets it follow the source again",
    ),
    (rf"^{re.escape(JOINED_REASON)}", "a rename or a transaction joins it to the table that is named: that one needs attention"),
    (rf"^({re.escape(RELEASED_REASON)}|{re.escape(PASSED_REASON)})", "nothing: the next load brings its events"),
    (
        rf"^{re.escape(LEFT_OUT_REASON)}",
        "the replica stays as it is: exclude the table in the policy, or make one of it at the source that is replicated, then "
        "hive-repl repair {source}",
    ),
    (
        rf"^({re.escape(HIDDEN_REASON)}|{re.escape(UNSHOWN_REASON)})",
        "let the account that replicates see the table at the source (Ranger, the metastore's filter, or the rights on its "
        "directory), or exclude it in the policy; then wait for the next attempt, or hive-repl repair {source}",
    ),
    (
        r"was missing at the source when it was dumped",
        "bring the directory back at the source (an empty one, if it is to be empty) or drop what it belongs to, then "
        "hive-repl repair {source}",
    ),
    (
        r"is absent|file is missing|neither at|another version",
        "look whether the source's data is good, then hive-repl repair {source}; raise hive.repl.cm.retain at the source",
    ),
    (
        r"^taken into the policy",
        "a later load brings it as a whole; hive-repl repair {source} does it at once",
    ),
    (
        r"^the view .*is the replica of .* on the target",
        "in the policy give the replica another name, or replicate the database that the view reads, too",
    ),
    (r"^the view reads", "set renamed_views: rewrite in the policy, or exclude the view there"),
    (
        r"^the view cannot be rewritten",
        "exclude the view in the policy, or set renamed_views: rewrite-or-warn there, which keeps its text",
    ),
    (
        r"types incompatible",
        "the target's metastore refuses a change that the source's session allowed: drop the table on the target, then "
        "hive-repl repair {source}",
    ),
    (
        r"is not a replica of this source|is a replica of",
        "rename or drop the object on the target, or choose another setting of conflicts in the policy",
    ),
    (
        r"has other content than|went away during the load",
        "somebody else changes the replica: stop that, then hive-repl repair {source}",
    ),
    (
        r"PermissionError|[Pp]ermission denied|AccessControl|the account \S+ (lacks|may not)\b",
        "give the account that replicates the right that the message names, then wait for the next attempt",
    ),
    (
        r"is an archive of Hadoop",
        "ALTER TABLE .. UNARCHIVE PARTITION at the source and wait for the next attempt, or hive-repl repair {source} after it; "
        "or leave the partition out by a partition filter of the policy",
    ),
    (
        r"lies outside the (source's )?storage roots|that the policy allows",
        "add the path to the policy if it is right; otherwise exclude the table, or drop the function",
    ),
    (
        r"ParentNotDirectory|is not a directory|a file lies where a directory|exists already",
        "a file lies on the target where a directory belongs: move it away, then wait for the next attempt",
    ),
    (
        r"\b[Nn]o space\b|\bquota\b(?!=)|QuotaExceeded",
        "make room on the target or raise its quota, then wait for the next attempt",
    ),
    (r"cannot be reached|does not answer|check that the metastore runs", "start the server; the next attempt continues"),
    (r"\b(aborted|transactions?)\b(?!=)", "hive-repl repair {source}"),
)
#: URIs and paths, which the source's users name.
_PATHS = re.compile(r"\S*/\S*")
_ELSE = "remove the cause and wait for the next attempt, or hive-repl repair {source}, which ends the hold"


def advice_on(reason: str, source: str, target: str, names: Iterable[str] = ()) -> str:
    """What to do about a held table.

    Args:
        reason: why it is held.
        source: its name at the source, with its database, as it stands in a command
            (:func:`hive_replication.statements.for_shell`).
        target: the same on the target.
        names: those that the reason may quote, and that say nothing of it: a table may have the name of any trouble.
    """
    said = _PATHS.sub("", reason)
    for name in names:
        quoted = rf"(['\"`.]|\b(?:database|function|partition|table|view) ){re.escape(name)}(?!\w)"
        said = re.sub(quoted, r"\1", said, flags=re.IGNORECASE)
    found = next((advice for pattern, advice in _BY_REASON if re.search(pattern, said)), _ELSE)
    return found.format(source=source, target=target)


def advice_on_held(name: str, reason: str, database: str, target_database: str) -> str:
    """What to do about a held table, or about a function, which is repaired with its database alone.

    Args:
        name: of the table, or of the function among lanes.
        reason: why it is held.
        database: its database at the source.
        target_database: the same on the target.
    """
    table = None if is_function(name) else name
    names = (database, target_database, name)
    return advice_on(reason, for_shell(database, table), for_shell(target_database, table), names)


def why_left_held(state: ReplicaState, name: str, database: str, target_database: str) -> str:
    """Why a held name is not repaired along with all that are held, and what to do about it; "" where it is.

    Args:
        state: of the target database.
        name: of the table, or of the function among lanes.
        database: its database at the source.
        target_database: the same on the target.
    """
    if is_function(name):
        return f"a function is repaired with its database: hive-repl repair {for_shell(database)}, which ends undos, too"
    return advice_on_held(name, state.held[name], database, target_database) if state.stands_with_undo(name) else ""
