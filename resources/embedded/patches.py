"""What Hive needs as an embedded server: a few constants of its class files replaced, and a few instructions.

None of it changes what Hive does. 3.1.3 and 2.3.10 run on Java 17 instead of 8, and listen on the loopback interface, for which
their metastores have no setting. 4.0.1 has the notification listener of 4.2.0, since its own is not on Maven Central.
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
        load: a string constant to add, the instructions that are replaced, and what follows ``ldc_w`` of that constant (hex).
        code: pairs of old and new instructions, of one length (hex).
    """

    jar: str
    name: str
    texts: tuple[tuple[str, str], ...] = ()
    load: tuple[str, str, str] | None = None
    code: tuple[tuple[str, str], ...] = ()


# getServerSocket(host, port) listens on all interfaces where host is null, as the metastore calls it; here on 127.0.0.1.
_LOOPBACK = ("127.0.0.1", "4b" + 19 * "00")
_EVENTS, _MESSAGES = "org/apache/hadoop/hive/metastore/events", "org/apache/hadoop/hive/metastore/messaging"
_LONG, _LIST = "Ljava/lang/Long;", "Ljava/util/List;"
_ALTERED = f"(Lorg/apache/hadoop/hive/metastore/api/Table;{_LIST}Z{_LONG})L{_MESSAGES}"


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
        "org.apache.hadoop.hive.metastore.utils.SecurityUtils",
        load=(_LOOPBACK[0], "2ac6000a2ab6003299000fbb0033591bb700344da7000d", _LOOPBACK[1]),
    ),
)

HIVE2 = (
    Patch(
        "hive-exec",
        "org.apache.hadoop.hive.common.auth.HiveAuthUtils",
        load=(_LOOPBACK[0], "2ac6000a2ab6007d99000fbb007f591bb700814da7000d", _LOOPBACK[1]),
    ),
)

# 4.0.1 knows no event of several altered partitions, so the listener names that of one, which nobody calls. The end of a
# transaction has no write ids there, and a commit no databases: neither is asked for, nor given to the message.
HIVE40 = (
    Patch(
        "hive-hcatalog-server-extensions",
        "org.apache.hive.hcatalog.listener.DbNotificationListener",
        (
            (f"{_EVENTS}/AlterPartitionsEvent", f"{_EVENTS}/AlterPartitionEvent"),
            (f"(L{_EVENTS}/AlterPartitionsEvent;)V", f"(L{_EVENTS}/AlterPartitionEvent;)V"),
            (f"{_MESSAGES}/AlterPartitionsMessage", f"{_MESSAGES}/AlterPartitionMessage"),
            (f"{_ALTERED}/AlterPartitionsMessage;", f"{_ALTERED}/AlterPartitionMessage;"),
            (f"({_LONG}{_LIST}{_LIST})L{_MESSAGES}/CommitTxnMessage;", f"({_LONG})L{_MESSAGES}/CommitTxnMessage;"),
            (f"({_LONG}{_LIST}{_LIST})L{_MESSAGES}/AbortTxnMessage;", f"({_LONG}{_LIST})L{_MESSAGES}/AbortTxnMessage;"),
        ),
        code=(("2bb6021d", "00000000"), ("2bb60220", "00000000"), ("2bb60230", "00000000")),
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
    for before, after in patch.code:
        code = _replaced(code, bytes.fromhex(before), bytes.fromhex(after), where=f"{patch.name} of {jar}")
    if patch.load:
        code = _loading(code, *patch.load, where=f"{patch.name} of {jar}")
    (folder / entry).parent.mkdir(parents=True, exist_ok=True)
    (folder / entry).write_bytes(code)


def _loading(code: bytes, text: str, old: str, new: str, where: str) -> bytes:
    """A class that loads a further string constant in the place of some instructions."""
    (count,), end = struct.unpack(">H", code[8:10]), _end_of_constants(code)
    before, after = bytes.fromhex(old), b"\x13" + struct.pack(">H", count + 1) + bytes.fromhex(new)  # ldc_w
    added = _constant(text) + struct.pack(">BH", 8, count)  # CONSTANT_Utf8_info, and the CONSTANT_String_info that names it
    return code[:8] + struct.pack(">H", count + 2) + code[10:end] + added + _replaced(code[end:], before, after, where)


def _replaced(code: bytes, before: bytes, after: bytes, where: str) -> bytes:
    """Code with other instructions in the place of some, which it has once."""
    if code.count(before) != 1 or len(before) != len(after):
        raise ValueError(f"{where} does not have the instructions {before.hex()} once")
    return code.replace(before, after)


_SIZES = {3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 9: 5, 10: 5, 11: 5, 12: 5, 15: 4, 16: 3, 18: 5}  # bytes, by tag


def _end_of_constants(code: bytes) -> int:
    (count,), at, number = struct.unpack(">H", code[8:10]), 10, 1
    while number < count:
        tag = code[at]
        number += 2 if tag in (5, 6) else 1  # long and double take two indices
        at += 3 + struct.unpack(">H", code[at + 1 : at + 3])[0] if tag == 1 else _SIZES[tag]
    return at


def _constant(text: str) -> bytes:
    """A CONSTANT_Utf8_info (Java virtual machine specification, 4.4.7); nothing in a class file refers to its offset."""
    encoded = text.encode("ascii")
    return struct.pack(">BH", 1, len(encoded)) + encoded
