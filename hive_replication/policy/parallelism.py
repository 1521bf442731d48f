"""How much one process does in parallel: tables, lanes, changes of a metastore, calls of a storage."""

from __future__ import annotations

from functools import partial

from pydantic import Field

from hive_replication.parallel import per_core
from hive_replication.policy.warehouse import Settings


class Parallelism(Settings):
    """How much one process does at a time, most of it waiting for servers. Where absent, so many for each of its cores."""

    tables: int = Field(
        default_factory=partial(per_core, 4, most=32),
        gt=0,
        description="Tables that a dump reads, or a comparison compares; default: 4 per core, 32 at most",
    )
    lanes: int = Field(
        default_factory=partial(per_core, 32, most=128),
        gt=0,
        description="Lanes that a load has under way, most of them in their journal; default: 32 per core, 128 at most",
    )
    changes: int = Field(
        default_factory=partial(per_core, 8, most=32),
        gt=0,
        description="Those of them that are placed, or change the target's metastore; default: 8 per core, 32 at most",
    )
    storage_calls: int = Field(
        default_factory=partial(per_core, 16, most=64),
        gt=0,
        description="Listings, checksums and small files on each storage; default: 16 per core, 64 at most",
    )
