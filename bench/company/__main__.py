"""``python -m bench.company company_10x1000x3``: dumps and loads slices of the company, and prints what that took."""

from __future__ import annotations

import argparse

from bench.company.runs import a_slice, measured, show


def main() -> None:
    """Reads the arguments, runs and reports."""
    parser = argparse.ArgumentParser(prog="python -m bench.company", description=__doc__)
    parser.add_argument("slices", nargs="+", type=a_slice, metavar="SLICE", help="company_<tables>x<partitions>x<files>")
    parser.add_argument("--no-load", action="store_true", help="only dump")
    parser.add_argument("--events", type=int, default=0, help="then a window of so many partitions that are added")
    parser.add_argument("--limits", action="store_true", help="beside what the same calls of the servers alone take")
    args = parser.parse_args()
    for of in args.slices:
        print(of.name)
        show(measured(of, args.events, load=not args.no_load, limits=args.limits))


if __name__ == "__main__":
    main()
