"""Which form of a system primitive this process uses: Linux's, Windows', or the portable form.

    primitive                  Linux              portable            Windows, if different
    memory                     memfd              unlinked file       deleted at its last close
    doorbell                   eventfd, epoll     socket pair
    descriptors of a worker    inherited          inherited           copied, sent over its stdin
    of an instance             SCM_RIGHTS         SCM_RIGHTS          copied, sent with the order
    end with the trainer       signals, lifeline  lifeline            Job Object
    end of a process           pidfd              a thread
    states of processes        /proc              psutil
    lock                       flock              flock               msvcrt.locking

Rules: only this module asks which system it runs on. The portable form works on every POSIX system,
so the whole test suite can run with it on Linux (`SC2POOL_PORTABLE=1`, which child processes
inherit).
"""

from __future__ import annotations

import os
import sys
from typing import Final

WINDOWS: Final = sys.platform == "win32"
"""True on Windows."""
LINUX: Final = sys.platform == "linux" and os.environ.get("SC2POOL_PORTABLE", "0") in ("", "0")
"""True on Linux, unless the environment asks for the portable forms."""
SYSTEM: Final = sys.platform
"""The system's name, whatever forms are used."""
