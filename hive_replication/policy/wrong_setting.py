"""What is wrong with settings of a policy, and where."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError


class WrongSetting(ValueError):
    """Something is wrong with a setting.

    Args:
        setting: its names from the top of the policy, so that its line can be found.
        text: what is wrong.
    """

    def __init__(self, setting: tuple[str, ...], text: str) -> None:
        super().__init__(text)
        self.setting = setting


def problems(error: ValidationError) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """Where each problem of a policy is, and what it is."""
    found = error.errors()
    for one in found:
        inner = any(other["loc"][: len(one["loc"])] == one["loc"] != other["loc"] for other in found)
        if one["type"] == "too_short" and inner:  # only without the items that are wrong
            continue
        problem = one.get("ctx", {}).get("error")
        yield one["loc"] or (problem.setting if isinstance(problem, WrongSetting) else ()), one["msg"]
