"""What is wrong with settings of a policy, and where; and what is looked for where a policy is given, not where it was kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from pydantic import AfterValidator, ValidationError, ValidationInfo

T = TypeVar("T")

#: What pydantic says in Python's words, in those of YAML.
_SAID = {
    "extra_forbidden": "there is no such setting",
    "missing": "it has to be set",
    "string_type": "a text is meant: put a number, yes or no in quotes",
    "tuple_type": "a list is meant, such as [a, b]",
    "dict_type": "names and values are meant, such as {name: value}",
    "model_type": "names and values of settings are meant, such as {name: value}",
}

#: The context of validating a policy that this version, or an earlier one, has taken before.
KEPT = {"kept": True}


def unless_kept(check: Callable[[T], T]) -> AfterValidator:
    """A check that passes over policies that were taken before: what a later version refuses must not end their replication.

    Args:
        check: raises ValueError; gives the value as it is, or in a form that it takes again and leaves.
    """

    def checked(value: T, info: ValidationInfo) -> T:
        return value if info.context == KEPT else check(value)

    return AfterValidator(checked)


class WrongSetting(ValueError):
    """Something is wrong with a setting.

    Args:
        setting: its names from the top of the policy, so that its line can be found.
        text: what is wrong.
    """

    def __init__(self, setting: tuple[int | str, ...], text: str) -> None:
        super().__init__(text)
        self.setting = setting


class WrongSettings(ValueError):
    """Something is wrong with several settings.

    Args:
        found: where, and what.
    """

    def __init__(self, found: Sequence[tuple[tuple[int | str, ...], str]]) -> None:
        super().__init__("; ".join(text for _, text in found))
        self.found = found


def validated(validate: Callable[[], T], wrong: Sequence[WrongSetting]) -> T:
    """What is validated, if nothing is wrong already; else all that is wrong is told at once.

    Args:
        validate: raises ValidationError; what it says of settings that are wrong already is left out.
        wrong: what is wrong already.

    Raises:
        WrongSettings: something is.
    """
    known = {one.setting: f"Value error, {one}" for one in wrong}  # as pydantic begins what it says of one
    try:
        valid = validate()
    except ValidationError as error:
        if not wrong:
            raise
        raise WrongSettings([*known.items(), *(one for one in problems(error) if one[0] not in known)]) from error
    if wrong:
        raise WrongSettings([*known.items()])
    return valid


def problems(error: ValidationError) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """Where each problem of a policy is, and what it is."""
    found = error.errors()
    for one in found:
        inner = any(other["loc"][: len(one["loc"])] == one["loc"] != other["loc"] for other in found)
        if one["type"] == "too_short" and inner:  # only without the items that are wrong
            continue
        problem = one.get("ctx", {}).get("error")
        if isinstance(problem, WrongSettings):
            yield from problem.found
            continue
        yield one["loc"] or (problem.setting if isinstance(problem, WrongSetting) else ()), _SAID.get(one["type"], one["msg"])


def described(error: ValidationError) -> str:
    """The problems of a policy that is in no file, each with its setting."""
    return "; ".join(f"{'.'.join(map(str, location)) or 'top level'}: {said}" for location, said in problems(error))
