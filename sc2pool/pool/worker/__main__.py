"""A worker's first lines: it follows its trainer before it imports what takes long.

It is in a background group of the trainer's terminal. A terminal with `stty tostop` stops such a
group at its first output, if that does not ignore the signal.

python -m sc2pool.pool.worker TRAINER_PID CONTROL LIFELINE MEMORY REQUEST_BELL REPLY_BELL
"""

from __future__ import annotations

import gc
import signal
import sys

from sc2pool.processes.with_parent import end_group_with

if __name__ == "__main__":
    if hasattr(signal, "SIGTTOU"):  # Windows has none
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    end_group_with(int(sys.argv[1]), int(sys.argv[3]))

    gc.disable()  # an import makes no garbage; to look for it takes a seventh of the start
    from sc2pool.pool.worker.worker import main

    gc.freeze()  # later, too, nobody looks through what was imported
    gc.enable()
    main(sys.argv[2:])
