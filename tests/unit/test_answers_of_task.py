"""Calls of a Spark task: the same results as in threads of this process, and what a call raised."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path

import pytest

from hive_replication.dump.listing import Lister
from hive_replication.parallel import Raised, answers_of_task
from hive_replication.policy import Root
from hive_replication.storage import Denied, Storage
from hive_replication.storage.boundary import Boundary
from hive_replication.verify.listing_digest import observe
from hive_replication.verify.witness.files import Directories, FileFacts, file_facts


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    for side, content in (("source", "1"), ("target", "22")):
        for number in range(3):
            (tmp_path / side / str(number)).mkdir(parents=True)
            (tmp_path / side / str(number) / "f").write_text(content * number)
    return Storage((Root(uri=tmp_path.as_uri()),))


def test_directories_are_read_in_order_where_the_function_is_sent(storage: Storage, tmp_path: Path) -> None:
    asked = [Directories(f"{tmp_path.as_uri()}/source/{n}", f"{tmp_path.as_uri()}/target/{n}", 2) for n in (2, 0, 1)]
    expected = [FileFacts({"f": f"{n} bytes"}, {"f": f"{2 * n} bytes"}, 0) for n in (2, 0, 1)]
    expected[1] = FileFacts({"f": "0 bytes"}, {"f": "0 bytes"}, 0)
    here = partial(file_facts, storage, storage)
    assert list(storage.many.map(here, asked)) == expected
    sent = pickle.loads(pickle.dumps(here))
    assert list(answers_of_task(sent, 4, asked)) == expected
    first, outside = answers_of_task(sent, 4, [asked[0], Directories("file:///nowhere/x", "", 0)])
    assert first == expected[0]
    assert isinstance(outside, FileFacts)
    assert "lies outside the storage roots of the policy" in outside.source[""]
    first, raised = answers_of_task(partial(Lister(storage).files), 4, [asked[0].source, "file:///nowhere/x"])
    assert not isinstance(first, Raised)
    assert isinstance(raised, Raised)
    assert "lies outside the storage roots of the policy" in str(raised.error)


def test_listings_and_observations_are_the_same_where_they_are_sent(storage: Storage, tmp_path: Path) -> None:
    locations = [f"{tmp_path.as_uri()}/source/{n}" for n in range(3)]
    further = Boundary("source.paths", (), lambda: (locations[0], locations[2]))
    dumps = Lister(storage, boundary=further, holds=True)
    assert [[file.is_barred for file in dumps.files(one)] for one in locations] == [[False], [True], [False]]
    for here in (partial(Lister(storage).files, kept=False), dumps.files, partial(observe, storage, now=0.0)):
        found = list(storage.threads.map(here, locations))
        assert list(answers_of_task(pickle.loads(pickle.dumps(here)), 4, locations)) == found


def test_what_a_call_raised_comes_back_as_it_was() -> None:
    for error in (Denied("no right on x"), FileNotFoundError(2, "gone", "x")):
        back: Raised = pickle.loads(pickle.dumps(Raised(error)))
        assert type(back.error) is type(error)
        assert back.error.args == error.args
