"""What unit tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hive_replication.dump import listing


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Directories are listed one after another, so that a failing example can be repeated."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "_THREADS", 1)
        yield
