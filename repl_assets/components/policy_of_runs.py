"""The policy that a code server was loaded with goes with the runs that are requested of it.

Each run's process loads the definitions again: a file that was edited since would act before anybody has chosen Reload, in runs
alone. Dagster stores what a code server gives along with each run's execution plan.
"""

from __future__ import annotations

import logging

import dagster as dg
from pydantic import TypeAdapter, ValidationError

from hive_replication.policy import Policy
from hive_replication.policy.wrong_setting import KEPT
from repl_assets.dagster_private import DefinitionsLoadContext, DefinitionsLoadType

_LOG = logging.getLogger("dagster")
_GIVEN = TypeAdapter(tuple[Policy, str])


def give(context: dg.ComponentLoadContext, policy: Policy, problem: str) -> None:
    """Gives runs the policy of the definitions that a code server loads.

    Args:
        context: of the component.
        policy: its policy.
        problem: why that is not the one of its file now, or "".
    """
    loading = DefinitionsLoadContext.get()
    if loading.load_type is DefinitionsLoadType.INITIALIZATION:
        loading.add_to_pending_reconstruction_metadata(_key(context), _GIVEN.dump_json((policy, problem)).decode())


def given(context: dg.ComponentLoadContext) -> tuple[Policy, str] | None:
    """What :func:`give` gave; None where the definitions are loaded anew, and for runs that have nothing of the component."""
    loading, key = DefinitionsLoadContext.get(), _key(context)
    if loading.load_type is DefinitionsLoadType.INITIALIZATION or key not in loading.reconstruction_metadata:
        return None
    try:
        return _GIVEN.validate_json(str(loading.reconstruction_metadata[key]), context=KEPT)
    except ValidationError as error:
        _LOG.warning("the policy that this run was requested with is not known to this version, its file is read: %s", error)
        return None


def _key(context: dg.ComponentLoadContext) -> str:
    return f"ReplicationPolicy[{context.component_loc.get_display_key(context.defs_module_path)}]"
