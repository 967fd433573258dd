"""Keeps the end of a child process's output, in a file of fixed size.

    child ── pipe ──► thread ──► ring of 64 KiB, and its copy in a file ──► `tail`; `read_tail`

Why a pipe and a ring: a file that the child writes itself grows as fast as the disk allows (800 MB
in 8 s). Truncating it does not help. A limit of the system (RLIMIT_FSIZE) would also apply to the
child's other files, and kill the child. Why a thread: the event loop of a worker may be blocked.
Why a file: it survives if this process is killed, and can still explain the end. The file is not
memory-mapped: if another process truncated it, writing into it would kill this process.

Rules:
- A child that prints a flood costs this process little. The thread rests after each read, so the
  pipe is full and the child waits, at 32 MB/s.
- Other children never wait for long. While this process is stopped, or does not let the thread run,
  the child can fill the pipe (64 KiB on Linux) before it has to wait. A stepped game then gets no
  requests, so only a game in real time can lose time.
- On a full disk the ring is only in memory.
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
"""The header before the ring: the number of bytes written into the ring so far."""
_SIZE_BYTES: Final = _TOTAL.size + RING_BYTES
_REST_S: Final = 0.002
_END_S: Final = 1.0
"""Time limit for reading the output of an ended child to its end. It takes long only if another
process holds the pipe."""


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
        """Close our copy of the writing end, after the start of the child."""
        os.close(self.writing_end)

    def _run(self) -> None:
        # This thread owns the descriptor, as another process may hold the pipe after `close`.
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
        """The number of bytes read so far."""
        return self._total

    def tail(self, *, ended: bool) -> bytes:
        """The newest `RING_BYTES` of the output.

        Args:
            ended: whether the child has ended. Then its whole output is read first.
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
        """Stop recording, once the child has ended; may be called again. The file stays."""
        self._wait_for_end()  # else the thread's descriptor would stay open a little longer
        with self._lock:
            self._closed = True
            self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def read_tail(path: Path) -> bytes:
    """Like `Output.tail`, from the file alone; empty if the file does not exist."""
    with suppress(OSError):
        content = path.read_bytes()
        if len(content) == _SIZE_BYTES:
            return _in_order(content)
    return b""


def _open(path: Path) -> int | None:
    """The descriptor of a new file of the ring's size; None if it cannot be written."""
    try:
        path.write_bytes(bytes(_SIZE_BYTES))
        return os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0))  # else Windows expands "\n"
    except OSError:
        return None


def _in_order(content: bytes) -> bytes:
    (total,) = _TOTAL.unpack_from(content)
    ring = content[_TOTAL.size :]
    if total <= RING_BYTES:
        return ring[:total]
    begin = total % RING_BYTES
    return ring[begin:] + ring[:begin]
