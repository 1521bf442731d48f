"""The file of this process's delegation tokens, in the format of Hadoop's ``Credentials``, where ``hdfs-native`` reads them.

For each new connection ``hdfs-native`` reads the file that ``HADOOP_TOKEN_FILE_LOCATION`` names, and looks for the token of that
NameNode. The file lies in memory: it goes with the process, however that ends.
"""

from __future__ import annotations

import base64
import os
import threading

from hive_replication.errors import ReplicationError

_VARIABLE = "HADOOP_TOKEN_FILE_LOCATION"
_KIND = b"HDFS_DELEGATION_TOKEN"


class TokenFile:
    """Tokens by the services that take them."""

    def __init__(self) -> None:
        self._tokens: dict[str, str] = {}
        self._file = -1
        self._process = 0
        self._lock = threading.Lock()

    def put(self, service: str, token: str) -> None:
        """Puts the token of a service in place of the one before.

        Args:
            service: as ``hdfs-native`` looks for it: ``host:port`` of the NameNode, or ``ha-hdfs:nameservice``.
            token: as WebHDFS writes it.

        Raises:
            ReplicationError: it is none.
        """
        with self._lock:
            self._tokens[service] = token
            new = os.memfd_create("tokens")
            os.write(new, encoded(self._tokens))
            if self._process == os.getpid():
                os.dup2(new, self._file, inheritable=False)  # at once: a reader finds the tokens before or after
                os.close(new)
            else:  # the first one, or in a child that has its parent's
                self._file, self._process = new, os.getpid()
                os.environ[_VARIABLE] = f"/proc/{self._process}/fd/{new}"


FILE = TokenFile()


def encoded(tokens: dict[str, str]) -> bytes:
    """The content of a file of tokens (``Credentials.writeTokenStorageToStream``, format 0).

    Raises:
        ReplicationError: one is no token.
    """
    entries: list[bytes] = []
    for service, token in tokens.items():
        identifier, password = _parts(token)
        name = service.encode()
        entries += [_field(one) for one in (name, identifier, password, _KIND, name)]
    return b"HDTS\0" + _vint(len(tokens)) + b"".join(entries) + _vint(0)


def times(token: str) -> tuple[float, float]:
    """When a token was issued, and when it ends whether it is renewed or not; in seconds since 1970.

    Raises:
        ReplicationError: it is no token.
    """
    try:
        rest = _parts(token)[0][1:]  # after the version: owner, renewer, real user (AbstractDelegationTokenIdentifier)
        for _ in range(3):
            rest = _first(rest)[1]
        issued, rest = _number(rest)
        return issued / 1000, _number(rest)[0] / 1000
    except (ValueError, IndexError) as error:
        raise _no_token() from error


def _parts(token: str) -> tuple[bytes, bytes]:
    """Identifier and password."""
    try:
        identifier, rest = _first(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return identifier, _first(rest)[0]
    except (ValueError, IndexError) as error:
        raise _no_token() from error


def _no_token() -> ReplicationError:
    return ReplicationError("what WebHDFS gave out is no delegation token: set webhdfs in the policy to the NameNode's address")


def _first(data: bytes) -> tuple[bytes, bytes]:
    """The first field of some, and what follows it."""
    size, rest = _number(data)
    if size > len(rest):
        raise ValueError(size)
    return rest[:size], rest[size:]


def _number(data: bytes) -> tuple[int, bytes]:
    """A number that is not negative, as ``WritableUtils.writeVLong`` writes it, and what follows."""
    if data[0] <= 127:
        return data[0], data[1:]
    digits = 256 - 112 - data[0]
    if not 0 < digits < len(data):
        raise ValueError(digits)
    return int.from_bytes(data[1 : 1 + digits]), data[1 + digits :]


def _field(data: bytes) -> bytes:
    return _vint(len(data)) + data


def _vint(number: int) -> bytes:
    if number <= 127:
        return bytes([number])
    digits = number.to_bytes((number.bit_length() + 7) // 8)
    return bytes([256 - 112 - len(digits)]) + digits
