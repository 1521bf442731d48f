"""Compiles the small Java programs of this package, so that a Java without compiler will do."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from resources.embedded import jars, java, processes


def compiled(source: Path, class_path: Sequence[Path] = ()) -> Path:
    """Folder of the classes of a program, compiled once per user.

    Args:
        source: the program.
        class_path: what it uses besides the JDK.
    """
    folder = jars.cache_home() / f"{source.stem}-{jars.sha256(source)[:12]}"
    if not folder.is_dir():
        (compiler,) = jars.fetch_groups(["compiler"])["compiler"].jars
        with jars.staging(folder) as scratch, tempfile.TemporaryDirectory() as logs:
            used = ["-cp", os.pathsep.join(map(str, class_path))] if class_path else []
            command = [str(java.java()), "-jar", str(compiler), "-17", *used, "-d", str(scratch), str(source)]
            processes.run_once(command, Path(logs), {}, "compiler.log")
    return folder
