"""Messages of file systems in words."""

from __future__ import annotations

import pytest

from hive_replication.errors import ReplicationError
from hive_replication.storage.failures import plain, translated


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            'RPCError("org.apache.hadoop.security.AccessControlException", "Permission denied: user=x\\n\\tat org.apache.Foo")',
            "permission denied (Permission denied: user=x)",
        ),
        ('RPCError("org.apache.hadoop.hdfs.Odd", "what \\"it\\" said")', 'Odd (what "it" said)'),
        ('RPCError("org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", "")', "the quota is used up"),
        ("nothing of Hadoop's\nand more", "nothing of Hadoop's"),
    ],
)
def test_no_class_names_and_stack_traces(raw: str, expected: str) -> None:
    assert plain(raw) == expected


def test_an_error_of_hdfs_is_raised_so() -> None:
    with (
        pytest.raises(ReplicationError, match=r"^hdfs://t/x: a file lies where a directory is needed \(/x\)$"),
        translated("hdfs://t/x", "r"),
    ):
        raise RuntimeError('RPCError("org.apache.hadoop.fs.ParentNotDirectoryException", "/x")')
