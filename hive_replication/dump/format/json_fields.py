"""The fields of the JSON texts of a dump, with their types and limits: a text that has others is refused as a whole.

A dump is untrusted: each field is checked before anything uses it. Fields that are not known are passed over, as those of later
versions.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hive_replication.bounded_json import parsed
from hive_replication.dump.format.digests import MOST

#: Version of the layout; a reader refuses a greater one.
VERSION = "1"
#: Event ids and times are Java longs, and never below 0.
Evid = Annotated[int, Field(ge=0, le=2**63 - 1)]
Count = Annotated[int, Field(ge=0, le=10_000_000)]

Text = TypeVar("Text", bound=BaseModel)


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class ScopeText(_Wire):
    """``scope`` of a header."""

    database: str
    table: str | None
    partitions: list[str] | None


class HeaderText(_Wire):
    """``_dumpmetadata``."""

    kind: Literal["bootstrap", "incremental"]
    scope: ScopeText
    source: str
    db: str
    from_evid: Evid
    to_evid: Evid
    to_time: Evid
    to_hash: str
    created: Annotated[float, Field(ge=0, lt=1e13, allow_inf_nan=False)]
    skipped: dict[str, str]
    # Dumps of earlier versions do not have what follows.
    from_hash: str = ""
    equal: list[str] = []
    recovery: str = ""
    metadata_only: bool = False
    acid: bool = False
    taken: str = ""
    before: str = ""
    read: list[str] | None = None
    joined: dict[str, str] = {}
    filters: list[Annotated[tuple[str, str], Field(strict=False)]] = []
    unshown: dict[str, str] = {}
    digests: Literal["sha256"] | None = None
    policy: str = ""
    target: str = ""


class ObjectText(_Wire):
    """``_metadata`` of a table, partition or function; one of the first three is there."""

    table: str = ""
    partition: str = ""
    function: str = ""
    files: Count
    constraints: dict[str, list[str]] = {}
    write_ids: str | None = None


class GroupText(_Wire):
    """An element of an event's ``groups``."""

    partition: str
    files: Count
    listed: bool
    table: str = ""


class EventText(_Wire):
    """``_metadata`` of an event."""

    version: str
    evid: Evid
    time: Evid
    type: str
    database: str
    table: str
    message: str
    catalog: str = ""
    groups: list[GroupText]
    hash: str = ""
    writes: list[Annotated[tuple[str, str, Evid, bool], Field(strict=False)]] = []
    redump: str = ""
    shared: str = ""


def fields(data: bytes, *versions: str, most: int = MOST["_metadata"]) -> dict[str, Any]:
    """Reads a JSON object of a version.

    Args:
        data: the text.
        versions: that are accepted; only the first one where none is named.
        most: bytes that it may have.

    Raises:
        ValueError: not JSON, or of another version.
    """
    value = parsed(data, most=most)
    known = versions or (VERSION,)
    if not isinstance(value, dict) or value.get("version") not in known:  # pyright: ignore[reportUnknownMemberType]
        raise ValueError(f"written by another version than {' and '.join(known)}")
    return value  # pyright: ignore[reportUnknownVariableType]


def read(kind: type[Text], data: bytes, *versions: str, most: int = MOST["_metadata"]) -> Text:
    """Reads a text with its fields; arguments as :func:`fields`.

    Raises:
        ValueError: not JSON, of another version, or a field is none of its kind.
    """
    return checked(kind, fields(data, *versions, most=most))


def checked(kind: type[Text], value: object) -> Text:
    """The typed form of a value.

    Raises:
        ValueError: a field is none of its kind.
    """
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}") from None
