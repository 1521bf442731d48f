"""Why names are held, as far as anybody asks for the reason: how such reasons begin."""

from __future__ import annotations

from typing import Final

#: Of a name that was undone by request.
UNDONE_REASON: Final = "undone to "
#: The same of a name that was released since, and waits for its next load.
RELEASED_REASON: Final = "released after an undo"
#: Of a name that a load brought up less far than windows have brought the others meanwhile.
PASSED_REASON: Final = "passed by a window: "
#: Of a transactional table that a recovery makes anew, or whose open transactions it has ended.
REBUILT_REASON: Final = "a recovery that makes it anew has not finished"
#: Of a table that a load could not take into the policy yet.
TAKEN_IN_REASON: Final = "taken into the policy, "
#: Of a replica that stays as it is, since the source's table has become one that is not replicated.
LEFT_OUT_REASON: Final = "the source table cannot be followed any more: "
#: Of a table that the source has and does not show: its lists leave it out, or it refuses what is asked of it.
HIDDEN_REASON: Final = "the source hides the table from replication: "
UNSHOWN_REASON: Final = "the source's metastore did not show "
#: Of a name that is joined to one that is held, for a reason of that one alone; the name, a colon and the reason follow.
JOINED_REASON: Final = "held with "


def is_hidden(reason: str) -> bool:
    """Whether a name is held since the source does not show its table."""
    return reason.startswith((HIDDEN_REASON, UNSHOWN_REASON))


def joined_to(reason: str) -> tuple[str, str]:
    """The name to which one that is held for this reason is joined, and why that is held; "" and the reason itself if none."""
    name, colon, why = reason.removeprefix(JOINED_REASON).partition(": ")
    return (name, why) if colon and reason.startswith(JOINED_REASON) else ("", reason)
