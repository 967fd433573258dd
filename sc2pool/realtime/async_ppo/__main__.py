"""The update process's entry point: it becomes a follower of its trainer before it imports torch.

`python -m sc2pool.realtime.async_ppo` is started as a follower and inherits the socket.
"""

from __future__ import annotations

import sys

from sc2pool.utilities import become_follower

if __name__ == "__main__":
    (descriptor,) = become_follower(sys.argv[1:])

    from sc2pool.realtime.async_ppo.update_process import main

    main(descriptor)
