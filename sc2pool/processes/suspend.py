"""Stops a process tree, and lets it go on.

    stop ─► walk the tree, stop what is new ─► all stopped, and nobody new? ─► done
                     ▲                                  │ no
                     └──────────────────────────────────┘

Rules: `stop` returns when the system says that every process is stopped, or leaves none of them
stopped and raises; a process gets one stop and one continue, because they nest on Windows and do
not elsewhere; who was stopped by someone else before is left to them. What a process has started
and disowned (a daemon) is not below it any more, and goes on.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final

import psutil

from sc2pool.deadline import Deadline
from sc2pool.errors import PauseError
from sc2pool.processes.descendants import descendants

STOPS_WITHIN_S: Final = 2.0
"""Measured are 0.3 to 4 ms; a process in the midst of a slow system call takes longer."""
_LOOK_AGAIN_S: Final = 0.0005
_STOPPED = frozenset({psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP})


class ProcessTree:
    """The processes below one, and maybe that one itself.

    Args:
        pid: of the root.
        with_root: whether the root is stopped too.

    Raises:
        PauseError: there is no such process.
    """

    def __init__(self, pid: int, *, with_root: bool = True) -> None:
        try:
            self._root = psutil.Process(pid)
        except psutil.NoSuchProcess as error:
            raise PauseError(f"there is no process {pid} to be stopped") from error
        self._with_root = with_root
        self.held: list[psutil.Process] = []
        """Those it has stopped."""

    def stop(self, deadline: Deadline) -> None:
        """Stop them all; those that are stopped already stay so.

        Raises:
            PauseError: not all could be stopped by then; all go on.
        """
        try:
            self._stop(deadline)
        except BaseException:
            self.resume()
            raise

    def _stop(self, deadline: Deadline) -> None:
        while True:
            moving = [process for process in self.held if not _rests(process)]
            # Once all are stopped none can start another, so a walk that finds nobody new is true.
            new = [process for process in self._members() if process not in self.held]
            new = [process for process in new if not _rests(process)]
            if not moving and not new:
                return
            if deadline.expired():
                names = ", ".join(str(process.pid) for process in [*moving, *new])
                raise PauseError(f"processes below {self._root.pid} did not stop in time: {names}")
            for process in new:
                self._suspend(process)
            if moving and not new:
                time.sleep(_LOOK_AGAIN_S)

    def _suspend(self, process: psutil.Process) -> None:
        with suppress(psutil.NoSuchProcess):
            try:
                process.suspend()
            except psutil.AccessDenied as error:
                raise PauseError(f"process {process.pid} may not be stopped: {error}") from error
            self.held.append(process)

    def _members(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            if self._root.is_running():  # else the number may be someone else's by now
                below = descendants(self._root)
                return [self._root, *below] if self._with_root else below
        return []

    def resume(self) -> None:
        """Let all that it has stopped go on; may be called again."""
        held, self.held = self.held, []
        for process in held:
            with suppress(psutil.Error):
                process.resume()


def _rests(process: psutil.Process) -> bool:
    """Whether it does nothing: it is stopped, or has ended."""
    try:
        status = process.status()
    except psutil.NoSuchProcess:
        return True
    return status in _STOPPED or status == psutil.STATUS_ZOMBIE
