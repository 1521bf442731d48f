"""Files that a component keeps, which other processes may be reading meanwhile."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(place: Path, text: str) -> None:
    """Writes a file so that readers find all of the old text or all of the new one.

    Raises:
        OSError: it cannot be written.
    """
    written = place.with_name(f"{place.name}.{os.getpid()}")
    written.write_text(text, encoding="utf-8")
    written.replace(place)
