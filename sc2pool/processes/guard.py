"""The guard: a child process that kills a process tree when its parent, the program, ends.

The program starts `python -m sc2pool.processes.guard`, and tells it by a pipe which tree to kill.

A guard has two uses. First, it kills a tree that the program has paused. A paused tree is not the
program's child, so no parent-death signal reaches it, and a stopped process handles no SIGTERM.
Second, on a system without a parent-death signal, it kills the program's own game.

Each line on the guard's standard input is a JSON value: the pid and the creation time of the tree's
root, or null for no tree. Rules: whatever ends the program also ends the guard's input. When its
input ends, the guard kills the tree that the last line names. A guard that is stopped, and so does
not read, is replaced. The program never waits for a guard. If the guard is stopped, the system
resumes it when the program has ended.
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
from sc2pool.processes.spawn import leave_interrupts_to_parent, start_python
from sc2pool.processes.tree import end_orphan

_ENDS_WITHIN_S: Final = 5.0
"""How long a guard may take to exit at the end of its input, even if it is still starting."""


class Guard:
    """The program's side: starts the guard process, and tells it which tree to kill."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        # Use our session: in a session of its own, a stopped guard would stay stopped (see `main`).
        self._process = start_python("sc2pool.processes.guard", stdin=subprocess.PIPE)
        assert self._process.stdin is not None
        self._pipe = self._process.stdin
        if not WINDOWS:  # on Windows, pipes always block
            os.set_blocking(self._pipe.fileno(), False)

    def note(self, paused: tuple[int, float] | None) -> None:
        """Name the tree to kill when this program ends, by its root's pid and creation time."""
        line = json.dumps(paused).encode() + b"\n"
        with suppress(BrokenPipeError):  # the guard was killed, so the tree stays unguarded
            try:
                self._write(line)
            except BlockingIOError:  # replace a guard that has thousands of unread lines
                self._process.kill()
                self._process.wait()
                self._start()
                self._write(line)

    def dismiss(self) -> None:
        """End the guard without killing the tree."""
        self.note(None)
        self.close()

    def _write(self, line: bytes) -> None:
        os.write(self._pipe.fileno(), line)  # short writes are atomic (pipe(7))

    def close(self) -> None:
        """End the guard; call `note(None)` first."""
        self._pipe.close()
        try:
            self._process.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:  # the guard is stopped, or the machine is very slow
            self._process.kill()
            self._process.wait()


def main() -> None:
    """The guard's side: read until the end of the input, then kill the tree that was named last."""
    leave_interrupts_to_parent()
    if not WINDOWS:
        # When the parent of this process ends, the group of this process is orphaned.
        # The system sends SIGHUP and SIGCONT to an orphaned group that is stopped (setpgid(2)).
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    paused: list[float] | None = None
    for line in sys.stdin:
        if line.endswith("\n"):  # ignore a line that the program could not complete
            paused = json.loads(line)
    if paused is not None:
        pid, created_s = paused
        end_orphan(int(pid), created_s)


if __name__ == "__main__":
    main()
