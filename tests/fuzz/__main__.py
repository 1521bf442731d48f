"""``python -m tests.fuzz``: reads mutated inputs in several processes and says how many ended badly."""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from tests.fuzz.worker import SHARES, Batch, run

_BATCH = 500
_TOLD = 5


def main() -> int:
    """Runs what the arguments say; 1 where anything went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000, metavar="N", help="number of inputs (default 20,000)")
    parser.add_argument("--seed", type=int, default=None, metavar="S", help="a new one is printed where absent")
    parser.add_argument("--only", type=int, default=None, metavar="NUMBER", help="one input alone, by its number")
    parser.add_argument("--kinds", nargs="+", choices=list(SHARES), default=list(SHARES), help="kinds of inputs")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="side by side (default 2)")
    chosen = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if chosen.seed is None else chosen.seed
    print(f"seed {seed}", flush=True)
    start = 0 if chosen.only is None else chosen.only
    batch = fuzz(seed, range(start, start + (chosen.inputs if chosen.only is None else 1)), tuple(chosen.kinds), chosen.processes)
    for title, found in (("traceback", batch.tracebacks), ("over a limit", batch.over), ("target changed", batch.changed)):
        for one in found[:_TOLD]:
            print(f"{title}: {one}")
    for kind, number in sorted(batch.inputs.items()):
        print(f"{kind}: {number} inputs, {batch.accepted[kind]} accepted")
    print(
        f"inputs {batch.inputs.total()} tracebacks {len(batch.tracebacks)} over-limit {len(batch.over)} "
        f"target-changed {len(batch.changed)}"
    )
    return int(bool(batch.tracebacks or batch.over or batch.changed))


def fuzz(seed: int, numbers: range, kinds: tuple[str, ...], processes: int) -> Batch:
    """Reads inputs in processes; one that dies of an input counts as over a limit."""
    total, began = Batch(), time.monotonic()
    batches = [numbers[start : start + _BATCH] for start in range(0, len(numbers), _BATCH)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context) as pool:
        waiting = {pool.submit(run, seed, batch, kinds): batch for batch in batches}
        for done in as_completed(waiting):
            try:
                total.add(done.result())
            except BrokenProcessPool:
                total.over.append(f"the process died among the inputs {waiting[done]}")
            if sys.stderr.isatty():
                print(f"\r{total.inputs.total()} of {len(numbers)} in {time.monotonic() - began:.0f} s", end="", file=sys.stderr)
    return total


if __name__ == "__main__":
    sys.exit(main())
