"""Metastores that leave out of their lists, without an error, what the account may not see, as with Ranger."""

from __future__ import annotations

from collections.abc import Callable

#: Setting of the metastore that turns its filter on, and that which names it.
FILTER, HOOK = "metastore.server.filter.enabled", "metastore.filter.hook"
#: Hides nothing.
_NO_FILTER = "DefaultMetaStoreFilterHookImpl"


def filter_hook(setting: Callable[[str, str], str]) -> str:
    """What may hide tables; "" where nothing does.

    Args:
        setting: reads a setting of the metastore; the default where it is not known there.
    """
    hook = setting(HOOK, _NO_FILTER)
    return hook if setting(FILTER, "false").lower() == "true" and not hook.endswith(_NO_FILTER) else ""
