"""The policy that a component was loaded with last, kept beside its catalog.

Code servers load the definitions at any time; those that a daemon of one's own starts, once a minute. A policy that is being
edited must not end the sensors, and the alarms with them.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import dagster as dg
from dagster.components.utils.project_paths import get_local_state_path
from pydantic import ValidationError

from hive_replication.errors import BadRequest
from hive_replication.policy import Policy
from hive_replication.policy.policy_file import policy_text
from hive_replication.policy.wrong_setting import KEPT
from repl_assets.components.kept_files import write_whole

_LOG = logging.getLogger("dagster")


def place_of(context: dg.ComponentLoadContext, policy_file: str | None) -> Path | None:
    """Where a component's policy is kept; None where nothing can be kept.

    Args:
        context: of the component.
        policy_file: the policy's file; "" or None where the policy is in the component's ``defs.yaml``.
    """
    what = policy_file or context.component_loc.get_display_key(context.defs_module_path)
    try:
        key = f"ReplicationPolicy[last-{hashlib.sha256(what.encode()).hexdigest()[:16]}]"
        return get_local_state_path(key, context.project_root)
    except OSError as error:
        _LOG.warning("no policy can be kept for when %s is not valid: %s", what, error)
        return None


def kept_policy(place: Path | None) -> Policy | None:
    """The policy that was loaded last, also by an earlier version that took what this one refuses; None where none is known."""
    try:
        return Policy.model_validate_json(policy_text(place), context=KEPT) if place else None
    except (BadRequest, ValidationError):
        return None


def keep_policy(place: Path, policy: Policy) -> None:
    """Keeps a policy whose definitions could be made."""
    try:
        write_whole(place, policy.model_dump_json())
    except OSError as error:
        _LOG.warning("the policy %s cannot be kept for when its file is not valid: %s", policy.name, error)
