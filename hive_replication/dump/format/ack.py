"""The ack file of a dump: the numbers of its records, and the digest of everything in it. It is written last."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hive_replication.bounded_json import parsed
from hive_replication.dump.format.digests import MOST, FileDigest
from hive_replication.errors import BadRequest, Refused
from hive_replication.signing import SigningKey
from hive_replication.storage import Storage, TooLarge

ACK = "_finished_dump"
#: Names of the Parquet files of a packed dump, as a regular expression.
PART = r"part-[0-9]{5,9}\.parquet"
_PURPOSE = "dump"

Count = Annotated[int, Field(ge=0, le=2**40)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class PartAck(_Strict):
    """What the ack file says of one Parquet file.

    Args:
        rows: number of records.
        kinds: of the records.
        tables: whose partitions it has.
    """

    rows: Count
    kinds: list[str]
    tables: list[str]


class Ack(_Strict):
    """The content of an ack file.

    Args:
        tables, partitions, events, functions: numbers of records.
        parts: of a packed dump, its Parquet files by name; None of any other.
        files: size and SHA-256 of every other file by its path below the dump's directory; None of dumps of earlier versions.
        digest: SHA-256 over all of the above.
        signature: by the policy's key, over the digest; None where the policy that wrote it has none.
    """

    tables: Count
    partitions: Count
    events: Count
    functions: Count = 0
    parts: dict[Annotated[str, Field(pattern=f"^{PART}$")], PartAck] | None = None
    files: dict[str, Annotated[list[Any], Field(min_length=2, max_length=2)]] | None = None
    digest: Sha256 | None = None
    signature: Sha256 | None = None

    @property
    def digests(self) -> dict[str, FileDigest] | None:
        """Digests of all files but the ack file; None where it has none."""
        if self.files is None:
            return None
        return {path: FileDigest(*pair) for path, pair in self.files.items()}

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of records by kind."""
        return {"table": self.tables, "partition": self.partitions, "event": self.events, "function": self.functions}


def ack_text(
    counts: Mapping[str, int], files: Mapping[str, FileDigest], more: Mapping[str, object], directory: str, key: SigningKey | None
) -> bytes:
    """The content of an ack file.

    Args:
        counts: numbers of records.
        files: digests of all files.
        more: what the format adds.
        directory: of the dump: a signed one is of no use under another database.
        key: signs it.
    """
    value: dict[str, Any] = {**counts, **more, "files": {path: [one.size, one.sha256] for path, one in sorted(files.items())}}
    value["digest"] = _digest(value)
    if key is not None:
        value["signature"] = key.sign(_PURPOSE, _signed(value["digest"], directory))
    return json.dumps(value).encode()


def read_ack(storage: Storage, directory: str, key: SigningKey | None) -> Ack:
    """Reads and checks the ack file of a dump.

    Raises:
        BadRequest: there is no dump, or it has no ack file, or that is unreadable or damaged.
        Refused: the policy has a key, and the dump is not signed by it.
    """
    there = storage.status(directory)
    if there is None:
        raise BadRequest(f"there is no dump at {directory}")
    if not there.is_dir:
        raise BadRequest(f"{directory} is a file, and a dump is a directory")
    try:
        value = parsed(storage.read(f"{directory}/{ACK}", most=MOST[ACK]), most=MOST[ACK])
        ack = Ack.model_validate(value)
        if ack.files is not None:
            _check_files(ack.files)
        if (ack.files is None) is not (ack.digest is None) or (ack.digest is not None and ack.digest != _digest(value)):
            raise ValueError(f"{ACK} is not what was written: its SHA-256 differs")  # noqa: TRY301
    except FileNotFoundError as error:
        raise BadRequest(
            _not_ours(storage, directory) or f"the dump {directory} is incomplete (it has no {ACK}): dump again"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise BadRequest(f"the dump {directory} is unreadable: {ACK}: {place}: {first['msg']}; dump again") from error
    except ValueError as error:
        raise BadRequest(_not_ours(storage, directory) or f"the dump {directory} is unreadable: {error}; dump again") from error
    if key is not None and not key.verifies(_PURPOSE, _signed(ack.digest or "", directory), ack.signature or ""):
        raise Refused(
            f"the dump {directory} is not signed by the signing_key of the policy: dump again, or find out who wrote there"
        )
    return ack


def is_of_hive(storage: Storage, directory: str) -> bool:
    """Whether a directory is a dump of Hive's own REPL DUMP: its ``_dumpmetadata`` is a line with tabs, and not JSON.

    Hive 3 has it there, Hive 4 in ``hive``.
    """
    for place in (directory, f"{directory}/hive"):
        with suppress(FileNotFoundError, NotADirectoryError, TooLarge):
            first = storage.read(f"{place}/_dumpmetadata", most=MOST["_dumpmetadata"]).partition(b"\n")[0]
            if first.count(b"\t") >= 4:
                return True
    return False


def _not_ours(storage: Storage, directory: str) -> str:
    if not is_of_hive(storage, directory):
        return ""
    return f"{directory} is a dump of Hive's own REPL DUMP, which cannot be loaded here: dump with hive-repl REPL DUMP"


def _check_files(files: Mapping[str, list[Any]]) -> None:
    for path, (size, sha256) in files.items():
        if type(size) is not int or size < 0 or type(sha256) is not str or len(sha256) != 64:
            raise ValueError(f"{ACK} has no size and SHA-256 of {path}")


def _digest(value: Mapping[str, Any]) -> str:
    """Over all but itself and the signature, in one spelling."""
    plain = {name: one for name, one in value.items() if name not in ("digest", "signature")}
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _signed(digest: str, directory: str) -> bytes:
    """A dump's own directory is signed with it: `<database>/<time>-<token>`, wherever the dump root lies."""
    return f"{digest} {'/'.join(directory.rstrip('/').rsplit('/', 2)[1:])}".encode()
