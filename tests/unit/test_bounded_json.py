"""JSON from outside is refused before it comes near a limit of Python's own."""

from __future__ import annotations

import time

import pytest

from hive_replication.bounded_json import parsed, require_shallow


@pytest.mark.parametrize("text", ["[" * 201 + "]" * 201, '[{"a":' * 101 + "1" + "}]" * 101, '["a\\"",' + "[" * 200])
def test_text_that_nests_too_deep(text: str) -> None:
    with pytest.raises(ValueError, match="nests too deep"):
        require_shallow(text)
    with pytest.raises(ValueError, match="nests too deep"):
        parsed(text.encode())


@pytest.mark.parametrize("text", ["[" * 200 + "]" * 200, "[" + "[],{}," * 300 + "1]", '["' + "[{" * 300 + '\\"[["]'])
def test_text_that_does_not(text: str) -> None:
    require_shallow(text)
    parsed(text.encode())


def test_a_string_without_an_end_takes_no_longer_than_one_with_it() -> None:
    text = '["' + '\\"' * 200_000 + '"' + ",1" * 600_000 + "]"
    began = time.process_time()
    with pytest.raises(ValueError, match="more than"):
        parsed(text.encode(), values=500_000)
    took = time.process_time() - began
    began = time.process_time()
    with pytest.raises(ValueError, match="Unterminated"):
        parsed(text.replace('"' + ",1", ",1", 1).encode(), values=500_000)
    assert time.process_time() - began < 20 * took + 1
