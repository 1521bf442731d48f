"""``python -m tests.fuzz``: reads mutated inputs in several processes and says how many ended badly."""

from __future__ import annotations

import argparse
import math
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from tests.fuzz.worker import SHARES, Batch, run

_BATCH = 500
_TOLD = 5


def main() -> int:
    """Runs what the arguments say; 1 where anything went wrong, or the time was over before the first input."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000, metavar="N", help="number of inputs (default 20,000)")
    parser.add_argument("--seconds", type=float, default=math.inf, metavar="T", help="read no more after this time")
    parser.add_argument("--seed", type=int, default=None, metavar="S", help="a new one is printed where absent")
    parser.add_argument("--only", type=int, default=None, metavar="NUMBER", help="one input alone, by its number")
    parser.add_argument("--kinds", nargs="+", choices=list(SHARES), default=list(SHARES), help="kinds of inputs")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="side by side (default 2)")
    chosen = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if chosen.seed is None else chosen.seed
    print(f"seed {seed}", flush=True)
    numbers = range(chosen.inputs) if chosen.only is None else range(chosen.only, chosen.only + 1)
    batch = fuzz(seed, numbers, tuple(chosen.kinds), chosen.processes, chosen.seconds)
    for title, found in (("traceback", batch.tracebacks), ("over a limit", batch.over), ("target changed", batch.changed)):
        for one in found[:_TOLD]:
            print(f"{title}: {one}")
    for kind, number in sorted(batch.inputs.items()):
        print(f"{kind}: {number} inputs, {batch.accepted[kind]} accepted")
    print(
        f"inputs {batch.inputs.total()} tracebacks {len(batch.tracebacks)} over-limit {len(batch.over)} "
        f"target-changed {len(batch.changed)}"
    )
    return int(bool(batch.tracebacks or batch.over or batch.changed) or not batch.inputs)


def fuzz(seed: int, numbers: range, kinds: tuple[str, ...], processes: int, seconds: float = math.inf) -> Batch:
    """Reads inputs in processes; one that ends its process counts as over a limit, and the others are read all the same.

    After ``seconds`` no more are read; where a process dies, its input is looked for that long again.
    """
    total, began = Batch(), time.monotonic()
    end = began + seconds
    pending = [numbers[start : start + _BATCH] for start in range(0, len(numbers), _BATCH)]
    with tempfile.TemporaryDirectory() as folder:
        now = Path(folder, "now")
        while pending:
            for batch, done in _read(seed, pending, kinds, processes, now, end):
                pending.remove(batch)
                total.add(done)
                if sys.stderr.isatty():
                    shown = f"\r{total.inputs.total()} of {len(numbers)} in {time.monotonic() - began:.0f} s"
                    print(shown, end="", file=sys.stderr)
            if pending and processes == 1:
                number = int(now.read_text())
                total.over.append(f"the process died at the input --seed {seed} --only {number}")
                batch = next(one for one in pending if number in one)
                pending.remove(batch)
                pending += filter(len, (range(batch.start, number), range(number + 1, batch.stop)))
            elif pending:  # from now on it is known which input ends one
                processes, end = 1, time.monotonic() + seconds
    return total


def _read(
    seed: int, pending: Sequence[range], kinds: tuple[str, ...], processes: int, now: Path, end: float
) -> Iterator[tuple[range, Batch]]:
    """What was found in each batch up to its end, until a process dies; ``now`` has the number of the input that is read."""
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(run, seed, batch, kinds, now, end): batch for batch in pending}
        for done in as_completed(futures):
            if not isinstance(done.exception(), BrokenProcessPool):
                yield futures[done], done.result()


if __name__ == "__main__":
    sys.exit(main())
