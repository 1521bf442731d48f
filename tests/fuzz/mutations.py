"""Changes of bytes and of JSON: small ones that damage brings, and large ones that only somebody makes on purpose."""

from __future__ import annotations

import json
import random
from typing import Any

NUMBERS = [0, -1, 1, 2**31, 2**63 - 1, 2**63, 10**30, 1500.0, 1e300, -0.0, True, False, None]
TEXTS = ["", " ", "a/b", "..", "../..", "%", "%2F", "\n", "\x00", "ü", "😀", "default", "²", "9" * 30, "p=1", "=", "#", "'", '"']
TEXTS += ["hdfs://", "hdfs://elsewhere:1/x", "file:///etc/passwd", "{}", "[]", "null", "x" * 5_000, "\ud800", "NaN", "1e999"]
TEXTS += [".repl", "_functions", "_metadata"]
RAW = [b"1e999", b"NaN", b"Infinity", b"-Infinity", b'"\\ud800"', b"null", b"{}", b"\xff"]
RAW += [b"[" * 3_000, b"9" * 6_000, b'{"a":' * 3_000]


def mutated(chance: random.Random, data: bytes) -> bytes:
    """Some bytes with one to three changes."""
    for _ in range(chance.choice((1, 1, 2, 3))):
        data = chance.choice((_flip, _flip, _cut, _double, _insert, _json, _json, _json, _json, _raw))(chance, data)
    return data


def _flip(chance: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    if changed:
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _cut(chance: random.Random, data: bytes) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _double(chance: random.Random, data: bytes) -> bytes:
    start = chance.randrange(len(data) + 1)
    end = min(len(data), start + chance.randrange(200))
    return data[:end] + data[start:]


def _insert(chance: random.Random, data: bytes) -> bytes:
    place = chance.randrange(len(data) + 1)
    return data[:place] + chance.randbytes(chance.choice((1, 2, 4, 30))) + data[place:]


def _raw(chance: random.Random, data: bytes) -> bytes:
    """A value of the text is replaced by something that is none."""
    places = [n for n, byte in enumerate(data) if byte in b":,["]
    if not places:
        return chance.choice(RAW)
    start = chance.choice(places) + 1
    ends = [n for n in range(start, min(len(data), start + 300)) if data[n] in b",]}"]
    return data[:start] + chance.choice(RAW) + data[ends[0] if ends else start :]


def _json(chance: random.Random, data: bytes) -> bytes:
    """One value of the text is another one."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return _flip(chance, data)
    changed = changed_value(chance, value)
    return json.dumps(changed, ensure_ascii=chance.random() < 0.5).encode(errors="surrogatepass")


def changed_value(chance: random.Random, value: Any) -> Any:
    """A JSON value in which one value, however deep, is replaced, left out, doubled or exchanged; also in texts that are JSON."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        what = chance.random()
        if what < 0.08:
            return {name: one for name, one in value.items() if name != key}
        if what < 0.14:
            return {(str(_nasty(chance)) if name == key else name): one for name, one in value.items()}
        return value | {key: changed_value(chance, value[key])}
    if isinstance(value, list) and value and chance.random() < 0.85:
        number = chance.randrange(len(value))
        what = chance.random()
        if what < 0.1:
            return value[:number] + value[number + 1 :]
        if what < 0.2:
            return [*value, value[number]]
        return [*value[:number], changed_value(chance, value[number]), *value[number + 1 :]]
    if isinstance(value, str) and value[:1] in ("{", "[") and chance.random() < 0.85:
        try:
            return json.dumps(changed_value(chance, json.loads(value)), ensure_ascii=False)
        except (ValueError, RecursionError):
            return value[: chance.randrange(len(value))]
    return _nasty(chance)


def _nasty(chance: random.Random) -> Any:
    what = chance.random()
    if what < 0.4:
        return chance.choice(NUMBERS)
    if what < 0.9:
        return chance.choice(TEXTS)
    return chance.choice(([], {}, [[]], [None], {"": None}, [1, "a"], {"str": 1}))
