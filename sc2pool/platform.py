"""Which form of a system primitive this process uses: that of Linux, of Windows, or a portable one.

Memory is a memfd on Linux, else an unlinked file; Windows deletes the file at its last close.
A doorbell is an eventfd with epoll on Linux, else a socket pair. A worker inherits its descriptors;
on Windows, copies are sent over its stdin. An instance gets its descriptors by SCM_RIGHTS; on
Windows, copies are sent with the trainer's order. When the trainer ends, signals (only on Linux)
and a lifeline end its processes; on Windows, a Job Object does. A process's end is noticed by a
pidfd on Linux, else by a thread. The states of processes are read from /proc on Linux, else by
psutil. A file lock is a flock; on Windows, it is made by msvcrt.locking.

Rule: no other module asks which system it runs on. The portable form works on every POSIX system,
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
"""True on Linux, unless an environment variable asks for the portable forms."""
SYSTEM: Final = sys.platform
"""The system's name, whichever forms of the primitives are used."""
