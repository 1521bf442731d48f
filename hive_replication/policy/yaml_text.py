"""The YAML of a policy: what it says, and where a setting stands in it, for error messages (pure)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, cast

import yaml
from yaml.constructor import ConstructorError
from yaml.parser import ParserError

from hive_replication.errors import BadRequest

#: Characters of a policy, which names databases and patterns, not tables one by one.
LARGEST = 1 << 20
_DEEPEST = 20


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice, of which PyYAML takes the last one silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ConstructorError(None, None, "a name of a setting is a text", key.start_mark)
            if key.value in seen:
                raise ConstructorError(None, None, f"{key.value} stands twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def parse(text: str, name: str) -> object:
    """What a YAML text says.

    Args:
        text: the text.
        name: of its file, for errors.

    Raises:
        BadRequest: it is no YAML, says a key twice, has aliases, or is larger or deeper than any policy.
    """
    if len(text) > LARGEST:
        raise too_large(name)
    try:
        _look_through(text)
        return yaml.load(text, _Loader)  # noqa: S506 - it is a SafeLoader
    except yaml.YAMLError as error:
        said = " ".join(str(error).split()).replace(' in "<unicode string>"', "")  # PyYAML's name of every text
        raise BadRequest(f"{name} is not YAML: {said}") from error
    except ValueError as error:  # of a date or number that is none
        raise BadRequest(f"{name} is not YAML: {error}; put texts that look like dates or numbers in quotes") from error


def too_large(name: str) -> BadRequest:
    """Says that a file, by its name, is larger than any policy."""
    return BadRequest(f"{name} is not a policy: it has more than {LARGEST:,} characters")


def _look_through(text: str) -> None:
    """Refuses, before anything is built, what a short text can make large: depth, and aliases."""
    events = cast("Callable[..., Iterator[yaml.Event]]", yaml.parse)  # pyright: ignore[reportUnknownMemberType]
    depth = 0
    for event in events(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        mark = cast("yaml.Mark", event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            raise ParserError(None, None, "aliases are not allowed", mark)
        if depth > _DEEPEST:
            raise ParserError(None, None, f"nested more than {_DEEPEST} deep", mark)


def place(text: str, location: Sequence[int | str]) -> str:
    """``line 3, column 5, source.roots.0.uri``: of the setting, or of the innermost thing around it that is there."""
    compose = cast("Callable[..., yaml.Node | None]", yaml.compose)  # pyright: ignore[reportUnknownMemberType]
    node = compose(text, Loader=yaml.SafeLoader)
    name = ".".join(map(str, location)) or "top level"
    for step in location:
        inner = _child(node, step)
        if inner is None:
            break
        node = inner
    if node is None:
        return name
    mark = cast("yaml.Mark", node.start_mark)
    return f"line {mark.line + 1}, column {mark.column + 1}, {name}"


def _child(node: yaml.Node | None, step: int | str) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step]
    return None
