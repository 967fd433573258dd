#!/usr/bin/env python3
"""Kills, stops and ends processes of games of two clients, at random phases.

scripts/kill_duels.py --rounds 40 --seed 1
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from sc2standin.install import install
from tests.support.duels.kills import play


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "StarCraftII"
        install(directory)
        played = play(options.rounds, options.seed, directory, Path(folder))
    for what, count in sorted(played.items()):
        print(f"{count:5} {what}")
    print(f"{options.rounds} rounds: nothing is left")


if __name__ == "__main__":
    main()
