"""How transactional tables are replicated."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hive_replication.policy.warehouse import Settings


class Acid(Settings):
    """Transactional tables, full ACID and insert-only ones; both sides need a metastore of Hive 4."""

    replicate: bool = Field(default=True, description="Replicate them; where false they are left out")
    open_txn_timeout: float = Field(
        default=3600.0, ge=0, description="Seconds for which a bootstrap waits for open transactions of its tables to end"
    )
    at_timeout: Literal["abort", "fail"] = Field(
        default="abort", description="Then abort the transactions that write to the database, or fail and leave them alone"
    )
