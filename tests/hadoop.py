"""Hadoop's own command line on the embedded servers."""

from __future__ import annotations

import subprocess

from resources.embedded import jars, java
from resources.embedded.cluster import Side

_MAIN = {"dfs": "org.apache.hadoop.fs.FsShell", "dfsadmin": "org.apache.hadoop.hdfs.tools.DFSAdmin"}


def hdfs(side: Side, command: str, *arguments: str) -> None:
    """Runs ``hdfs dfs`` or ``hdfs dfsadmin`` on a side's HDFS, as its superuser."""
    path = ":".join(map(str, (side.conf, *jars.fetch_groups(["hadoop"])["hadoop"].jars)))
    words = [str(java.java()), *java.ADD_OPENS, "-cp", path, _MAIN[command], *arguments]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
