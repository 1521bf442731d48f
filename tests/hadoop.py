"""Hadoop's own command line on the embedded servers."""

from __future__ import annotations

import os
import subprocess
from urllib.parse import urlencode

import urllib3

from hive_replication import process
from resources.embedded import jars, java
from resources.embedded.cluster import Side

_MAIN = {
    "crypto": "org.apache.hadoop.hdfs.tools.CryptoAdmin",
    "dfs": "org.apache.hadoop.fs.FsShell",
    "dfsadmin": "org.apache.hadoop.hdfs.tools.DFSAdmin",
    "ec": "org.apache.hadoop.hdfs.tools.ECAdmin",
}


def hdfs(side: Side, command: str, *arguments: str) -> str:
    """Runs a command of ``hdfs`` (:func:`attempted`) on a side's HDFS, as its superuser; answers what it prints."""
    done = attempted(side, command, *arguments, **(side.kdc.hadoop_environment() if side.kdc else {}))
    assert done.returncode == 0, done.stderr
    return done.stdout


def attempted(side: Side, command: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The same, which may fail, by who this process is: how it ended.

    Args:
        side: whose HDFS.
        command: ``dfs``, ``dfsadmin``, ``crypto`` or ``ec``.
        arguments: of the command.
        environment: variables besides those of this process.
    """
    path = os.pathsep.join(map(str, (side.conf, *jars.fetch_groups(["hadoop"])["hadoop"].jars)))
    options = (*java.ADD_OPENS, *java.QUICK, *(side.kdc.java_options if side.kdc else ()))
    words = [str(java.java()), *options, "-cp", path, _MAIN[command], *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, **environment})


def administered(side: Side, directory: str, op: str, **parameters: str) -> None:
    """An administrator's operation by WebHDFS, which takes no second as Hadoop's command line does."""
    query = urlencode({"op": op, "user.name": process.account(), **parameters})
    answer = urllib3.request("PUT", f"{side.webhdfs}/webhdfs/v1{directory}?{query}")
    assert answer.status == 200, answer.data
