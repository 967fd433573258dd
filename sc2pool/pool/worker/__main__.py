"""A worker's first lines: it follows its trainer before it imports what takes long.

python -m sc2pool.pool.worker TRAINER_PID CHANNEL LIFELINE MEMORY REQUEST_BELL REPLY_BELL
"""

from __future__ import annotations

import sys

from sc2pool.processes.with_parent import end_group_with

if __name__ == "__main__":
    end_group_with(int(sys.argv[1]), int(sys.argv[3]))

    from sc2pool.pool.worker.worker import main

    main(sys.argv[2:])
