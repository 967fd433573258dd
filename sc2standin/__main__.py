"""Runs the command line: see `command`."""

from __future__ import annotations

import sys

from sc2standin.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
