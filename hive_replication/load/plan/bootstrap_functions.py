"""Functions of a dump of objects against the target's: what is created, replaced and dropped (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from hive_replication.dump.format.record_types import FunctionRecord
from hive_replication.events.event_records import function_name
from hive_replication.load.operations.functions import DropFunction, create_function, homes_of, state_id
from hive_replication.load.operations.kinds import CustomOperation
from hive_replication.load.plan import gate
from hive_replication.load.plan.load_plan import LanePlan, Stop
from hive_replication.load.replica.name_mapping import NameMapping
from hive_replication.load.replica.target_view import TargetView
from hive_replication.metastore.types import Function


def plan_functions(
    mapping: NameMapping,
    view: TargetView,
    records: Iterable[FunctionRecord],
    found: Mapping[str, Function],
    evid: int,
    *,
    other_history: bool = False,
    outside: Mapping[str, str] | None = None,
    given_up: Collection[str] = (),
    differing: Collection[str] = (),
) -> list[LanePlan]:
    """Lanes that bring the target's functions to those of a dump of objects: what is missing, older or gone (pure).

    Args:
        mapping: names and paths.
        view: where the target stands.
        records: of the dump.
        found: the target's functions, by name.
        evid: event id that the dump stands at.
        other_history: the event ids of the target's functions say nothing.
        outside: functions whose resources may not be read, with the reason: they are held.
        given_up: names of functions that go although they are no replicas: what an old source had made itself.
        differing: names of functions of the dump's event whose resources are to be copied again.
    """
    operations: list[CustomOperation] = []
    wanted: set[str] = set()
    for record in records:
        wanted.add(record.name)
        if outside and record.name in outside:
            continue
        there = state_id(found[record.name], homes_of(mapping, record.name)) if record.name in found else None
        again = record.name in differing
        if there is None or gate.due(evid, there, again=again, other_history=other_history):
            made = create_function(mapping, record.function, record.files, evid, found[record.name] if again else None)
            operations.append(replace(made, force=other_history or again))
    for name in sorted(found.keys() - wanted):
        there = state_id(found[name], homes_of(mapping, name))
        if name in given_up or (there is not None and gate.due(evid, there, again=True, other_history=other_history)):
            operations.append(DropFunction(evid, function_name(name), name, homes_of(mapping, name), other_history))
    lanes = [LanePlan((one.table,), view.state.position(one.table), (one,)) for one in operations]
    for name, reason in (outside or {}).items():
        own = function_name(name)
        lanes.append(LanePlan((own,), view.state.position(own), (), Stop(evid, reason, refused=True)))
    return lanes
