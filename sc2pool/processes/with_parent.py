"""A child that gets a signal, mostly SIGKILL, when the thread that started it ends.

Linux can send a signal to a process when its parent ends (`PR_SET_PDEATHSIG`); other systems
cannot, and rely on the worker's lifeline alone.

Rules: libc is loaded before the fork, because between fork and exec nothing may be imported.
The signal follows the *thread* that forks, so games are started from a worker's main thread.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_prctl = ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None


def die_with_parent() -> Callable[[], None] | None:
    """What `subprocess.Popen` must run in the child (`preexec_fn`); None where nothing can."""
    if _prctl is None:
        return None
    prctl = _prctl
    parent_pid = os.getpid()

    def in_child() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent_pid:  # it ended before the signal was asked for
            os._exit(1)

    return in_child


def follow_parent(parent_pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Get this signal when `parent_pid`, the parent, ends; if that is gone, end at once."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent_pid:
            os._exit(1)
