"""Where the dumps of a policy lie, as a storage root."""

from __future__ import annotations

from hive_replication.errors import BadRequest
from hive_replication.policy import Policy, Root


def dump_root(policy: Policy) -> Root:
    """The dump root as a storage root of its own, so that no dump directory outside it is ever read or written.

    It takes its options from the root of target or source that it lies under; a local ``file://`` path needs none.

    Raises:
        BadRequest: it lies under no root.
    """
    uri = policy.dump_root.rstrip("/") + "/"
    for root in (*policy.target.storage_roots, *policy.source.storage_roots):
        if uri.startswith(root.uri):
            return root.model_copy(update={"uri": uri})
    if uri.startswith("file:///"):
        return Root.model_construct(uri=uri)  # the policy's checks were made, or passed over where an earlier version took it
    roots = ", ".join(root.uri for root in (*policy.target.roots, *policy.source.roots))
    raise BadRequest(f"dump_root {policy.dump_root} of the policy lies under none of its storage roots ({roots})")
