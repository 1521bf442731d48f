"""``python -m tests.matrix``: from every version of Hive's metastore to those that come after it; prints a table.

Two metastores run at a time. Exit code 1 if anything is held or not equal.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from resources.embedded.cluster import Cluster
from tests.matrix.pairs import PAIRS, Outcome, sides, tried


def main() -> int:
    """Prints a line for each pair when it is done, and the table at the end."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    names = {"-".join(sides(pair)): pair for pair in PAIRS}
    parser.add_argument("pairs", nargs="*", choices=[[], *names], metavar="PAIR", help=f"all, or some of {', '.join(names)}")
    chosen = [names[name] for name in parser.parse_args().pairs] or list(PAIRS)
    kept = os.environ.get("HIVE_REPL_TEST_CLUSTER")
    with tempfile.TemporaryDirectory() as folder:
        cluster, found = Cluster(Path(kept or folder)), list[Outcome]()
        try:
            for pair in chosen:
                _only(cluster, sides(pair))
                found.append(tried(cluster, pair))
                print(_line(found[-1]), flush=True)
        finally:
            if not kept:
                cluster.down()
    table = Table("source", "target", "events", "objects", "result", "seconds")
    for one in found:
        result = "\n".join(one.wrong) or "equal"
        table.add_row(one.source, one.target, str(one.events), str(one.objects), result, f"{one.seconds:.0f}")
    Console().print(table)
    return 1 if any(one.wrong for one in found) else 0


def _only(cluster: Cluster, names: Sequence[str]) -> None:
    """Stops the other metastores, and starts these."""
    others = [f"{name}.metastore" for name in cluster.sides() if name not in names]
    if others:
        cluster.down(others)
    cluster.up(names)


def _line(one: Outcome) -> str:
    result = "; ".join(one.wrong) or "equal"
    return f"{one.source} -> {one.target}: {one.events} events, {one.objects} objects, {one.seconds:.0f} s: {result}"


if __name__ == "__main__":
    sys.exit(main())
