"""Runs a child process that answers messages; this file has the parent's and the child's code.

The parent sends a request (`request`), and the child answers with the result or the exception of
its handler (`handle`).

Rules:
* The two processes take turns. The child process acts only when it gets a message, and sends one
  reply to each message.
* If the child's handler raises an exception, the request raises an exception of the same type.
* The child process ends when the parent closes it, leaves the block of its `lifeline` or exits,
  even if the child is still starting. Ctrl-C does not reach the child.
* A request has no time limit while the child uses the CPU. If the child uses no CPU time, it is
  stopped or waits for ever, so the request fails.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from sc2pool.errors import SC2PoolError
from sc2pool.platform import WINDOWS
from sc2pool.pool.ipc import Channel, ChannelClosedError, RemoteTraceback, describe, original
from sc2pool.pool.messages import Raised
from sc2pool.processes.spawn import describe_exit, leave_interrupts_to_parent, uninterrupted
from sc2pool.processes.tree import active_s, is_ready
from sc2pool.processes.with_parent import Follower, start_follower

_SILENT_S: Final = 60.0
"""A request fails if the child has used no CPU time for this long."""
_READS_WITHIN_S: Final = 120.0
"""How long the child may take to read a message; a new child first imports its modules."""
_CHECKS: Final = 20
"""How often the child's CPU time is checked within `_SILENT_S`."""
_EXITS_WITHIN_S: Final = 5.0
"""How long a process that has closed its socket may take to exit."""


class ChildProcess:
    """Starts a child process that runs `answer`, and waits for the reply to a first message.

    Args:
        module: the child's main module; it must call `become_follower` before its slow imports, and
            then `answer` with the descriptor of its socket.
        first: the message to send first.
        name: the process's name in error messages ("the process that computes the updates").
        error: the type of error to raise if the process has exited or hangs.

    Attributes:
        lifeline: a context manager whose end kills the process; see `Follower`.

    Raises:
        SC2PoolError, Exception: the errors that `request` raises.
    """

    def __init__(self, module: str, first: Any, *, name: str, error: type[SC2PoolError]) -> None:
        self._name = name
        self._error = error
        ours, theirs = socket.socketpair()
        self._channel = Channel(ours, _READS_WITHIN_S)
        with theirs:
            try:
                self._follower = uninterrupted(lambda: _start(module, theirs))
            except BaseException:
                ours.close()
                raise
            self.lifeline = self._follower.lifeline
            self._process = self._follower.process
            if not WINDOWS:  # on Windows the socket stays open until the child has copied it
                theirs.close()
            try:
                self.request(first)
            except BaseException:
                self.close()
                raise

    def request(self, message: Any) -> Any:
        """Send a message, and return the result of the child's `handle`.

        Raises:
            SC2PoolError: the process has exited, or uses no CPU time; the error's type is `error`.
            Exception: the exception of the child's `handle`.
        """
        try:
            self._channel.send(message)
            replies: list[Any] = []
            while not replies:
                self._wait_for_reply()
                replies = self._channel.receive()
        except ChannelClosedError as error:
            raise self._error(f"{self._name} {self._how_it_ended()}") from error
        (reply,) = replies
        if isinstance(reply, Raised):
            raised = original(reply)
            if raised is None:
                raised = self._error(f"{self._name} failed: {reply.summary}")
            raise raised from RemoteTraceback(reply.evidence.traceback)
        return reply

    def _wait_for_reply(self) -> None:
        """Wait until a reply, or the end of the channel, can be read."""
        silent = 0
        now_s = active_s(self._process.pid)
        while not self._channel.readable(_SILENT_S / _CHECKS):
            before_s, now_s = now_s, active_s(self._process.pid)
            did_nothing = now_s == before_s and not is_ready(self._process.pid)
            silent = silent + 1 if did_nothing else 0
            if silent == _CHECKS:
                raise self._error(
                    f"{self._name} (pid {self._process.pid}) has used no CPU time for "
                    f"{_SILENT_S:g} s, although a reply is awaited"
                )

    def _how_it_ended(self) -> str:
        """Describe how the process has ended; if it has not ended, say that it does not answer."""
        try:
            return f"has ended: {describe_exit(self._process.wait(_EXITS_WITHIN_S))}"
        except subprocess.TimeoutExpired:
            return f"(pid {self._process.pid}) does not answer"

    def close(self) -> None:
        """End the process; may be called again."""
        self._channel.close()
        self._follower.kill()
        self._process.wait()
        self._follower.close()


def _start(module: str, connection: socket.socket) -> Follower:
    # The child's own session gives it a fair share of the CPU; see `start_python`.
    return start_follower(module, [connection.fileno()], {}, own_session=True)


def answer(descriptor: int, handle: Callable[[Any], Any], phase: str) -> None:
    """In the child: reply to each message with `handle(message)`, until the channel closes.

    Args:
        descriptor: the socket's descriptor, from `become_follower`.
        handle: the function that answers a message; its result or exception is sent pickled.
        phase: the name of the child's work in messages about an exception.
    """
    leave_interrupts_to_parent()
    channel = Channel(socket.socket(fileno=descriptor))
    messages: list[Any] = []
    with suppress(ChannelClosedError):
        while True:
            messages += channel.receive()
            while messages:
                channel.send(_reply_to(messages.pop(0), handle, phase))


def _reply_to(message: Any, handle: Callable[[Any], Any], phase: str) -> Any:
    try:
        return handle(message)
    except BaseException as error:
        return describe(error, phase)
