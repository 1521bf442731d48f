"""The Java that Spark's driver runs in."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def has_java() -> bool:
    """Whether this process finds the Java that Spark needs."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home, "bin")) if home else None) is not None
