"""The end of what a child process prints, in a file whose size is fixed before the child starts.

    child ── pipe ──► thread ──► ring of 64 KiB, and its copy in a file ──► `tail`; `read_tail`

Why a pipe and a ring: a file that the child writes by itself grows as fast as the disk takes it,
however often it is cut (800 MB in 8 s), and a limit of the system (RLIMIT_FSIZE) would hold for
the child's other files, too, and kill it. Why a thread: the event loop of a worker may be blocked.
Why a file: a process that is killed leaves the ring behind, for the one that asks why. It is not
mapped, because who cuts a mapped file ends the process that writes into it.

Rules:
- a flood costs this process little: after each read the thread rests, so the pipe
  is full and the child waits for it, at 32 MB/s;
- a child that is no flood never waits for long: while this process is stopped, or does not let
  the thread run, the child can print what the pipe holds (64 KiB on Linux) before it has to wait.
  A game that is stepped gets no requests then, so only one in real time can lose anything;
- on a full disk the ring is in memory only; nothing but that is lost.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from sc2pool.processes.shortage import start_thread

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

    Raises:
        OSError: the system refuses descriptors or a thread.
    """

    def __init__(self, path: Path) -> None:
        self._total = 0
        self._lock = threading.Lock()
        self._waited = False
        self._ring = bytearray(_SIZE_BYTES)
        self._closed = False
        with ExitStack() as undo:
            self._file = _open(path)
            undo.callback(self._close_file)
            self._reading_end, self.writing_end = os.pipe()
            undo.callback(os.close, self._reading_end)
            undo.callback(os.close, self.writing_end)
            self._thread = start_thread(self._run, "sc2pool-output")
            undo.pop_all()

    def hand_over(self) -> None:
        """Only the child holds the writing end from now on, if it could be started."""
        os.close(self.writing_end)

    def _run(self) -> None:
        # This thread owns the descriptor: another process may hold the pipe for longer.
        with os.fdopen(self._reading_end, "rb", buffering=0) as reading_end:
            while printed := reading_end.read(RING_BYTES):
                with self._lock:
                    if self._closed:
                        return
                    self._put(printed)
                time.sleep(_REST_S)

    def _put(self, printed: bytes) -> None:
        begin = self._total % RING_BYTES
        first = printed[: RING_BYTES - begin]
        self._total += len(printed)
        self._write(_TOTAL.size + begin, first)
        self._write(_TOTAL.size, printed[len(first) :])
        self._write(0, _TOTAL.pack(self._total))

    def _write(self, at: int, data: bytes) -> None:
        self._ring[at : at + len(data)] = data
        if self._file is not None:
            with suppress(OSError):
                os.lseek(self._file, at, os.SEEK_SET)
                os.write(self._file, data)

    @property
    def total_bytes(self) -> int:
        """How many bytes of the output were read so far."""
        return self._total

    def tail(self, *, ended: bool) -> bytes:
        """The newest `RING_BYTES` that were printed.

        Args:
            ended: whether the child has ended; then all that it printed is read before.
        """
        if ended:
            self._wait_for_end()
        with self._lock:
            return _in_order(bytes(self._ring))

    def _wait_for_end(self) -> None:
        if not self._waited:
            self._waited = True
            self._thread.join(_END_S)

    def close(self) -> None:
        """Keep no more of it, once it has ended; may be called again. The file is not deleted."""
        self._wait_for_end()  # else the thread's descriptor would be open for a moment longer
        with self._lock:
            self._closed = True
            self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def read_tail(path: Path) -> bytes:
    """As `Output.tail`, of a process that may be gone; empty if there is no such file."""
    with suppress(OSError):
        content = path.read_bytes()
        if len(content) == _SIZE_BYTES:
            return _in_order(content)
    return b""


def _open(path: Path) -> int | None:
    """A new file of the ring's size; None if there is no room for it."""
    try:
        path.write_bytes(bytes(_SIZE_BYTES))
        return os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0))  # on Windows "\n" grows else
    except OSError:
        return None


def _in_order(content: bytes) -> bytes:
    (total,) = _TOTAL.unpack_from(content)
    ring = content[_TOTAL.size :]
    if total <= RING_BYTES:
        return ring[:total]
    begin = total % RING_BYTES
    return ring[begin:] + ring[:begin]
