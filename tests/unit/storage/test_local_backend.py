"""Local files: names that are no UTF-8, directories that may not be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hive_replication.dump.listing import Lister
from hive_replication.errors import Refused
from hive_replication.events.files import FileRef
from hive_replication.policy import Root
from hive_replication.storage import Denied, Storage
from hive_replication.verify.listing_digest import observe
from tests.faults import unreadable_directories


def test_names_of_local_files_that_are_no_utf8(tmp_path: Path) -> None:
    """Python's surrogates cannot be written into a dump, nor added up in a digest: a dump or check ended in a traceback."""
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff\xfe")).write_text("1")
    (tmp_path / "plain").write_text("1")
    storage = Storage((Root(uri=f"file://{tmp_path}"),))
    odd, plain = (status.uri for status in storage.files(f"file://{tmp_path}"))
    assert (odd, plain) == (f"file://{tmp_path}/a\0ff\0fe", f"file://{tmp_path}/plain")
    assert len(observe(storage, f"file://{tmp_path}", 0).digest) == 16
    found = Lister(storage).files(f"file://{tmp_path}")
    assert found == (FileRef(odd), FileRef(plain))
    assert FileRef.decode(found[0].encode()) == found[0]
    with pytest.raises(Refused, match="NUL character"):
        storage.read(odd)


def test_a_local_directory_that_may_not_be_read_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    """fsspec leaves it out. Of a hidden one nothing is needed."""
    for name in ("f", "delta_1/f", ".staging/f"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    storage, uri = Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri()
    with unreadable_directories(".staging"):
        assert [status.uri.removeprefix(f"{uri}/") for status in storage.files(uri)] == ["delta_1/f", "f"]
        with pytest.raises(Denied):
            storage.files(uri, hidden=True)
    with unreadable_directories("delta_1"), pytest.raises(Denied):
        storage.files(uri)
