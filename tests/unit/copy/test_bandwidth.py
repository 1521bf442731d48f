"""The limit on bytes per second."""

from __future__ import annotations

import pickle
import time
from pathlib import Path

import pytest

from hive_replication.copy.bandwidth import Bandwidth
from hive_replication.copy.tasks import CopyResult, CopyTask
from hive_replication.copy.thread_copier import ThreadCopier
from hive_replication.events.files import FileRef
from hive_replication.policy import Root
from hive_replication.storage import Storage

MIB = 1 << 20


@pytest.mark.parametrize("files", [1, 16])
def test_the_rate_holds_over_all_threads(tmp_path: Path, files: int) -> None:
    storage = Storage((Root(uri=f"file://{tmp_path}/"),))
    size = 4 * MIB // files
    for number in range(files):
        storage.write(f"file://{tmp_path}/from/{number}", b"x" * size)
    copier = pickle.loads(pickle.dumps(ThreadCopier(storage, storage, bandwidth=2 * MIB)))
    rates: list[float] = []
    while not rates or (rates[-1] <= 0.8 * 2 * MIB and len(rates) < 3):  # other work on the machine may slow one of them
        places = [(f"file://{tmp_path}/from/{number}", f"file://{tmp_path}/{len(rates)}/{number}") for number in range(files)]
        tasks = [CopyTask(FileRef(place, ""), to, 1, "t") for place, to in places]
        began = time.monotonic()
        assert sum(answer.size for answer in copier.copy(tasks) if isinstance(answer, CopyResult)) == 4 * MIB
        rates.append(4 * MIB / (time.monotonic() - began))
    assert rates[-1] > 0.8 * 2 * MIB
    assert max(rates) < 1.2 * 2 * MIB
    assert len(list(copier.limited(None).copy([]))) == 0


def test_a_low_limit_means_few_streams_of_small_pieces() -> None:
    slow, fast = Bandwidth(MIB), Bandwidth(1024 * MIB)
    assert (slow.threads(128), fast.threads(128), Bandwidth(1).threads(128)) == (16, 128, 1)
    assert (slow.chunk(16), fast.chunk(128)) == (MIB // 16, 4 * MIB)
