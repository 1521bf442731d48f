"""Grants and roles of the metastore: a part of the policy."""

from __future__ import annotations

from pydantic import Field

from hive_replication.policy.warehouse import Settings


class Privileges(Settings):
    """Grants on replicas, and the roles that they are granted to, as SQL standard based authorization keeps them."""

    replicate: bool = Field(default=False, description="Compare and replicate them after each load")
    roles: bool = Field(
        default=True,
        description="With the roles that have grants on replicas, and their members; where false these have to be there",
    )
    principals: dict[str, str] = Field(
        default_factory=dict[str, str],
        description="Users, groups and roles on the target, by those at the source; of others, owners names users",
    )
    remove: bool = Field(default=False, description="Revoke what the source does not have; where false it stays")
