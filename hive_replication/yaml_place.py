"""Where in a YAML text a setting stands, for error messages (pure)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import yaml


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
