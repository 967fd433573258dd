"""Kills the process tree that a program has named when that program ends.

    program ── pipe: the process to be killed, or null ──► python -m sc2pool.processes.guard

It names a tree that it has paused, which is not its child, so no parent-death signal reaches it,
and which would stay stopped, because it handles no SIGTERM; or a game of its own, where the system
has no such signal. Each line on the guard's standard input is a JSON value: pid and creation time
of the tree's root, or null for none. Rules: only the end of the input counts, which comes however
the writer ends; then the tree that the last line names is killed. A guard that does not read,
because it is stopped, is replaced; nothing waits for it. Once its program has ended, the system
lets a stopped guard go on.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Final

from sc2pool.platform import WINDOWS
from sc2pool.processes.spawn import Child, leave_interrupts_to_parent, start_python
from sc2pool.processes.tree import end_orphan

_ENDS_WITHIN_S: Final = 5.0
"""How long a guard may take to end at the end of its input; it may still be starting."""


class Guard:
    """The program's side: starts the guard, and keeps it informed."""

    def __init__(self) -> None:
        self._process = _start()

    def note(self, paused: tuple[int, float] | None) -> None:
        """Kill the tree of this process (pid, creation time) if this program ends; None for no."""
        line = json.dumps(paused).encode() + b"\n"
        with suppress(BrokenPipeError):  # the guard was killed: the tree goes without
            try:
                self._write(line)
            except BlockingIOError:  # thousands of lines are unread
                self._process.kill()
                self._process.wait()
                self._process = _start()
                self._write(line)

    def dismiss(self) -> None:
        """Nothing is to be killed any more: end the guard."""
        self.note(None)
        self.close()

    def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        os.write(self._process.stdin.fileno(), line)  # all or nothing: it is short (pipe(7))

    def close(self) -> None:
        """End the guard; call `note(None)` before."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:  # it is stopped, or the machine is very slow
            self._process.kill()
            self._process.wait()


def _start() -> Child:
    # In no session of its own: there the system would not continue a stopped guard, see `main`.
    process = start_python("sc2pool.processes.guard", stdin=subprocess.PIPE)
    assert process.stdin is not None
    if not WINDOWS:  # its pipes always wait for room
        os.set_blocking(process.stdin.fileno(), False)
    return process


def main() -> None:
    """The guard's side: read until the end of the input, then kill what is still paused."""
    leave_interrupts_to_parent()
    if not WINDOWS:
        # If this process is stopped when its parent ends, the system sends SIGHUP, and SIGCONT: no
        # other process of the session could continue its group any more (setpgid(2)).
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    paused: list[float] | None = None
    for line in sys.stdin:
        if line.endswith("\n"):  # else the writer ended in the middle of it
            paused = json.loads(line)
    if paused is not None:
        pid, created_s = paused
        end_orphan(int(pid), created_s)


if __name__ == "__main__":
    main()
