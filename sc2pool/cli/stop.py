"""Handles Ctrl-C, SIGTERM and SIGHUP: the first signal asks for an end, the second forces it.

On Windows, it handles Ctrl-C, Ctrl-Break and the closing of the console.

The function `say` prints, and does not fail if the terminal or pipe is closed or the disk is full.

Rules: inside `Stop.polite()` the first signal only sets `Stop.signal`, so the training loop ends
between two steps and saves a whole model. Outside of `polite`, and at a second signal, the handler
raises `Stopped`. The handler takes no lock and formats no text, because it may interrupt any code.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TextIO

from sc2pool.utilities import WINDOWS, closing_breaks, printable

_SAVING = b"\nstopping and saving; press Ctrl-C again to stop without saving\n\n"
"""The message ends with an empty line, over which the progress bar can be drawn."""


FULL_DISK = (errno.ENOSPC, errno.EDQUOT)
_refused: list[OSError] = []
"""The error of the last call of `say` if the disk was full; otherwise empty."""


class Stopped(KeyboardInterrupt):
    """Raised to end the program after a signal; `exit_code` is 128 + the signal's number."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.Signals(signal_number).name)
        self.exit_code = 128 + signal_number


def _signals() -> list[signal.Signals]:
    asking = [signal.SIGINT, signal.SIGTERM]
    if WINDOWS:
        asking.append(signal.SIGBREAK)
    elif signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        asking.append(signal.SIGHUP)
    return asking


class Stop:
    """A signal's request to stop the program; `signal` is None without such a request."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._polite = False

    @property
    def exit_code(self) -> int:
        """0 before the first signal, then 128 + the signal's number, as in a shell."""
        return 0 if self.signal is None else 128 + self.signal

    @contextmanager
    def handling(self) -> Iterator[None]:
        """Handle the signals in the block; afterwards restore the previous handlers.

        A SIGHUP that is ignored, as in a program started with nohup, stays ignored.
        """
        before = {number: signal.signal(number, self._handle) for number in _signals()}
        try:
            with closing_breaks():
                yield
        except KeyboardInterrupt as interrupt:
            if self.signal is None or isinstance(interrupt, Stopped):
                raise
            raise Stopped(self.signal) from None  # Ray raised a KeyboardInterrupt, not `Stopped`
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def polite(self) -> Iterator[None]:
        """Within the block, the first signal only sets `signal`, and raises nothing."""
        self._polite = True
        try:
            yield
        finally:
            self._polite = False

    def _handle(self, signal_number: int, _frame: FrameType | None) -> None:
        if self._polite and self.signal is None:
            self.signal = signal_number
            with suppress(OSError):  # after SIGHUP the terminal may be closed
                os.write(2, _SAVING)
            return
        self.signal = signal_number
        raise Stopped(signal_number)


def say(words: str) -> None:
    """Print lines; does not fail if the terminal or pipe is closed or the disk is full.

    Control characters are escaped, because names may come from files or from a game.
    """
    _refused.clear()
    try:
        print(printable(words, None, keep="\n"), flush=True)
    except BrokenPipeError:
        drop_closed(sys.stdout)
    except OSError as error:
        if error.errno in FULL_DISK:
            _refused.append(error)


def check_said() -> None:
    """If the disk was full in the last call of `say`, raise its error.

    `say` itself does not raise, so that a full disk does not end a training. A command calls this
    function at its end.
    """
    if _refused:
        raise _refused.pop()


def drop_closed(stream: TextIO) -> bool:
    """If `stream` is a pipe that its reader has closed, discard later output and return True."""
    try:
        stream.flush()
        if WINDOWS:
            return False
        poll = select.poll()
        poll.register(stream, select.POLLOUT)
        if not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0)):
            return False
    except BrokenPipeError:
        pass
    discard(stream)
    return True


def discard(stream: TextIO) -> None:
    """Discard the output of a stream that cannot be written, including the stream's buffer.

    Otherwise the interpreter would try to write the buffer when it exits, and print an error.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
