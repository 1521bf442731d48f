"""Signatures by a key that only the instances of a policy have, over what lies where others may write."""

from __future__ import annotations

import hashlib
import hmac
import os

from hive_replication.errors import BadRequest
from hive_replication.secret_file import secret_of

_LEAST = 16


class SigningKey:
    """A secret key. Its text shows nothing of it.

    Args:
        secret: its bytes.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def sign(self, purpose: str, data: bytes) -> str:
        """The signature of some bytes as hex (HMAC-SHA-256).

        Args:
            purpose: what they are, so that the signature of one kind of thing is none of another's.
            data: the bytes.
        """
        return hmac.new(self._secret, f"{purpose}\0".encode() + data, hashlib.sha256).hexdigest()

    def verifies(self, purpose: str, data: bytes, signature: str) -> bool:
        """Whether a signature is the one of some bytes."""
        return hmac.compare_digest(self.sign(purpose, data).encode(), signature.encode(errors="replace"))

    def __repr__(self) -> str:
        return "SigningKey(...)"


def signing_key(reference: str | None) -> SigningKey | None:
    """The key that a policy refers to; None where it refers to none.

    Args:
        reference: ``${env:NAME}`` or ``${file:/path}``; read in the process that signs or verifies.

    Raises:
        BadRequest: there is no key, or it is short.
    """
    if reference is None:
        return None
    kind, _, name = reference.removeprefix("${").removesuffix("}").partition(":")
    if kind == "env":
        secret = os.environ.get(name, "").encode(errors="surrogateescape")
        if not secret:
            raise BadRequest(f"the environment has no {name}, which the policy names as its signing_key: set it")
    else:
        try:
            secret = secret_of(name).strip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise BadRequest(f"the signing_key of the policy cannot be read from {name!r}: {reason}") from error
    if len(secret) < _LEAST:
        raise BadRequest(f"the signing_key of the policy ({reference}) is shorter than {_LEAST} characters: make a longer one")
    return SigningKey(secret)
