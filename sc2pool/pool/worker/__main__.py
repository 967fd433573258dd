"""A worker's entry point; the worker becomes a follower of its trainer before slow imports.

A worker is in a background process group of the trainer's terminal. A terminal with `stty tostop`
stops such a group at its first output, unless the worker ignores the signal.

The trainer starts `python -m sc2pool.pool.worker` as a follower (`processes.with_parent`), a
process that ends with the trainer. The worker inherits four descriptors: the control socket, the
request doorbell, the reply doorbell and the pool's memory.
"""

from __future__ import annotations

import gc
import signal
import sys

from sc2pool.processes.with_parent import become_follower

if __name__ == "__main__":
    if hasattr(signal, "SIGTTOU"):  # Windows lacks this signal
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    descriptors = become_follower(sys.argv[1:])

    gc.disable()  # imports make no garbage, and collecting would take a seventh of the start time
    from sc2pool.pool.worker.worker import main

    gc.freeze()  # exempt the imported objects from later collections
    gc.enable()
    main(*descriptors)
