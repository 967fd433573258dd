"""The end of what a child process prints, in a file whose size is fixed before the child starts.

    child ── pipe ──► thread ──► ring of 64 KiB in a mapped file ──► `tail`; `read_tail`, anywhere

Why a pipe and a ring: a file that the child writes by itself grows as fast as the disk takes it,
however often it is cut (800 MB in 8 s), and a limit of the system (RLIMIT_FSIZE) would hold for
the child's other files, too, and kill it. Why a thread: the event loop of a worker may be blocked.
Why a mapped file: a process that is killed leaves the ring behind, for the one that asks why.

Rules:
- a flood costs this process little: after each read the thread rests, so the pipe
  is full and the child waits for it, at 32 MB/s;
- a child that is no flood never waits for long: while this process is stopped, or does not let
  the thread run, the child can print what the pipe holds (64 KiB on Linux) before it has to wait.
  A game that is stepped gets no requests then, so only one in real time can lose anything;
- on a full disk the ring is in memory only; nothing but that is lost.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

RING_BYTES: Final = 1 << 16
_TOTAL: Final = struct.Struct("<Q")
"""Before the ring: how many bytes were written into it so far."""
_SIZE_BYTES: Final = _TOTAL.size + RING_BYTES
_REST_S: Final = 0.002
_END_S: Final = 1.0
"""How long a child that has ended may take to be read to its end. Only another process that holds
the pipe makes it take any time."""


class Output:
    """The output of one child, which gets `writing_end` as its stdout and stderr.

    Args:
        path: of the ring's file.

    Raises:
        OSError: no descriptor is free.
    """

    def __init__(self, path: Path) -> None:
        self._ring = _ring(path)
        self._total = 0
        self._lock = threading.Lock()
        self._reading_end, self.writing_end = os.pipe()
        self._thread = threading.Thread(target=self._run, name="sc2pool-output", daemon=True)
        self._waited = False

    def begin(self) -> None:
        """The child has been started: read what it prints."""
        self._thread.start()
        os.close(self.writing_end)

    def abandon(self) -> None:
        """The child could not be started."""
        os.close(self.writing_end)
        os.close(self._reading_end)
        self._ring.close()

    def _run(self) -> None:
        # This thread owns the descriptor: another process may hold the pipe for longer.
        with os.fdopen(self._reading_end, "rb", buffering=0) as reading_end:
            while printed := reading_end.read(RING_BYTES):
                with self._lock:
                    if self._ring.closed:
                        return
                    self._put(printed)
                time.sleep(_REST_S)

    def _put(self, printed: bytes) -> None:
        begin = self._total % RING_BYTES
        first = printed[: RING_BYTES - begin]
        rest = printed[len(first) :]
        at = _TOTAL.size + begin
        self._ring[at : at + len(first)] = first
        self._ring[_TOTAL.size : _TOTAL.size + len(rest)] = rest
        self._total += len(printed)
        _TOTAL.pack_into(self._ring, 0, self._total)

    def tail(self, *, ended: bool) -> bytes:
        """The newest `RING_BYTES` that were printed.

        Args:
            ended: whether the child has ended; then all that it printed is read before.
        """
        if ended and not self._waited:
            self._waited = True
            self._thread.join(_END_S)
        with self._lock:
            return _in_order(self._ring[:])

    def close(self) -> None:
        """Give back the ring; `tail` must not be called again. The file is not deleted."""
        with self._lock:
            self._ring.close()


def read_tail(path: Path) -> bytes:
    """As `Output.tail`, of a process that may be gone; empty if there is no such file."""
    with suppress(OSError):
        content = path.read_bytes()
        if len(content) == _SIZE_BYTES:
            return _in_order(content)
    return b""


def _ring(path: Path) -> mmap.mmap:
    try:
        path.write_bytes(bytes(_SIZE_BYTES))
        with path.open("r+b") as file:
            return mmap.mmap(file.fileno(), _SIZE_BYTES)
    except OSError:
        return mmap.mmap(-1, _SIZE_BYTES)


def _in_order(content: bytes) -> bytes:
    (total,) = _TOTAL.unpack_from(content)
    ring = content[_TOTAL.size :]
    if total <= RING_BYTES:
        return ring[:total]
    begin = total % RING_BYTES
    return ring[begin:] + ring[:begin]
