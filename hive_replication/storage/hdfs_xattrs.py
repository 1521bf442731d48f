"""Extended attributes of files and directories of HDFS, by WebHDFS: ``hdfs-native`` has no calls for them."""

from __future__ import annotations

from collections.abc import Mapping

from hive_replication.bounded_json import parsed
from hive_replication.errors import ReplicationError
from hive_replication.storage.webhdfs import WebHdfs

#: Namespaces that are for those who use HDFS: all of them the first, superusers the second.
_NAMESPACES = ("user.", "trusted.")
# Change management writes them to files in cmroot (ReplChangeManager): where a file was, and whether a trash keeps it.
_OF_CMROOT = frozenset({"user.original-loc", "user.remain-in-trash"})


def read_xattrs(web: WebHdfs, path: str) -> Mapping[str, str]:
    """Values by names, in hex as HDFS writes them (``0x61``); without those that HDFS and Hive have for themselves.

    Raises:
        FileNotFoundError: there is no such path.
        PermissionError: the account may not read them.
        ReplicationError: this HDFS has none (``dfs.namenode.xattrs.enabled``), or does not tell; OSErrors likewise.
    """
    op = "GETXATTRS"
    body = web.told(path, op, {"encoding": "hex"})
    try:
        found = {str(one["name"]): str(one.get("value") or "0x") for one in parsed(body)["XAttrs"]}
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ReplicationError(f"{op} of {path} is answered without {error}") from error
    return {name: value for name, value in found.items() if name.startswith(_NAMESPACES) and name not in _OF_CMROOT}


def set_xattrs(web: WebHdfs, path: str, values: Mapping[str, str]) -> bool:
    """Sets values, as :func:`read_xattrs` answers them; others stay. True.

    Raises:
        PermissionError: the account may not.
        ReplicationError: this HDFS has none, or not so many; OSErrors likewise.
    """
    for name, value in values.items():
        web.told(path, "SETXATTR", {"xattr.name": name, "xattr.value": value, "flag": "CREATE,REPLACE"}, method="PUT")
    return True
