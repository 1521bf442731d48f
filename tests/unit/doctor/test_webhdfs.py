"""What the doctor says of the WebHDFS of roots on HDFS, and of those that have none."""

from __future__ import annotations

import pytest

from hive_replication.doctor.webhdfs import webhdfs
from hive_replication.policy import Root
from hive_replication.storage import Storage
from tests.receivers import web_server

WITH = Storage((Root(uri="hdfs://127.0.0.1:1/", webhdfs="http://127.0.0.1:1"),))
WITHOUT = Storage((Root(uri="hdfs://127.0.0.1:2/"), Root(uri="s3://bucket/")))


@pytest.mark.parametrize(
    ("side", "other", "verdict", "told"),
    [
        ("source", WITH, "warning", "that cannot get the same checksum on the target are held"),
        ("target", WITH, "warning", "are read once more at the source"),
        ("source", WITHOUT, "error", "nor has the other side: files above 256 KB whose events have checksums are held"),
        ("target", WITHOUT, "error", "nor has the other side"),
    ],
)
def test_a_root_on_hdfs_without_webhdfs(side: str, other: Storage, verdict: str, told: str) -> None:
    assert not list(webhdfs(WITHOUT, side, None))
    (found,) = webhdfs(WITHOUT, side, other)
    assert found.verdict == verdict
    assert told in found.found
    assert "set webhdfs of the storage root hdfs://127.0.0.1:2/" in found.advice


def test_a_login_page_in_place_of_webhdfs() -> None:
    """A gateway answers so, with 200: it ended in a traceback."""
    with web_server() as server:
        page = Storage((Root(uri="hdfs://127.0.0.1:1/", webhdfs=server.url),))
        (found,) = webhdfs(page, "source", WITH)
    assert (found.verdict, found.check) == ("error", "WebHDFS")
    assert found.found.startswith(f"{server.url}: ")
    assert "set webhdfs of the storage root in the policy to the HTTP address of the NameNode" in found.advice
