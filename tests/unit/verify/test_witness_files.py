"""Who reads directories for the witness: threads, or Spark beyond a number."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from hive_replication.policy import Root
from hive_replication.storage import Storage
from hive_replication.verify.witness import ThreadReader, ThresholdReader
from hive_replication.verify.witness.files import Directories, FileFacts


class Recorded:
    """Reads nothing, and notes how many directories it was asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def read(self, directories: Sequence[Directories]) -> Iterable[FileFacts]:
        self.asked.append(len(directories))
        return []


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    for side, content in (("source", "1"), ("target", "22")):
        for number in range(3):
            (tmp_path / side / str(number)).mkdir(parents=True)
            (tmp_path / side / str(number) / "f").write_text(content * number)
    return Storage((Root(uri=tmp_path.as_uri()),))


def test_spark_begins_beyond_a_number_of_directories() -> None:
    threads, spark, started = Recorded(), Recorded(), list[Recorded]()

    def start() -> Recorded:
        started.append(spark)
        return spark

    reader = ThresholdReader(threads, start, most=10)
    for number in (4, 6, 1, 3, 1, 5):
        reader.read([Directories("", "", 0)] * number)
    assert (threads.asked, spark.asked, len(started)) == ([4, 6, 1, 1], [3, 5], 1)


def test_threads_read_in_order_here_and_where_they_are_sent(storage: Storage, tmp_path: Path) -> None:
    asked = [Directories(f"{tmp_path.as_uri()}/source/{n}", f"{tmp_path.as_uri()}/target/{n}", 2) for n in (2, 0, 1)]
    expected = [FileFacts({"f": f"{n} bytes"}, {"f": f"{2 * n} bytes"}, 0) for n in (2, 0, 1)]
    expected[1] = FileFacts({"f": "0 bytes"}, {"f": "0 bytes"}, 0)
    reader = ThreadReader(storage, storage)
    assert list(reader.read(asked)) == expected
    sent: ThreadReader = pickle.loads(pickle.dumps(reader))
    assert list(sent.answers(asked)) == expected
    outside = [asked[0], Directories("file:///nowhere/x", "", 0)]
    found = list(sent.answers(outside))
    assert found[0] == expected[0]
    assert "lies outside the storage roots of the policy" in str(found[1])
