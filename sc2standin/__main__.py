"""Runs the command line: see `command`."""

from __future__ import annotations

import gc
import sys

if __name__ == "__main__":
    gc.disable()  # an import makes no garbage; to look for it takes a sixth of the start
    from sc2standin.command import main

    gc.freeze()  # nor is it looked at later
    gc.enable()
    sys.exit(main(sys.argv[1:]))
