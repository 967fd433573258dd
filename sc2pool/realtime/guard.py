"""Ends a paused process tree when the program that paused it is gone.

    python -m sc2pool.realtime.guard

Each line on its standard input is a JSON value: the process that is paused now, as its pid and
its time of creation, or null for none. Rule: only the end of the input counts, which comes however
the writer ends; then what the last line names is killed, with all below it.
"""

from __future__ import annotations

import json
import signal
import sys

from sc2pool.processes.orphans import end_orphan


def main() -> None:
    """Read until the end, then see to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    held: list[float] | None = None
    for line in sys.stdin:
        if line.endswith("\n"):  # else the writer ended in the midst of it
            held = json.loads(line)
    if held is not None:
        pid, created_s = held
        end_orphan(int(pid), created_s)


if __name__ == "__main__":
    main()
