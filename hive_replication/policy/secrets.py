"""Secrets of a policy: it holds references to them, ``${env:NAME}`` or ``${file:/path}``, and never themselves.

A policy is stored and shown: in Dagster's run database, snapshots and web pages, and by ``hive-repl policy check``. So the
process that uses a secret reads it, when it uses it, from its own environment or from a file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

from hive_replication.errors import BadRequest
from hive_replication.policy.wrong_setting import WrongSetting
from hive_replication.secret_file import secret_of

_REFERENCE = re.compile(r"\$\{(env|file):([^${}]+)\}")
_BEGINNING = re.compile(r"\$\{(env|file):")
_WITH_REFERENCES = frozenset({"options", "spark", "signing_key", "key_password"})  # settings in which they are read
#: References to a key.
KEY = r"^(\$\{env:[A-Za-z_][A-Za-z0-9_]*\}|\$\{file:/[^${}]+\})$"
# What Hadoop, Spark and fsspec call their secrets; not the places of key stores, nor names of classes and algorithms.
_SECRET = re.compile(
    r"secret|passw|passphrase|token$|credentials?$|(access|account|api|customer)[._-]?key|(private|storage)[._-]?key$"
    r"|[._]sas[._]|^sas_|connection_string|^key$|^(proxy-)?authorization$",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(
    r"(provider|impl|class|path|file|location|algorithm|renewer|enabled|required|type|interval|uri)s?$", re.IGNORECASE
)
# Spark's settings that name secrets of Kubernetes, where they are mounted, and which of their keys a variable is.
_OF_KUBERNETES = re.compile(r"spark\.kubernetes\.(container\.image\.pullSecrets|(driver|executor)\.(secrets|secretKeyRef)\..+)")
_SECRET_IN_VALUE = re.compile(r"(secret|passw)\w*[\"']?\s*[=:]\s*\S", re.IGNORECASE)  # among the options of a JVM
_PASSWORD_IN_VALUE = re.compile(r"""://[^/\s:@"']*:[^/\s"']+@""")  # of an address in quotes, in brackets, or of JDBC
_NEXT_URI = re.compile(r"[,;=\s]+(?=[A-Za-z][A-Za-z0-9+.-]*://)")  # a password may hold commas itself


def is_reference(value: str) -> bool:
    """Whether a value is a reference to a secret."""
    return bool(_REFERENCE.fullmatch(value))


def names_secret(option: str) -> bool:
    """Whether an option of a file system, or a setting of Spark, is a secret by its name."""
    return bool(_SECRET.search(option)) and not (_NO_SECRET.search(option) or _OF_KUBERNETES.fullmatch(option))


def only_references(options: dict[str, str]) -> dict[str, str]:
    """The options, of which none holds a secret itself.

    Raises:
        ValueError: one does; the message does not show it.
    """
    for option, value in options.items():
        if is_reference(value):
            continue
        within = has_password(value) or (_holds_secret(value) and not _OF_KUBERNETES.fullmatch(option))
        if (names_secret(option) and value) or within:
            raise ValueError(
                f"{option} is a secret, and the policy is stored and shown: write ${{env:NAME}} or ${{file:/path}} instead, "
                "and set the variable or the file where hive-repl and Dagster run"
            )
        if _REFERENCE.search(value):
            raise ValueError(f"{option} has a reference within other text: write ${{env:NAME}} or ${{file:/path}} alone")
    return options


def _holds_secret(value: str) -> bool:
    """Whether there is a secret within a value, or anywhere in the JSON that it is, and in the JSON of texts in that."""
    left: list[object] = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            if (inner := _read(one)) != one:
                left.append(inner)
            elif has_password(one) or _SECRET_IN_VALUE.search(one) or _PASSWORD_IN_VALUE.search(one):
                return True
        elif isinstance(one, _Members):
            if any(names_secret(key) and inner and inner is not True for key, inner in one.pairs):
                return True
            left += (part for pair in one.pairs for part in pair)
        elif isinstance(one, list):
            left += cast("list[object]", one)
    return False


@dataclass(frozen=True, slots=True)
class _Members:
    """Those of a JSON object, also if two have the same key."""

    pairs: list[tuple[str, object]]


def _read(value: str) -> object:
    try:
        return json.loads(value, object_pairs_hook=_Members)
    except (ValueError, RecursionError):
        return value


def idle_references(settings: object, at: tuple[int | str, ...] = ()) -> Iterator[WrongSetting]:
    """References among the settings of a policy that nobody reads: they would be taken as they are written."""
    if isinstance(settings, str) and _BEGINNING.search(settings):
        said = f"{'.'.join(map(str, at))} is not read from an environment variable or a file: write the value itself"
        yield WrongSetting(at, f"{said}; ${{env:NAME}} and ${{file:/path}} are for options, spark and keys")
    elif isinstance(settings, dict):
        for name, value in cast("dict[str, object]", settings).items():
            if name not in _WITH_REFERENCES:
                yield from idle_references(value, (*at, name))
    elif isinstance(settings, (list, tuple)):
        for number, value in enumerate(cast("Sequence[object]", settings)):
            yield from idle_references(value, (*at, number))


def has_password(value: str) -> bool:
    """Whether a value is a URI with a password, or a list of several, between commas, of which one has."""
    return any(map(_password, _NEXT_URI.split(value)))


def _password(uri: str) -> bool:
    try:
        return "://" in uri and bool(urlsplit(uri.strip()).password)
    except ValueError:  # a bracket, which may be one of the password
        authority = re.split("[/?#]", uri.partition("://")[2], maxsplit=1)[0]
        return ":" in authority.rpartition("@")[0]


def without_password(uri: str) -> str:
    """The URI, or list of URIs between commas, which has no password.

    Raises:
        ValueError: it has one; the message does not show it.
    """
    if has_password(uri):
        raise ValueError("the address holds a password, and the policy is stored and shown: use options with ${env:NAME}")
    return uri


def resolved_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options with the secrets that they refer to, for the process that uses them now.

    Raises:
        BadRequest: a variable is not set, or a file cannot be read.
    """
    return {option: _resolved(option, value) for option, value in options.items()}


def _resolved(option: str, value: str) -> str:
    reference = _REFERENCE.fullmatch(value)
    if reference is None:
        return value
    kind, name = reference.groups()
    if kind == "env":
        if name not in os.environ:
            raise BadRequest(f"{option} of the policy is {value}, and this process has no environment variable {name}: set it")
        return os.environ[name]
    try:
        return secret_of(name).decode().rstrip("\r\n")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise BadRequest(f"{option} of the policy is {value}, and that file cannot be read: {reason}") from error
