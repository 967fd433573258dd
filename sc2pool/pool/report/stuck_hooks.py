"""Finds hooks (the user's methods) that do not return; the worker writes them to a file.

The instances of a worker share one thread. So a hook that does not return stops all instances, and
the trainer cannot see whose hook is stuck. Twice a second another thread of the worker, the
`HookWatch`, inspects the stack of the main thread. If the thread finds the same call of the user's
code twice, it writes the call and the stack to `hook.json` in the instance's folder. The trainer
reads that file after a deadline. The step path does no work for this search.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Final

from sc2pool.pool.report import live_files
from sc2pool.processes.spawn import start_thread

_INTERVAL_S: Final = 0.5
_FILE: Final = "hook.json"
_PACKAGE: Final = str(Path(__file__).resolve().parents[2])


@dataclass(frozen=True)
class StuckHook:
    """A hook that does not return, first seen at the monotonic time `since_s`.

    `name` is, for example, "act() of Spin", and `place` is the hook's file and current line.
    `stack` is the stack of the worker's main thread.
    """

    name: str
    place: str
    since_s: float
    stack: str

    def __str__(self) -> str:
        stuck_s = time.monotonic() - self.since_s
        return f"{self.name} has not returned for {stuck_s:.1f} s: {self.place}"


def read(directory: Path) -> StuckHook | None:
    """The stuck hook of the instance with this folder, or None."""
    found = live_files.read(directory / _FILE)
    with suppress(TypeError):
        return None if found is None else StuckHook(**found[0])
    return None


class HookWatch:
    """Writes a file about each hook that does not return in this worker.

    `directory_of` returns the folder of a frame's instance, or None for any other frame.
    """

    def __init__(self, directory_of: Callable[[FrameType], Path | None]) -> None:
        self._directory_of = directory_of
        self._main = threading.main_thread().ident
        self._hook: FrameType | None = None
        self._since_s = 0.0
        self._noted: Path | None = None

    def begin(self) -> None:
        """Start the watching thread, which runs until the process ends."""
        start_thread(self._run, "sc2pool-hook-watch")

    def _run(self) -> None:
        while True:
            time.sleep(_INTERVAL_S)
            self._look()

    def _look(self) -> None:
        now = sys._current_frames().get(self._main or 0)
        hook, directory = self._hook_below(now)
        if hook is not None and hook is self._hook and directory is not None:
            self._note(hook, now, directory)
            return
        self._hook, self._since_s = hook, time.monotonic()
        if self._noted is not None:
            with suppress(OSError):
                self._noted.unlink(missing_ok=True)
            self._noted = None

    def _hook_below(self, frame: FrameType | None) -> tuple[FrameType | None, Path | None]:
        """The outermost call of the user's code on this stack, with the folder of its instance."""
        hook = None
        while frame is not None:
            directory = self._directory_of(frame)
            if directory is not None:
                return hook, directory
            if not frame.f_code.co_filename.startswith(_PACKAGE):
                hook = frame
            frame = frame.f_back
        return None, None

    def _note(self, hook: FrameType, now: FrameType | None, directory: Path) -> None:
        code = hook.f_code
        owner = hook.f_locals.get("self")
        of_what = "" if owner is None else f" of {type(owner).__name__}"
        stuck = StuckHook(
            f"{code.co_name}(){of_what}",
            f"{code.co_filename}, line {hook.f_lineno}",
            self._since_s,
            "".join(traceback.format_stack(now)),
        )
        self._noted = directory / _FILE
        live_files.write(self._noted, asdict(stuck))
