"""A short run of the fuzzer; ``make fuzz`` runs a long one, and ``make test`` one of a minute."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import fuzz
from tests.fuzz.dumps import dumps, plan, resealed
from tests.fuzz.worker import SHARES

_INPUTS = 2_000


@pytest.mark.timeout(300)
def test_no_input_ends_badly(seed: int) -> None:
    batch = fuzz(seed, range(_INPUTS), tuple(SHARES), 2)
    assert batch.inputs.total() == _INPUTS
    assert (batch.tracebacks[:3], batch.over, batch.changed) == ([], [], [])


def test_no_input_is_read_after_the_time() -> None:
    assert fuzz(1, range(_INPUTS), tuple(SHARES), 1, seconds=0).inputs.total() == 0


@pytest.mark.parametrize("number", range(len(dumps())))
def test_what_is_not_changed_is_accepted(number: int) -> None:
    """Else the fuzzer would only see refusals: each recorded dump is planned, with digests and without, and does the same."""
    dump = dumps()[number]
    found, changes = plan(dump, dump.files)
    assert any(lane.operations or lane.stop for lane in found.lanes)
    assert changes == []
    assert plan(dump, dump.sealed)[0] == found
    assert plan(dump, resealed(dump.directory, dump.sealed))[0] == found
