"""What proves a replica: its store's checksum where that can be reproduced, else CRC32C of every byte (design, section 7).

``copy_file`` compares them.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import cast

import google_crc32c

from hive_replication.storage import FileChecksum, FileStatus

_extend = cast("Callable[[int, bytes], int]", google_crc32c.extend)  # pyright: ignore[reportUnknownMemberType]
_value = cast("Callable[[bytes], int]", google_crc32c.value)  # pyright: ignore[reportUnknownMemberType]
# dfs.bytes-per-checksum: 512 nearly everywhere. Other values are proven by CRC32C, which is right too, only slower.
_BYTES_PER_CRC = 512


@dataclass(slots=True)
class Crc32c:
    """CRC32C and number of the bytes that passed through."""

    crc: int = 0
    size: int = field(default=0, init=False)

    def passing(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The same chunks, counted on their way."""
        for chunk in chunks:
            self.crc = _extend(self.crc, chunk)
            self.size += len(chunk)
            yield chunk

    @classmethod
    def of(cls, chunks: Iterable[bytes]) -> Crc32c:
        """CRC32C of all chunks."""
        crc = cls()
        for _ in crc.passing(chunks):
            pass
        return crc

    @property
    def hex(self) -> str:
        """The value, eight lowercase hex digits."""
        return f"{self.crc:08x}"


def is_composite(checksum: str) -> bool:
    """Whether it is one of ``COMPOSITE_CRC``: the CRC of a whole file's content, four bytes, whatever its blocks are.

    Args:
        checksum: lowercase hex of the bytes of Hadoop's ``getFileChecksum``.
    """
    return len(checksum) == 8


def is_of_one_block(checksum: str) -> bool:
    """Whether it is Hadoop's MD5-of-MD5-of-CRC of a file that one block holds, so that the content alone decides it."""
    return _of_blocks(checksum) and not int(checksum[8:24], 16)


def _of_blocks(checksum: str) -> bool:
    """Whether it is Hadoop's MD5-of-MD5-of-CRC: a dump may have any text in its place, which no file has for a checksum."""
    return re.fullmatch("[0-9a-f]{56}", checksum) is not None


def checksum_of_content(content: bytes, recorded: str) -> FileChecksum | None:
    """The checksum that HDFS gives a file of this content, if that is the recorded one; None where it is another.

    As ``FileChecksumHelper`` of Hadoop makes it: the MD5 of the CRCs of each 512 bytes (``dfs.bytes-per-checksum``) is the
    block's; the file's is the MD5 of a buffer of 32 bytes which begins with that. The kind of CRC is not recorded.

    Args:
        content: of the whole file.
        recorded: of a file of one block (:func:`is_of_one_block`), lowercase hex.
    """
    bytes_per_crc = int(recorded[:8], 16)
    pieces = [content[at : at + bytes_per_crc] for at in range(0, len(content), bytes_per_crc)] if bytes_per_crc else []
    if content and not pieces:
        return None
    for kind, crc in ("CRC32C", _value), ("CRC32", zlib.crc32):
        block = _md5(b"".join(crc(piece).to_bytes(4, "big") for piece in pieces)) if content else b""
        if _md5(block.ljust(32, b"\0")).hex() == recorded[24:]:
            return FileChecksum(f"MD5-of-0MD5-of-{bytes_per_crc}{kind}", recorded)
    return None


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def is_reproducible(recorded: str, file: FileStatus) -> bool:
    """Whether a copy on another HDFS can be expected to have the recorded checksum; decided before copying.

    Hadoop's MD5-of-MD5-of-CRC depends on how a file is cut: its bytes are 4 of bytes per CRC, 8 of CRCs per block (0 where one
    block holds all) and 16 of MD5. So it is the same only for replicated (not erasure-coded) files of equal blocks. A wrong
    yes costs a second copy, a wrong no the reading back of the replica; neither is wrong in what it proves.

    Args:
        recorded: lowercase hex as Hive records it.
        file: what lies where the file is to be read (perhaps another version).
    """
    if not _of_blocks(recorded) or not file.block_size or not file.replication:
        return False
    bytes_per_crc, crcs_per_block = int(recorded[:8], 16), int(recorded[8:24], 16)
    if not file.size:
        return True
    return bytes_per_crc == _BYTES_PER_CRC and crcs_per_block in (0, file.block_size // bytes_per_crc)
