"""Local files: names that are no UTF-8."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hive_replication.dump.listing import Lister
from hive_replication.errors import Refused
from hive_replication.events.files import FileRef
from hive_replication.policy import Root
from hive_replication.storage import Storage
from hive_replication.verify.listing_digest import observe


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
