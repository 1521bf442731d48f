"""A short run of the fuzzer; ``make fuzz`` runs a long one. The seed is printed, and repeats what failed."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.__main__ import fuzz
from tests.fuzz.dumps import dumps, plan, resealed
from tests.fuzz.worker import SHARES

_INPUTS = 2_000


@pytest.mark.timeout(300)
def test_no_input_ends_badly() -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    batch = fuzz(seed, range(_INPUTS), tuple(SHARES), 2)
    assert batch.inputs.total() == _INPUTS
    assert (batch.tracebacks[:3], batch.over, batch.changed) == ([], [], [])


@pytest.mark.parametrize("number", range(len(dumps())))
def test_what_is_not_changed_is_accepted(number: int) -> None:
    """Else the fuzzer would only see refusals: each recorded dump is planned, with digests and without, and does the same."""
    dump = dumps()[number]
    found, changes = plan(dump, dump.files)
    assert any(lane.operations or lane.stop for lane in found.lanes)
    assert changes == []
    assert plan(dump, dump.sealed)[0] == found
    assert plan(dump, resealed(dump.directory, dump.sealed))[0] == found
