"""A worker's process group ends with the trainer, however that ends.

    trainer ── pipe, never written ──► the kernel: SIGKILL to the group as soon as nobody holds
                                       the writing end

The group and not the worker alone, for an env of the user's may have started processes of its own,
which nobody else knows. Rules: on Linux the kernel sends the signal (`F_SETSIG`, fcntl(2)), which a
worker that is stopped, or hangs with the interpreter's lock, needs to do nothing for; nothing may
kill the worker alone before that, because the pipe's signal ends with its reader. A thread does the
same where the kernel cannot, and where a forked child of the trainer still holds the pipe.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from typing import NoReturn

from sc2pool.processes.with_parent import follow_parent

if sys.platform == "linux":
    import fcntl


def end_group_with(trainer_pid: int, lifeline: int) -> None:
    """Have this process's group killed when the trainer ends.

    Args:
        trainer_pid: this process's parent.
        lifeline: the reading end of a pipe whose writing end the trainer holds.
    """
    ends = [lifeline]
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
        follow_parent(trainer_pid, signal.SIGCONT)  # so that the thread's turn comes, if stopped
        ends.append(os.pidfd_open(trainer_pid))

    def wait() -> NoReturn:
        if sys.platform == "linux":
            select.select(ends, [], [])
        else:
            os.read(lifeline, 1)
        if hasattr(os, "killpg"):
            os.killpg(os.getpgrp(), signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=wait, name="sc2pool-lifeline", daemon=True).start()
