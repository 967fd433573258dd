"""Actors with games that end at once when their node ends.

When a raylet is killed, an actor of its that computes nothing lives on until it is called, and its
games with it (seen for 20 s with Ray 2.60). Rule: the process ends without closing its pool,
because a call that waits would raise, as if that were the trainer's doing; its workers and games
end with it by their lifelines.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Sequence
from pathlib import Path

_CHECK_S = 0.1


def end_with_node(folders: Sequence[Path]) -> None:
    """End this process, an actor's, when its raylet ends.

    Args:
        folders: what is to be removed then; the caller may still add some.
    """
    raylet_pid = os.getppid()

    def wait() -> None:
        while os.getppid() == raylet_pid:
            time.sleep(_CHECK_S)
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=wait, name="end with node", daemon=True).start()
