"""Apache Thrift's TJSONProtocol text of metastore objects, as event messages and ``_metadata`` hold it.

Written and read here rather than with Apache's Python protocol: that one writes control characters raw (the usual
``field.delim`` of a text table is U+0001), which is no JSON, and reads a character at a time.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any, TypeVar, cast

from thrift.Thrift import TType

from hive_replication.bounded_json import value_of

T = TypeVar("T")

_TAGS = {
    TType.BOOL: "tf",
    TType.BYTE: "i8",
    TType.I16: "i16",
    TType.I32: "i32",
    TType.I64: "i64",
    TType.DOUBLE: "dbl",
    TType.STRING: "str",
    TType.STRUCT: "rec",
    TType.MAP: "map",
    TType.LIST: "lst",
    TType.SET: "set",
}
_BITS = {TType.BYTE: 7, TType.I16: 15, TType.I32: 31}
_BINARY = "BINARY"  # how the generated classes mark a binary field, e.g. bit vectors of column statistics
# Thrift writes a list as the key of a map (skewed locations) as it stands, although JSON allows only strings there.
_LIST_AS_KEY = re.compile(r'([{,])(\["str",\d+(?:,"(?:[^"\\]|\\.)*")*\]):')


def dumps(thrift_object: object) -> str:
    """The object's text, e.g. ``{"1":{"str":"db"}}``; unset fields are left out, non-ASCII text is not escaped."""
    return _write_struct(thrift_object)


def loads(kind: type[T], text: str) -> T:
    """Reads an object of the given class. Fields that the class does not have (a newer Hive's) are skipped.

    ``parameters`` that the text leaves out are an empty dict, as the metastore itself returns them.

    Raises:
        ValueError: the text is not the TJSONProtocol form of such an object.
    """
    try:
        try:
            value = value_of(text)
        except json.JSONDecodeError:
            value = value_of(_LIST_AS_KEY.sub(lambda found: f"{found[1]}{json.dumps(found[2])}:", text))
        return _read_struct(kind, value)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise ValueError(f"not the TJSON form of {kind.__name__}: {error}; it begins with {text[:80]!r}") from error


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _write_struct(value: Any) -> str:
    fields: list[str] = []
    for field in value.thrift_spec:
        content = getattr(value, field[2]) if field else None
        if content is not None:
            fields.append(f'"{field[0]}":{{"{_TAGS[field[1]]}":{_write(field[1], field[3], content)}}}')
    return f"{{{','.join(fields)}}}"


def _write(kind: int, spec: Any, value: Any) -> str:
    if kind == TType.STRING:
        return _text(base64.b64encode(value).decode().rstrip("=") if spec == _BINARY else value)
    if kind == TType.STRUCT:
        return _write_struct(value)
    if kind == TType.MAP:
        key_kind, key_spec, value_kind, value_spec, _ = spec
        entries = ",".join(f"{_write_key(key_kind, key_spec, k)}:{_write(value_kind, value_spec, v)}" for k, v in value.items())
        return f'["{_TAGS[key_kind]}","{_TAGS[value_kind]}",{len(value)},{{{entries}}}]'
    if kind in (TType.LIST, TType.SET):
        items = "".join(f",{_write(spec[0], spec[1], item)}" for item in value)
        return f'["{_TAGS[spec[0]]}",{len(value)}{items}]'
    if kind == TType.DOUBLE:
        return _text(str(value).replace("inf", "Infinity").replace("nan", "NaN")) if value - value != 0 else repr(value)
    return str(int(value))


def _write_key(kind: int, spec: Any, value: Any) -> str:
    text = _write(kind, spec, value)
    return text if kind in (TType.STRING, TType.LIST) else f'"{text}"'


def _read_struct(kind: type[T], fields: dict[str, dict[str, Any]]) -> T:
    made: Any = kind()
    for field in made.thrift_spec:
        if field is None:
            continue
        number, field_kind, name, spec, _ = field
        typed = fields.get(str(number), {})
        _expect(isinstance(typed, dict), f"field {number} has no type")  # pyright: ignore[reportUnnecessaryIsInstance]
        if _TAGS[field_kind] in typed:
            setattr(made, name, _read(field_kind, spec, typed[_TAGS[field_kind]]))
        elif name == "parameters":
            made.parameters = {}
    return cast("T", made)


def _read(kind: int, spec: Any, value: Any) -> Any:
    return _READERS.get(kind, _read_number)(kind, spec, value)


def _read_string(_kind: int, spec: Any, value: Any) -> str | bytes:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a string")  # noqa: TRY004 - the text is at fault, not the caller
    return base64.b64decode(value + "=" * (-len(value) % 4), validate=True) if spec == _BINARY else value


def _read_number(kind: int, _spec: Any, value: Any) -> int | float | bool:
    if kind == TType.DOUBLE:
        return float(value)
    _expect(not isinstance(value, float), f"{value!r} is no whole number")
    number, bits = int(value), _BITS.get(kind, 63)
    _expect(-(1 << bits) <= number < 1 << bits, f"a number has more than {bits + 1} bits")
    return bool(number) if kind == TType.BOOL else number


def _read_map(_kind: int, spec: Any, value: list[Any]) -> dict[Any, Any]:
    key_kind, key_spec, value_kind, value_spec, _ = spec
    key_tag, value_tag, size, entries = value
    _expect(size == len(entries), f"a map of {size} entries has {len(entries)}")
    _expect(size == 0 or (key_tag, value_tag) == (_TAGS[key_kind], _TAGS[value_kind]), f"a map of {key_tag} to {value_tag}")
    return {_read_key(key_kind, key_spec, k): _read(value_kind, value_spec, v) for k, v in entries.items()}


def _read_key(kind: int, spec: Any, key: str) -> Any:
    return tuple(_read(kind, spec, value_of(key))) if kind == TType.LIST else _read(kind, spec, key)


def _read_list(_kind: int, spec: Any, value: list[Any]) -> list[Any]:
    tag, size, *items = value
    _expect(size == len(items), f"a list of {size} items has {len(items)}")
    _expect(size == 0 or tag == _TAGS[spec[0]], f"a list of {tag}")
    return [_read(spec[0], spec[1], item) for item in items]


def _read_set(kind: int, spec: Any, value: list[Any]) -> set[Any]:
    return set(_read_list(kind, spec, value))


def _read_record(_kind: int, spec: Any, value: dict[str, dict[str, Any]]) -> Any:
    return _read_struct(spec[0], value)


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


_READERS: dict[int, Callable[[int, Any, Any], Any]] = {
    TType.STRING: _read_string,
    TType.STRUCT: _read_record,
    TType.MAP: _read_map,
    TType.LIST: _read_list,
    TType.SET: _read_set,
}
