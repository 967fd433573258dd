"""Walks through sc2pool as a stranger does in the first hour, and says what it saw, one line each.

    python scripts/stranger.py [--only WORD] [--keep DIR]

It clones this repository as it is committed, sets it up with `scripts/train`, and tries what
people try: small terminals, wrong arguments, a full disk, Ctrl-C at once, a game that is killed.
Needs tmux; root for the small disk; chromium for the pictures, which are to be looked at. The exit
code is 1 if anything is not as a stranger would expect it.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stranger.place import Place, WrongError
from stranger.stations import STATIONS

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="stations with this word, after the first one")
    parser.add_argument("--keep", type=Path, help="folder for the pictures (default: a new one)")
    given = parser.parse_args()
    keep = given.keep or Path(tempfile.mkdtemp(prefix="sc2pool-pictures-"))
    keep.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="sc2pool-stranger-"))
    wrong = 0
    try:
        place = Place(ROOT, folder, keep)
        for number, (name, visit) in enumerate(STATIONS.items()):
            if number and given.only not in name:
                continue
            began_s = time.monotonic()
            try:
                words = f"ok     {name}: {visit(place)}"
            except (WrongError, OSError, subprocess.SubprocessError) as error:
                words = f"WRONG  {name}: {error}"
                wrong += 1
            print(f"{words}  ({time.monotonic() - began_s:.0f} s)", flush=True)
            if wrong and not number:
                break
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
