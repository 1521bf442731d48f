"""Reads inputs in a process of its own, whose memory is limited, and tells what became of each."""

from __future__ import annotations

import logging
import math
import random
import resource
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.dumps import DUMPS
from tests.fuzz.images import IMAGES
from tests.fuzz.kept import KEPT
from tests.fuzz.limits import limited
from tests.fuzz.subjects import SUBJECTS, Outcome, Subject

#: Shares of the kinds of inputs: dumps are the largest and decide most.
SHARES: Mapping[str, int] = {
    "dumps": 6,
    "messages": 6,
    "journals": 2,
    "parameters": 3,
    "policies": 1,
    "statements": 1,
    "WebHDFS": 1,
    "images": 2,
    "functions": 1,
    "kept": 3,
}
_ADDRESSES = 6 << 30
_SHOWN = 40


@dataclass
class Batch:
    """What became of some inputs.

    Args:
        inputs, accepted: numbers by kind.
        tracebacks, over, changed: what went wrong, each with its input's seed.
    """

    inputs: Counter[str] = field(default_factory=Counter[str])
    accepted: Counter[str] = field(default_factory=Counter[str])
    tracebacks: list[str] = field(default_factory=list[str])
    over: list[str] = field(default_factory=list[str])
    changed: list[str] = field(default_factory=list[str])

    def add(self, other: Batch) -> None:
        """Adds those of another batch."""
        self.inputs += other.inputs
        self.accepted += other.accepted
        self.tracebacks += other.tracebacks
        self.over += other.over
        self.changed += other.changed


def subjects() -> dict[str, Subject]:
    """All kinds of inputs by name."""
    return {**DUMPS, **IMAGES, **KEPT, **SUBJECTS}


def run(seed: int, numbers: range, kinds: tuple[str, ...], now: Path, end: float = math.inf) -> Batch:
    """Makes and reads inputs; each is made from the seed and its own number, so that one alone can be repeated.

    ``now`` is a file that gets the number of each before it is read. None is begun after ``end``, a time of ``time.monotonic()``,
    which is the same in all processes.
    """
    logging.disable(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, resource.RLIM_INFINITY))
    known, batch = subjects(), Batch()
    weights = [SHARES[kind] for kind in kinds]
    for number in numbers:
        if time.monotonic() > end:
            break
        chance = random.Random(f"{seed} {number}")
        kind = chance.choices(kinds, weights)[0]
        batch.inputs[kind] += 1
        passed: list[str] = []
        outcome = Outcome(accepted=False)
        name = f"{kind} --seed {seed} --only {number}"
        read = known[kind](chance)
        now.write_text(f"{number}")
        try:
            with limited(passed):
                outcome = read()
        except Exception:  # noqa: BLE001 - it is what is looked for
            batch.tracebacks.append(f"{name}: {''.join(traceback.format_exc().splitlines(keepends=True)[-_SHOWN:])}")
        batch.accepted[kind] += outcome.accepted
        batch.over += [f"{name}: {one}" for one in passed]
        batch.changed += [f"{name}: {outcome.changed}"] if outcome.changed else []
    return batch
