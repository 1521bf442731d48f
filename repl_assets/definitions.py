"""What Dagster loads: one component instance for each policy in ``defs/``."""

from __future__ import annotations

import gc
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import dagster as dg

from hive_replication.policy import Policy
from repl_assets.build import policy_definitions
from repl_assets.catalog.catalog import Catalog

# One process a run: each step of its own would load definitions, and start Spark, again.
_EXECUTOR = dg.in_process_executor


def build_defs(
    policy: Policy, catalog: Catalog | None = None, *, resources: Mapping[str, Any] | None = None, **settings: Any
) -> dg.Definitions:
    """The definitions of one policy without its ``defs.yaml``, for tests and for projects of their own.

    Args:
        policy: the policy.
        catalog: its tables.
        resources: take the place of the policy's own, by key.
        settings: see :func:`repl_assets.build.policy_definitions`.
    """
    return dg.Definitions.merge(
        policy_definitions(policy, catalog, resources=resources, **settings), dg.Definitions(executor=_EXECUTOR)
    )


@dg.definitions
@cache
def defs() -> dg.Definitions:
    """All policies, made once in a process: forks of it (``repl_assets.run_launcher``) do not make them again."""
    with _uncollected():
        loaded = dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
        return dg.Definitions.merge(loaded, dg.Definitions(executor=_EXECUTOR))


@contextmanager
def _uncollected() -> Generator[None]:
    """Keeps Python's garbage collector from definitions: they stay, and it would walk all of them again and again.

    Each run's process loads them, and a fifth of that time was the collector's.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
