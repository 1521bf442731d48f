"""Regular expressions of users, as Hive's table-level policies have them (pure)."""

from __future__ import annotations

import re
import warnings

from hive_replication.errors import BadRequest

_LONGEST = 1_000


def require_expression(text: str) -> None:
    """Makes sure that a text is a regular expression that Java, in which Hive is written, and Python read alike.

    Raises:
        BadRequest: it is none, is empty, or is longer than 1,000 characters.
    """
    if not text:
        raise BadRequest("an empty regular expression matches no table: .* matches all")
    if len(text) > _LONGEST:
        raise BadRequest(f"the regular expression {text[:50]!r}... is longer than {_LONGEST} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # sets of characters in sets, which only Java knows
            re.compile(text)
    except (re.error, FutureWarning, OverflowError, RecursionError) as error:
        raise BadRequest(f"{text!r} is not a regular expression: {error}") from error
