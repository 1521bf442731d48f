"""From the errors of file systems to ours."""

from __future__ import annotations

import errno
import re
from collections.abc import Generator
from contextlib import contextmanager
from shlex import quote

from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.logs import without_secrets
from hive_replication.process import account
from hive_replication.storage.client_errors import Busy
from hive_replication.storage.file_status import AlreadyExists, Denied, StorageError

# How a whole HDFS says that it serves nobody now: by an exception, or in the text of one of this kind.
_DOWN = ("SafeModeException", "RetriableException", "StandbyException")
_NO_DATANODES = re.compile(r'\.IOException", ".*There are 0 datanode\(s\) running', re.DOTALL)
#: A delegation token that is not known, or too old.
NO_TOKEN = "InvalidToken"  # noqa: S105 (a name of Hadoop's)
# Hadoop's exceptions and hdfs-native's errors that pass by themselves.
_TRANSIENT = ("DataTransferError", "BlocksNotFound", NO_TOKEN)
# All that hdfs-native says where it came without Kerberos and has to, and where a NameNode ends for other reasons.
_DROPPED = "RPC listener disconnected"
# How hdfs-native says that the KMS answers nobody now. A 500 may be about one key that is gone, and a "KMS HTTP error" does not
# tell a KMS that is down from one that this host never reaches (its certificate, name, port): all other tables go on.
_KMS_DOWN = re.compile(r'OperationFailed\("KMS request failed \(50[234]\b')
#: How Hadoop names what an account may not do.
DENIED = "AccessControlException"
# Hadoop's ways to say that a rename met something, besides FileAlreadyExistsException.
_TAKEN = ("must both be directories",)
# What Hadoop's exceptions mean, by the ends of their names.
_WORDS = {
    "ParentNotDirectoryException": "a file lies where a directory is needed",
    "AccessControlException": "permission denied",
    "QuotaExceededException": "the quota is used up",
    "SafeModeException": "the NameNode is in safe mode",
    "LeaseExpiredException": "somebody else writes or has deleted the file",
    "FileAlreadyExistsException": "it exists already",
    "PathIsNotEmptyDirectoryException": "the directory is not empty",
    "StandbyException": "the NameNode is on standby",
    "FileNotFoundException": "it is absent",
    "InvalidToken": "the delegation token is not known there, or too old",
}
# How the NameNode says which right whom it lacks on what: of FSPermissionChecker.toAccessControlString.
_LACKING = re.compile(
    r'user=(?P<user>[^,]+), access=(?P<access>\w+), inode="(?P<inode>.*?)":(?P<owner>[^:]*:[^:]*):(?P<mode>[\w-]{10}\+?)'
)
_BITS = {"READ": "r", "WRITE": "w", "EXECUTE": "x", "ALL": "rwx"}
_DATANODE = re.compile(r'ip_addr: \\?"(?P<host>[^"\\]+)\\?".*?xfer_port: (?P<port>\d+)')  # of hdfs-native's DataTransferError
_FAILED = re.compile(r'OperationFailed\("(?P<text>.*)"\)', re.DOTALL)
_RPC = re.compile(r'(?:Fatal)?RPCError\("(?P<kind>[\w.$]+)", "(?P<text>.*)', re.DOTALL)


def is_transient(error: BaseException) -> bool:
    """Whether the same call may succeed a little later. Connections are repeated by the clients themselves."""
    if isinstance(error, RuntimeError):
        passing = any(name in _kind(str(error)) for name in _TRANSIENT)
        return passing or is_down(error) or _KMS_DOWN.match(str(error)) is not None
    return isinstance(error, Busy)


def is_down(error: BaseException) -> bool:
    """Whether a whole HDFS says that it serves nobody now."""
    if not isinstance(error, RuntimeError):
        return False
    return any(name in _kind(str(error)) for name in _DOWN) or _NO_DATANODES.search(str(error)) is not None


def _kind(text: str) -> str:
    """The part of an error of hdfs-native that tells what it is: what follows may name a file, which may have any name."""
    found = _RPC.search(text)
    return found["kind"] if found else text.partition('"')[0]


def is_unanswered(error: BaseException) -> bool:
    """Whether a store did not answer: it is down, or went down before it answered, after it did what was asked or before."""
    if not isinstance(error, OSError) or isinstance(error, FileNotFoundError | FileExistsError | PermissionError):
        return False  # hdfs-native gives these no number either
    return error.errno is None or isinstance(error, ConnectionError | TimeoutError)


