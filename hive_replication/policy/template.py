"""What helps to write a policy: its JSON schema, and a commented one to begin with."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from hive_replication.policy import Policy
from hive_replication.policy.warehouse import Warehouse


def schema() -> str:
    """The JSON schema of the policy, with which editors complete and check it."""
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **Policy.model_json_schema()}, indent=2) + "\n"


def commented(policy: Policy) -> str:
    """A policy as YAML: what it sets, and below as comments all other settings with their defaults and meanings."""
    lines = [
        "# What is replicated from where to where. Check it with: hive-repl policy check; then: hive-repl doctor",
        *(line for lines in _settings(policy) for line in ("", *lines)),
    ]
    return "\n".join(lines) + "\n"


def _settings(settings: BaseModel) -> Iterator[list[str]]:
    """The lines of each setting, those that are given first; what a side leaves out stands within it."""
    given = settings.model_dump(mode="json", exclude_defaults=True)
    for name, field in sorted(type(settings).model_fields.items(), key=lambda item: item[0] not in given):
        meaning = [f"# {field.description}"] if field.description else []
        default = field.get_default(call_default_factory=True, validated_data={})
        side = getattr(settings, name)
        if isinstance(side, Warehouse):
            yield [*meaning, f"{name}:", *(f"  {line}" for lines in _settings(side) for line in lines)]
        elif name in given:
            yield [*meaning, *yaml.safe_dump({name: given[name]}, sort_keys=False).rstrip().splitlines()]
        elif default is not PydanticUndefined:
            value = default.model_dump(mode="json") if isinstance(default, BaseModel) else _plain(default)
            text = yaml.safe_dump(value, default_flow_style=True, width=math.inf).removesuffix("...\n").strip()
            yield [*meaning, f"# {name}: {text}"]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
