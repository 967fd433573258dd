"""A worker's process as the trainer holds it: the leader of a group, with its games and all else.

Rules: the group is killed before its leader is reaped, for reaping sets the group's number free;
every wait is bounded.
"""

from __future__ import annotations

import subprocess
import threading
from contextlib import suppress

from sc2pool.deadline import Deadline
from sc2pool.processes.exit import notices_children, signal_name
from sc2pool.processes.follower import Follower
from sc2pool.processes.identity import created_at_s, is_alive

_OUTSIDE = ("SIGKILL", "SIGTERM")
"""Signals that a process does not get by a mistake of its own."""
_REAP_TIMEOUT_S = 5.0
_POLL_INTERVAL_S = 0.005


class WorkerProcess:
    """One worker's process."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._process = follower.process
        self.pid = self._process.pid
        self._created_s = created_at_s(self.pid)

    def kill(self) -> None:
        """Kill it and all that it has started; without effect once it is reaped."""
        self._follower.kill()

    def wait(self, deadline: Deadline, hurry: threading.Event) -> None:
        """Wait for the worker's own end, until the deadline or `hurry`; it is not reaped."""
        while not self.has_ended() and not deadline.expired():
            if hurry.wait(_POLL_INTERVAL_S):
                return

    def end(self) -> None:
        """Kill all of it, and reap the worker; may be called again."""
        self.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_REAP_TIMEOUT_S)
        self._follower.close()

    def has_ended(self) -> bool:
        """True if the worker is gone; it is not reaped."""
        if self._process.returncode is not None:
            return True
        return self._created_s is not None and not is_alive(self.pid, self._created_s)

    @property
    def was_killed(self) -> bool:
        """True after `end` if SIGKILL or SIGTERM has ended it."""
        code = self._process.returncode
        return code is not None and code < 0 and signal_name(-code) in _OUTSIDE

    def how_it_ended(self) -> str:
        """In words, after `end`: its exit status, or the signal that it was killed by."""
        code = self._process.returncode
        if code is None:
            return "closed its channel and could not be reaped"
        if code == 0 and not notices_children():
            return "ended; how, the system does not say, because this process ignores SIGCHLD"
        if code < 0:
            return f"was killed by {signal_name(-code)}"
        return f"exited with status {code}"
