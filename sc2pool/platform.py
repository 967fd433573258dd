"""Which form of a primitive this process uses: Linux's own, Windows' own, or the portable one.

    what                       Linux              portable            Windows, where it differs
    memory                     memfd              unlinked file       deleted at its last close
    doorbell                   eventfd, epoll     socket pair
    descriptors of a worker    inherited          inherited           copied, told over its stdin
    of an instance             SCM_RIGHTS         SCM_RIGHTS          copied, told with the order
    ends with the trainer      signals, lifeline  lifeline            Job Object
    end of a process           pidfd              a thread
    states of processes        /proc              psutil
    lock                       flock              flock               msvcrt.locking

Rules: no other module asks for the system; the portable form works on every POSIX system, so the
whole suite can run with it on Linux (`SC2POOL_PORTABLE=1`, which child processes inherit).
"""

from __future__ import annotations

import os
import sys
from typing import Final

WINDOWS: Final = sys.platform == "win32"
LINUX: Final = sys.platform == "linux" and os.environ.get("SC2POOL_PORTABLE", "0") in ("", "0")
"""True if this is Linux, and its own forms are wanted."""
SYSTEM: Final = sys.platform
"""The system itself, whatever forms are wanted."""
