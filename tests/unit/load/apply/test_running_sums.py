"""What a load adds up while it runs."""

from __future__ import annotations

from hive_replication.load.apply.running_sums import Tally
from hive_replication.load.operations import kinds as op
from hive_replication.load.report import SlowOperation


def test_the_slowest_operations_of_each_kind_are_told() -> None:
    tally = Tally()
    for number in range(8):
        tally.carried_out("db", [op.DropTable(number, "t")], (number * 5 % 8) / 2)
    tally.carried_out("db", [op.DropPartitions(evid, "p", ("ds=1",)) for evid in (20, 21)], 1.25)
    found = tally.slowest()
    assert found[0] == SlowOperation("DropTable", "t", 3, 1, 3.5)
    assert [(one.kind, one.seconds) for one in found] == [
        ("DropTable", 3.5),
        ("DropTable", 3.0),
        ("DropTable", 2.5),
        ("DropTable", 2.0),
        ("DropTable", 1.5),
        ("DropPartitions", 1.25),
    ]
    assert found[-1] == SlowOperation("DropPartitions", "p", 21, 2, 1.25)
    assert tally.applied == {"DropTable": 8, "DropPartitions": 2}
