"""Actors with games that end at once when their node ends.

When a raylet is killed, an actor of its that computes nothing lives on until it is called, and its
games with it (seen for 20 s with Ray 2.60). Rule: the process is killed, not asked: its workers and
games end with it by their lifelines. Linux only; elsewhere they end when Ray notices.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from functools import cache

import ray


@cache
def end_with_node() -> None:
    """End this process when its raylet ends; without effect in a driver, or the second time."""
    if sys.platform != "linux" or ray.get_runtime_context().get_actor_id() is None:
        return
    raylet = select.poll()
    raylet.register(os.pidfd_open(os.getppid()), select.POLLIN)

    def wait() -> None:
        raylet.poll()
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, name="end with node", daemon=True).start()
