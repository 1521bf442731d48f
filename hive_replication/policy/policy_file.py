"""Reading a policy from its YAML file."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from hive_replication.errors import BadRequest
from hive_replication.policy.model import Policy
from hive_replication.policy.wrong_setting import problems
from hive_replication.policy.yaml_text import LARGEST, parse, place, too_large

_LARGEST_FILE = 4 * LARGEST  # bytes: a character of UTF-8 has up to four


def load_policy(path: Path | str) -> Policy:
    """Reads a policy from YAML.

    Raises:
        BadRequest: the file is absent or not a valid policy; the message names line, column and setting of each error.
    """
    return policy_of(policy_text(path), str(path))


def policy_text(path: Path | str) -> str:
    """The text of a policy's file, which may be a pipe that can be read only once, or have no end (``/dev/zero``).

    Raises:
        BadRequest: it is absent, no text, or larger than any policy.
    """
    try:
        with Path(path).open("rb") as file:
            text = file.read(_LARGEST_FILE + 1)
        if len(text) > _LARGEST_FILE:
            raise too_large(str(path))
        return text.decode()
    except OSError as error:
        raise BadRequest(
            f"cannot read the policy {path}: {error.strerror}; name one with --config or HIVE_REPL_CONFIG"
        ) from error
    except UnicodeDecodeError as error:
        raise BadRequest(f"{path} is not text in UTF-8: byte {error.start} is not part of a character") from error


def policy_of(text: str, name: str) -> Policy:
    """The policy that a YAML text is.

    Args:
        text: the text.
        name: of its file, for errors.

    Raises:
        BadRequest: it is not a valid policy; the message names line, column and setting of each error.
    """
    content = parse(text, name)
    try:
        return Policy.model_validate(content)
    except ValidationError as error:
        places = "; ".join(f"{place(text, location)}: {said}" for location, said in problems(error))
        raise BadRequest(f"{name} is not a valid policy: {places}") from error
