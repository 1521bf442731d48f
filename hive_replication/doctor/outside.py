"""Whether loads may write where replicas lie: they stay where they are, while ``external_root`` or ``target.paths`` change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hive_replication.doctor.finding import Finding, error, warning
from hive_replication.load.layout.live_locations import Locations, all_tables
from hive_replication.load.replica.state import is_ours, replica_state
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.target_boundary import TargetBoundary
from hive_replication.metastore.types import Database, directory_of
from hive_replication.policy import Policy
from hive_replication.storage import paths

_OF_ALL = "default"  # whose directory is the warehouse


def outside(target: Target, database: Database) -> Iterator[Finding]:
    """Replicas that no load may write to; of partitions with places of their own nothing is said.

    Args:
        target: the target side.
        database: its database.
    """
    name, source = database.name, replica_state(database).source
    boundary = TargetBoundary(target, name, (database.locationUri or "").rstrip("/"))
    ours = (one for one in all_tables(target.metastore, name) if is_ours(one, source) and target.policy.includes(one.tableName))
    places = {one.tableName: paths.collapsed(place) for one in ours if (place := directory_of(one))}
    found = sorted(table for table, place in places.items() if boundary.why_outside(place))
    if found:
        shown = f"{found[0]} lies at {places[found[0]]}" + (f", and {len(found) - 1} more" if len(found) > 1 else "")
        advice = "add that directory, such as the external_root from before, to target.paths of the policy"
        yield warning("target", f"places of {name}", f"{shown}, where no load may write: it is held", advice)


def shared_root(policy: Policy, there: Mapping[str, Database | None]) -> Iterator[Finding]:
    """Whether external tables of all databases go into the directory of one: what that one's own tables do not use is moved away.

    Args:
        policy: the policy.
        there: its databases on the target, as far as they exist.
    """
    for name, found in there.items():
        home = found.locationUri if found else policy.locations.get(name)
        if home and policy.external_root and name != _OF_ALL and Locations([home]).contains(policy.external_root):
            shown = f"{policy.external_root} lies in the directory of {name}: its drop and retention may move others' data"
            advice = "name a directory that is no database's, and load replicas that lie there anew"
            yield error("target", "external_root", shown, advice)
