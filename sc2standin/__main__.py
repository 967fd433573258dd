"""Runs the command line: see `command`."""

from __future__ import annotations

import gc
import sys

if __name__ == "__main__":
    gc.disable()  # imports leave no garbage, but looking for it takes a sixth of the start-up time
    from sc2standin.command import main

    gc.freeze()  # later garbage collections skip the imported objects
    gc.enable()
    sys.exit(main(sys.argv[1:]))
