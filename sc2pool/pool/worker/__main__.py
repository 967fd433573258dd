"""A worker's first lines: it follows its trainer before it imports what takes long.

It is in a background group of the trainer's terminal. A terminal with `stty tostop` stops such a
group at its first output, if that does not ignore the signal.

python -m sc2pool.pool.worker, started as a follower (`processes.follower`), which gets: the control
socket, the doorbell of requests, the one of replies, the pool's memory.
"""

from __future__ import annotations

import gc
import signal
import sys

from sc2pool.processes.follower import become_follower

if __name__ == "__main__":
    if hasattr(signal, "SIGTTOU"):  # Windows has none
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    descriptors = become_follower(sys.argv[1:])

    gc.disable()  # an import makes no garbage; to look for it takes a seventh of the start
    from sc2pool.pool.worker.worker import main

    gc.freeze()  # the collector never looks at what was imported
    gc.enable()
    main(*descriptors)
