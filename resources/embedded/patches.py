"""Two defects of Hive 3.1.3 mended for the embedded servers: string constants of its class files, replaced.

Both are errors of where it runs, not of what it does: Java 17 instead of 8, and Derby instead of a database that can lock a
row. What is mended acts as Hive 3.1.3 does on the servers it was made for.
"""

from __future__ import annotations

import hashlib
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from resources.embedded import jars


@dataclass(frozen=True, slots=True)
class Patch:
    """String constants of one class to replace.

    Args:
        jar: how the file name of its jar starts.
        name: name of the class.
        texts: pairs of old and new constant, ASCII.
    """

    jar: str
    name: str
    texts: tuple[tuple[str, str], ...]


def _locking(select: str) -> tuple[str, str]:
    """A SELECT on Derby, and the same with a lock held until the end of the transaction (isolation level RS).

    Derby by itself releases the lock of a SELECT at once, so Hive leaves out FOR UPDATE there
    (``SQLGenerator.addForUpdateClause``), and two writers at a time get the same event id.
    """
    return select, f"{select} for update with rs"


_NEXT_KEY = (
    'select "NEXT_VAL" from "SEQUENCE_TABLE" where "SEQUENCE_NAME" =  \'org.apache.hadoop.hive.metastore.model.MNotificationLog\''
)
HIVE3 = (
    # HIVE-22097: ArrayList.SubList has other fields since Java 9; without this no expression of partitions, such as that of
    # ALTER TABLE DROP PARTITION, gets from the driver to the metastore.
    Patch(
        "hive-exec",
        "org.apache.hadoop.hive.ql.exec.SerializationUtilities$ArrayListSubListSerializer",
        (("parent", "root"), ("parentOffset", "offset")),
    ),
    Patch(
        "hive-standalone-metastore",
        "org.apache.hadoop.hive.metastore.ObjectStore",
        (_locking('select "NEXT_EVENT_ID" from "NOTIFICATION_SEQUENCE"'),),
    ),
    Patch(
        "hive-hcatalog-server-extensions",
        "org.apache.hive.hcatalog.listener.DbNotificationListener",
        (
            _locking('select "NEXT_EVENT_ID"  from "NOTIFICATION_SEQUENCE"'),
            _locking(_NEXT_KEY),
        ),
    ),
)


def patched(path: Sequence[Path], patches: Sequence[Patch] = HIVE3) -> Path:
    """Makes the patched classes of a class path, once, and keeps them.

    Args:
        path: jars; the first whose name fits gives the class.
        patches: those without a jar here are left out.

    Returns:
        A folder that goes before the jars.

    Raises:
        ValueError: a class does not have a constant that is to be replaced.
    """
    found = [(patch, jar) for patch in patches if (jar := next((jar for jar in path if jar.name.startswith(patch.jar)), None))]
    key = hashlib.sha256(repr([(patch, jar.name) for patch, jar in found]).encode()).hexdigest()
    folder = jars.cache_home() / f"patched-{key[:12]}"
    if not folder.is_dir():
        with jars.staging(folder) as scratch:
            for patch, jar in found:
                _write(patch, jar, scratch)
    return folder


def _write(patch: Patch, jar: Path, folder: Path) -> None:
    entry = patch.name.replace(".", "/") + ".class"
    with zipfile.ZipFile(jar) as archive:
        code = archive.read(entry)
    for old, new in patch.texts:
        if code.count(_constant(old)) != 1:
            raise ValueError(f"{patch.name} of {jar} has not one constant {old!r}")
        code = code.replace(_constant(old), _constant(new))
    (folder / entry).parent.mkdir(parents=True, exist_ok=True)
    (folder / entry).write_bytes(code)


def _constant(text: str) -> bytes:
    """A CONSTANT_Utf8_info (Java virtual machine specification, 4.4.7); nothing in a class file refers to its offset."""
    encoded = text.encode("ascii")
    return struct.pack(">BH", 1, len(encoded)) + encoded
