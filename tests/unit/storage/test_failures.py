"""Messages of file systems in words."""

from __future__ import annotations

import json
import traceback

import pytest

from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.storage import Denied, StorageError
from hive_replication.storage.failures import is_transient, plain, translated
from hive_replication.storage.webhdfs_answers import error_of


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
        ('OperationFailed("File is in an HDFS encryption zone")', "File is in an HDFS encryption zone"),
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


class PanicException(BaseException):
    """As pyo3 raises it, whose class cannot be imported."""


def test_a_bug_of_the_client_is_an_error_of_the_one_file() -> None:
    with pytest.raises(ReplicationError, match=r"^hdfs://t/x: hdfs-native cannot read"), translated("hdfs://t/x", "r"):
        raise PanicException("called `Option::unwrap()` on a `None` value")
    with pytest.raises(KeyboardInterrupt), translated("hdfs://t/x", "r"):
        raise KeyboardInterrupt


_WRITE = "File /x could only be written to 0 of the 1 minReplication nodes. There are 0 datanode(s) running and 0 are excluded"


@pytest.mark.parametrize(
    "raw",
    [
        'RPCError("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "Cannot create directory /x.")',
        'RPCError("org.apache.hadoop.ipc.StandbyException", "Operation category READ is not supported in state standby")',
        f'RPCError("java.io.IOException", "{_WRITE}")',
        'FatalRPCError("org.apache.hadoop.security.token.SecretManager$InvalidToken", "token (x for y) is expired")',
    ],
)
def test_an_hdfs_that_serves_nobody_is_unreachable(raw: str) -> None:
    """It is no fault of the one table whose file was asked for: each was held by itself."""
    with (
        pytest.raises(Unreachable, match=r"^the storage root hdfs://t/ cannot be used now: "),
        translated("hdfs://t/x", "hdfs://t/"),
    ):
        raise RuntimeError(raw)


@pytest.mark.parametrize("name", ["StandbyException", "SafeModeException", "RetriableException", "FileAlreadyExistsException"])
@pytest.mark.parametrize("web", [False, True])
def test_the_name_of_a_file_says_nothing_of_its_hdfs(name: str, *, web: bool) -> None:
    """One such directory that may not be read ended each dump of its database."""
    text = f'Permission denied: user=repl, access=READ_EXECUTE, inode="/t/p={name}":alice:alice:drwx------'
    kind = "org.apache.hadoop.security.AccessControlException"
    body = json.dumps({"RemoteException": {"exception": "AccessControlException", "javaClassName": kind, "message": text}})
    escaped = text.replace('"', '\\"')
    error = error_of("/t", 403, body) if web else RuntimeError(f'RPCError("{kind}", "{escaped}")')
    assert not is_transient(error)
    with pytest.raises(Denied, match=f"the account repl lacks rx on /t/p={name}"), translated("hdfs://t/x", "hdfs://t/"):
        raise error


_KMS = "http://kms:9600/kms/v1/keyversion/k%400/_eek?eek_op=decrypt"


@pytest.mark.parametrize("said", ["502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout"])
def test_a_kms_that_is_down_is_no_fault_of_the_one_table(said: str) -> None:
    """Each table of an encryption zone was held."""
    raw = RuntimeError(f'OperationFailed("KMS request failed ({said}): <html> {_KMS}&delegation=SEKRET")')
    with (
        pytest.raises(Unreachable, match=r"^the KMS of the storage root hdfs://t/, which .* gives none: KMS ") as caught,
        translated("hdfs://t/x", "hdfs://t/"),
    ):
        raise raw
    assert is_transient(raw)
    assert "SEKRET" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("asked", ["user.name=repl", "delegation=SEKRET"])
def test_a_kms_that_this_host_may_never_reach_is_trouble_of_its_tables(asked: str) -> None:
    """All tables of the database stopped for one in an encryption zone, and a token of the KMS was kept as the reason."""
    raw = RuntimeError(f'OperationFailed("KMS HTTP error: error sending request for url ({_KMS}&{asked})")')
    with pytest.raises(ReplicationError, match=r"^hdfs://t/x: KMS HTTP error") as caught, translated("hdfs://t/x", "hdfs://t/"):
        raise raw
    assert not isinstance(caught.value, Unreachable)
    assert not is_transient(raw)  # the copy of the file is begun again a few times
    assert "SEKRET" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "raw",
    [
        'OperationFailed("KMS request failed (500 Internal Server Error): NullPointerException KeyVersion k@0 does not exist")',
        'OperationFailed("KMS request failed (403 Forbidden): AuthorizationException User x not allowed to do DECRYPT_EEK on k")',
        'RPCError("java.io.IOException", "/KMS HTTP error")',
    ],
)
def test_a_key_that_is_not_to_be_had_is_trouble_of_its_tables(raw: str) -> None:
    with pytest.raises(StorageError), translated("hdfs://t/x", "hdfs://t/"):
        raise RuntimeError(raw)


@pytest.mark.parametrize(
    ("said", "shown", "grant"),
    [
        ('WRITE, inode="/t":root:users:drwxr-xr-x', "w on /t (root:users drwxr-xr-x)", "-m user:x:rwx /t"),
        ('READ_EXECUTE, inode="/t":a:b:drwx------', "rx on /t (a:b drwx------)", "-R -m user:x:r-x /t"),
        ('READ, inode="/t/f":a:b:-rw-r-----+', "r on /t/f (a:b -rw-r-----+)", "-m user:x:r-- /t/f"),
        ('WRITE, inode="/a;b|sh":a:b:drwx------', "w on /a;b|sh (a:b drwx------)", "-m user:x:-w- '/a;b|sh'"),
    ],
)
def test_a_missing_right_is_named_with_what_grants_it(said: str, shown: str, grant: str) -> None:
    """An entry for the account counts instead of what all others have, so that it must not be less."""
    text = f"Permission denied: user=x, access={said}\\n\\tat org.Foo"
    with pytest.raises(Denied) as caught, translated("hdfs://t/x", "r"):
        raise RuntimeError(f'RPCError("org.apache.hadoop.security.AccessControlException", "{text}")')
    assert str(caught.value) == (f"hdfs://t/x: the account x lacks {shown}; grant it, for instance by: hdfs dfs -setfacl {grant}")


def test_data_nodes_that_do_not_answer_are_named() -> None:
    proto = 'id: DatanodeIdProto { ip_addr: \\"10.0.0.{}\\", host_name: \\"d\\", xfer_port: 9866 }, capacity: Some(27)'
    nodes = ", ".join(f"DatanodeInfoProto {{ {proto.replace('{}', number)} }}" for number in "12")
    assert plain(f'DataTransferError("All DataNodes failed: [{nodes}]")') == (
        "none of the DataNodes that have its blocks answers (10.0.0.1:9866, 10.0.0.2:9866)"
    )
