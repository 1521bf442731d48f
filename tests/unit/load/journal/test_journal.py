from __future__ import annotations

from pathlib import Path

from hive_replication.load.journal.journal import Journal
from hive_replication.load.journal.lane_record import LaneRecord
from hive_replication.policy import Root
from hive_replication.storage import Storage


def test_lanes_are_read_in_the_order_they_were_written(tmp_path: Path) -> None:
    """By name the eleventh came before the third: of two changes of a table the later one has to be taken back first."""
    journal = Journal(Storage((Root(uri=tmp_path.as_uri()),)), f"{tmp_path.as_uri()}/db.db")
    writer = journal.begin(1, 9)
    for number in range(12):
        writer.lane(LaneRecord((f"t{number}",), ()))
    writer.done(9)
    (entry,) = journal.entries()
    assert (entry.status, entry.to_evid) == ("done", 9)
    assert [lane.record.names for lane in journal.lanes(entry)] == [(f"t{number}",) for number in range(12)]
