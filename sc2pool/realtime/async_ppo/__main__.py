"""The update process's first lines: it follows its trainer before it imports torch.

python -m sc2pool.realtime.async_ppo, started as a follower, which gets the socket
"""

from __future__ import annotations

import sys

from sc2pool.processes.follower import become_follower

if __name__ == "__main__":
    (descriptor,) = become_follower(sys.argv[1:])

    from sc2pool.realtime.async_ppo.update_process import main

    main(descriptor)
