"""Fuzzes the stand-in: sends random requests on all maps, and checks that each reply is proper.

Usage:
    .venv/bin/python scripts/fuzz_standin.py --count 1000000 --seed 1    # Sends a million requests.

A proper reply comes in time and without an exception. Two games get the same requests, and must
reply with the same bytes. The first request without a proper reply ends the run, with a message
that names the seed and the request's number.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.support.fuzz.play import FuzzFailure, play


def main() -> int:
    options = _arguments()
    began_s = time.monotonic()
    every = max(1, options.count // 10)

    def progress(number: int) -> None:
        if number % every == 0:
            print(f"{number:,} requests, {time.monotonic() - began_s:.0f} s", flush=True)

    with tempfile.TemporaryDirectory() as temporary:
        try:
            report = play(options.count, options.seed, Path(temporary), progress)
        except FuzzFailure as failure:
            print(failure, file=sys.stderr)
            return 1
    for title, counter in (("replies", report.replies), ("games", report.games)):
        print(f"{title}: " + ", ".join(f"{name} {n:,}" for name, n in counter.most_common()))
    print(f"slowest reply: {report.slowest_s:.2f} s")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=100_000, help="requests")
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same requests")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
