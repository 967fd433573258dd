"""The entry point of the update process, which is tied to its trainer before it imports torch.

`python -m sc2pool.realtime.async_ppo` inherits its trainer's socket, and ends with the trainer.
"""

from __future__ import annotations

import sys

from sc2pool.utilities import become_follower

if __name__ == "__main__":
    (descriptor,) = become_follower(sys.argv[1:])

    from sc2pool.realtime.async_ppo.update_process import main

    main(descriptor)