@contextmanager
def translated(uri: str, root: str) -> Generator[None]:
    """Turns errors of a file system into ours; says where.

    Args:
        uri: what was asked for.
        root: the storage root it lies under, named where it cannot be reached.
    """
    try:
        with _without_panic():
            yield
    except ReplicationError:
        raise
    except PermissionError as error:
        raise Denied(_denied(uri, error.strerror or _first_line(error))) from error
    except FileNotFoundError as error:
        if "://" in str(error.filename):  # From a stream that is being written elsewhere: it is named already.
            raise
        raise FileNotFoundError(error.errno or errno.ENOENT, error.strerror or _first_line(error), uri) from error
    except FileExistsError as error:
        raise AlreadyExists(f"{uri} exists already") from error
    except OSError as error:
        if is_unanswered(error):
            advice = "; if it asks for Kerberos, set kerberos of this side in the policy" if _DROPPED in str(error) else ""
            raise Unreachable(f"the storage root {root} cannot be reached: {_first_line(error)}{advice}") from error
        raise StorageError(f"{uri}: {error}") from error
    except RuntimeError as error:
        told = _of_hdfs(uri, root, error)
        if without_secrets(str(error)) != str(error):  # a token of the KMS; Dagster stores an error with all that it came from
            raise told from None
        raise told from error


@contextmanager
def _without_panic() -> Generator[None]:
    """Makes a RuntimeError of a bug of hdfs-native, which is raised as what is no Exception and would end the process."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise RuntimeError(f"hdfs-native cannot read what HDFS answers: {error}") from error


def _of_hdfs(uri: str, root: str, error: RuntimeError) -> ReplicationError:
    text, words = str(error), _first_line(error)
    if DENIED in _kind(text):
        return Denied(_denied(uri, words))
    if any(mark in text for mark in _TAKEN):
        return AlreadyExists(f"{uri} exists already")
    if is_down(error) or NO_TOKEN in _kind(text):
        return Unreachable(f"the storage root {root} cannot be used now: {words}")
    if _KMS_DOWN.match(text):
        return Unreachable(f"the KMS of the storage root {root}, which has the keys of its encryption zones, gives none: {words}")
    return Denied(_denied(uri, words)) if DENIED in text else StorageError(f"{uri}: {words}")


def _denied(uri: str, text: str) -> str:
    """Path, account and the right that it lacks, with the command that grants it."""
    found = _LACKING.search(text)
    if found is None:
        return f"{uri}: the account {account()} may not: {text}"
    user, inode, mode = found["user"], found["inode"], found["mode"]
    lacks = "".join(_BITS.get(word, "") for word in found["access"].split("_"))
    grant = "".join(bit if bit in lacks + mode[7:10] else "-" for bit in "rwx")  # an entry counts instead of what all others have
    below = mode.startswith("d") and "r" in lacks and "w" not in lacks  # what is in it is read, too
    return (
        f"{uri}: the account {user} lacks {lacks} on {inode} ({found['owner']} {mode}); grant it, for instance by: "
        f"{granting(inode, grant, user, below=below)}"
    )


def granting(path: str, rights: str, user: str = "", *, below: bool = False) -> str:
    """The command that grants rights on a path of HDFS; users of the source choose names, which a shell must not run.

    Args:
        path: without its store.
        rights: e.g. ``r-x``.
        user: who gets them; the account itself where "".
        below: whether on all that is below it, too.
    """
    return f"hdfs dfs -setfacl {'-R ' if below else ''}-m {quote(f'user:{user or account()}:{rights}')} {quote(path)}"


def _first_line(error: BaseException) -> str:
    return plain(str(error))


def plain(text: str) -> str:
    """The message of a file system in words: the first line of Hadoop's, without names of classes, stack trace and tokens."""
    return without_secrets(_words(text))


def _words(text: str) -> str:
    found = _RPC.search(text)
    if found is None and (nodes := _DATANODE.findall(text)):
        return f"none of the DataNodes that have its blocks answers ({', '.join(map(':'.join, nodes))})"
    if found is None:
        return _line(_FAILED.sub(r"\g<text>", text))
    name = found["kind"].rpartition(".")[2]
    words = next((words for ending, words in _WORDS.items() if name.endswith(ending)), name)
    message = _line(found["text"]).removesuffix('")').replace('\\"', '"').strip()
    return text[: found.start()] + (f"{words} ({message})" if message else words)


def _line(text: str) -> str:
    # Hadoop's messages carry a Java stack trace, with real or escaped line ends.
    return text.split("\n", 1)[0].split("\\n", 1)[0]
