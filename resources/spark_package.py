"""This package for Spark executors: a zip that each driver makes of its own code, so that both always run the same version."""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import hive_replication

if TYPE_CHECKING:
    from pyspark import SparkContext

_shipped: weakref.WeakSet[SparkContext] = weakref.WeakSet()
_lock = threading.Lock()  # Spark refuses a second file of the same name, and several tables begin at once


def ship(context: SparkContext) -> None:
    """Gives executors on other machines the package, once; local ones run the driver's.

    It comes before an installed one on their path. Its dependencies have to be there: see docs/spark.md.
    """
    if str(context.master).startswith("local"):
        return
    with _lock:
        if context in _shipped:
            return
        folder = tempfile.mkdtemp(prefix="hive-replication-")
        weakref.finalize(context, shutil.rmtree, folder, ignore_errors=True)  # executors fetch it as long as the context lives
        context.addPyFile(str(_package(Path(folder, "hive_replication.zip"))))
        _shipped.add(context)


def _package(to: Path) -> Path:
    package = Path(hive_replication.__file__).parent
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
        for module in sorted(package.rglob("*.py")):
            archive.write(module, module.relative_to(package.parent))
    return to
