"""Files that hold one secret: read up to one bound, since a policy may name any file (``/dev/zero`` has no end)."""

from __future__ import annotations

from pathlib import Path

_LIMIT = 64 * 1024  # bytes


def secret_of(path: str) -> bytes:
    """The bytes of a file with a secret.

    Raises:
        OSError: it cannot be read, or is larger than any secret; ``strerror`` says which.
    """
    with Path(path).open("rb") as file:
        secret = file.read(_LIMIT + 1)
    if len(secret) > _LIMIT:  # a part of it would be another secret
        raise OSError(None, f"it has more than {_LIMIT:,} bytes, so name the file that holds the secret alone")
    return secret
