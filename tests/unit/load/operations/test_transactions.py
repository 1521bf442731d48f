"""Names under which the target's metastore keeps replicated transactions."""

from __future__ import annotations

from hive_replication.load.operations.transactions import policy_of


def test_names_of_policies_begin_with_the_database() -> None:
    """Hive looks for the database before the first dot (``MetaStoreUtils.getDbNameFromReplPolicy``)."""
    long = policy_of(f"uuid/{'s' * 120}", "d" * 120)
    assert [one.split(".")[0] for one in (policy_of("uuid/db", "other"), long)] == ["other", "d" * 120]
    assert policy_of("uuid/db", "other") == "other.uuid/db>other"
    assert len(long) <= 250
