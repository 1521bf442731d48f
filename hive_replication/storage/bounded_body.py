"""Bodies of HTTP answers, bounded: whoever answers is not believed to stop."""

from __future__ import annotations

import urllib3


class TooLong(Exception):
    """An answer is longer than any that makes sense."""


def body_of(response: urllib3.BaseHTTPResponse, most: int) -> bytes:
    """The body of an answer, its connection given back.

    Args:
        response: made with ``preload_content=False``.
        most: bytes, after decompression.

    Raises:
        TooLong: it is longer.
    """
    pieces: list[bytes] = []
    size = 0
    try:
        for piece in response.stream(1 << 16):
            size += len(piece)
            if size > most:
                response.close()
                raise TooLong(f"the answer is longer than {most} bytes")
            pieces.append(piece)
    finally:
        response.release_conn()
    return b"".join(pieces)
