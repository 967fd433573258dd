"""Carries messages between trainer and worker as pickles, and has the sockets for them.

A channel (`Channel`) is a stream socket with the messages of one instance. A worker's control
socket (`Control`) carries the trainer's orders, together with descriptors. Rules:
* Values for a worker are pickled with cloudpickle, because their classes may come from the training
  script, which a worker does not import. Values for the trainer are pickled with plain pickle if
  possible, because plain pickle is 100 times faster.
* A worker sends an error of the user's code as data, and the trainer raises the error. The user
  must see the original error, so this code must work even if the user's exception cannot be
  constructed, printed or pickled.

Each connection is a socket pair between two processes of this package, and no other process holds
it. A message is a pickle in a frame: a 4-byte length, then the pickle's bytes. An order is pickled
too. On POSIX an order is a datagram that carries descriptors. On Windows an order is a frame in a
stream, with copies of the descriptors (`processes.windows`).

Sending a message has a time limit, because a stopped peer does not read. Receiving never waits, so
receive only when the socket is readable. Sending an order never waits. A worker needs no recovery
from a lost trainer, because the worker ends with the trainer.
"""

from __future__ import annotations

import pickle
import socket
import struct
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any, Final

from sc2pool import errors
from sc2pool.errors import SC2PoolError, UserCodeError
from sc2pool.platform import WINDOWS
from sc2pool.pool.messages import Answer, Evidence, Raised
from sc2pool.processes import windows

_SCRIPT_IN_CHILD = "__mp_main__"
"""The name of the script's module in a child of multiprocessing (spawn, forkserver)."""
_TO_WORKER = (
    "values for a worker process are pickled: a task's class with its attributes, functions of "
    "env_fns, options, arguments of calls"
)
_TO_TRAINER = (
    "values from a worker process are pickled: infos, results of calls, observations without a "
    "fixed layout"
)


def pickle_for_worker(value: Any) -> bytes:
    """Pickle a value for a worker, with the code of the script's classes and functions.

    Raises:
        Exception: the error of pickling, with a note that explains it.
    """
    return _by_value(value, _TO_WORKER)


def for_trainer(value: Any) -> bytes:
    """Pickle a value for the trainer; an error of pickling gets a note."""
    try:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:
        return _by_value(value, _TO_TRAINER)


def pickle_script_by_value() -> None:
    """Let cloudpickle pickle the script's classes and functions by value, in any process."""
    import cloudpickle  # noqa: PLC0415 - workers rarely need it

    script = sys.modules.get(_SCRIPT_IN_CHILD)
    if script is not None:  # `__main__` is always pickled by value
        cloudpickle.register_pickle_by_value(script)


def _by_value(value: Any, note: str) -> bytes:
    import cloudpickle  # noqa: PLC0415

    pickle_script_by_value()
    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:
        error.add_note(note)
        raise


_NO_TERMINAL = (
    "breakpoint() needs a terminal, which a worker process does not have: use DummySC2VecEnv, or "
    "serial=True, in a terminal"
)
"""The message to add to the debugger's exception `BdbQuit`, which has no message."""


class RemoteTraceback(Exception):
    """The traceback in the worker; it is shown as the cause of the exception in the trainer."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def of_the_user(error: BaseException) -> BaseException:
    """The error that the user's code raised, or a substitute; see `readable_error`.

    If Python has converted the user's StopIteration to a RuntimeError, return the StopIteration.
    """
    error = readable_error(error)
    if error.__cause__ is None:
        return error
    cause = readable_error(error.__cause__)
    converted = text_of(error) == "coroutine raised StopIteration"
    return cause if isinstance(cause, StopIteration) and converted else error


_READ_OF_ERRORS: Final = (
    "__class__",
    "__traceback__",
    "__cause__",
    "__context__",
    "__suppress_context__",
    "args",
)
"""The attributes that `isinstance`, `traceback` and this package read of every exception."""


def readable_error(error: BaseException) -> BaseException:
    """This exception, or a substitute if its attributes cannot be read or contradict its class.

    `isinstance` reads an attribute of the exception. If this read raised an error, each handler
    would fail, and the exception would never be reported. The substitute has the exception's name
    and traceback.
    """
    kind = type(error)
    try:
        for name in _READ_OF_ERRORS:
            getattr(error, name)
        getattr(error, "__notes__", None)
        if error.__class__ is kind and kind.__name__ == _name_of(kind) and kind.__qualname__:
            return error
        why = "its class says that it is another one"
    except BaseException as broken:  # user's code, which may raise KeyboardInterrupt
        why = f"its attributes raise {_name_of(type(broken))}"
    return substitute_for(error, why)


def substitute_for(error: BaseException, why: str) -> Exception:
    """An exception with the name and traceback of `error`; `why` replaces its message."""
    # Read attributes by the base classes' descriptors, because the error's class may override them.
    kind = type(error)
    own = {"__module__": type.__dict__["__module__"].__get__(kind)}
    made: Exception = type(_name_of(kind), (Exception,), own)(f"<no message: {why}>")
    return made.with_traceback(BaseException.__dict__["__traceback__"].__get__(error))


def _name_of(kind: type) -> str:
    """A class's own name, even if its metaclass has another `__name__`."""
    return str(type.__dict__["__name__"].__get__(kind))


def text_of(error: BaseException) -> str:
    """The exception's message, even if its `__str__` raises."""
    try:
        return str(error)
    except BaseException as broken:  # user's code, which may raise KeyboardInterrupt
        return f"<no message: its __str__ raised {_name_of(type(broken))}>"


def trace_of(error: BaseException) -> str:
    """The exception's formatted traceback, even if the exception cannot be formatted."""
    try:
        return "".join(traceback.format_exception(error))
    except BaseException:  # formatting runs code of the error's cause, which may raise
        frames = "".join(traceback.format_tb(error.__traceback__))
        return f"{frames}{type(error).__name__}: {text_of(error)}\n"


def describe(error: BaseException, phase: str, evidence: Evidence | None = None) -> Raised:
    """An exception as data, with its pickle if this process can load the pickle again."""
    error = readable_error(error)
    at_terminal = sys.stdin is not None and sys.stdin.isatty()  # only a serial pool has a terminal
    if type(error).__name__ == "BdbQuit" and not error.args and not at_terminal:
        error.args = (_NO_TERMINAL,)
    payload: bytes | None
    try:
        payload = for_trainer(error)
        pickle.loads(payload)
    except BaseException:  # user's code, which may raise SystemExit
        payload = None
    if evidence is None:
        evidence = Evidence(traceback=trace_of(error))
    return Raised(payload, f"{type(error).__name__}: {text_of(error)}", phase, evidence)


def original(raised: Raised) -> BaseException | None:
    """The exception; None if the worker could not pickle the exception."""
    if raised.payload is None:
        return None
    try:
        error = pickle.loads(raised.payload)
    except Exception:
        return None
    is_error = issubclass(type(error), BaseException) and readable_error(error) is error
    return error if is_error else None


def to_exception(raised: Raised, where: str, fault_report: str | None) -> SC2PoolError:
    """The error to raise: an error of this package that names the env, or a `UserCodeError`."""
    error = original(raised)
    ours: SC2PoolError
    if isinstance(error, SC2PoolError) and not isinstance(error, UserCodeError):
        # Use the base class, because the user's subclass may take other arguments than a message.
        kind = next(kind for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
        ours = kind(f"{where}, {raised.phase}: {text_of(error)}")
    else:
        ours = UserCodeError(
            f"{where}: the user's code raised while {raised.phase}: {raised.summary}\n"
            f"--- traceback ---\n{raised.evidence.traceback}"
        )
    if fault_report is not None:
        ours.add_note(f"The fault report is in {fault_report}")
    ours.__cause__ = error
    return ours


def to_result(answer: Answer) -> Any:
    """Return the result of a call, or raise its exception, of the same type if possible."""
    if answer.raised is None:
        assert answer.payload is not None
        return pickle.loads(answer.payload)
    error = original(answer.raised)
    if not isinstance(error, Exception):
        error = UserCodeError(answer.raised.summary)
    raise error from RemoteTraceback(answer.raised.evidence.traceback)


_CHUNK_BYTES = 1 << 18


class ChannelClosedError(Exception):
    """The other end of the channel is closed."""


class Channel:
    """One end of an instance's channel."""

    def __init__(self, connection: socket.socket, send_timeout_s: float | None = None) -> None:
        self._socket = connection
        self._socket.settimeout(send_timeout_s)
        self._buffer = bytearray()

    def fileno(self) -> int:
        return self._socket.fileno()

    def readable(self, timeout_s: float) -> bool:
        """Wait until data or the channel's end can be received; return False after `timeout_s`."""
        return bool(wait([self._socket], timeout_s))

    def send(self, message: Any) -> None:
        """Send one message; ChannelClosedError if the peer has closed, or does not read in time."""
        data = for_trainer(message)  # this uses cloudpickle if a space's class is in the script
        try:
            self._socket.sendall(frame(data))
        except OSError as error:
            # End the channel: this message may be half sent, so no other message can follow.
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            raise ChannelClosedError(str(error)) from error

    def receive(self) -> list[Any]:
        """Read once, and return the messages that are now complete; there may be none.

        Raises ChannelClosedError if the peer has closed its end and no message is left.
        """
        self._buffer += self.skip()
        return [pickle.loads(message) for message in take_frames(self._buffer)]

    def skip(self) -> bytes:
        """Read once, but unpickle nothing; ChannelClosedError if the peer has closed its end."""
        try:
            data = self._socket.recv(_CHUNK_BYTES)
        except OSError as error:
            raise ChannelClosedError(str(error)) from error
        if not data:
            raise ChannelClosedError("end of file")
        return data

    def close(self) -> None:
        self._socket.close()


_MOST_BYTES: Final = 1 << 16
_MOST_DESCRIPTORS: Final = 2


class Control:
    """One end of a worker's control socket. The trainer sets `peer_pid` before its first `send`."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._socket.setblocking(False)
        self._received = bytearray()
        self.peer_pid = 0

    @classmethod
    def pair(cls) -> tuple[Control, socket.socket]:
        """Make the trainer's end and the worker's socket; OSError if no descriptors are left."""
        if WINDOWS:
            ours, theirs = socket_pair()
        else:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        return cls(ours), theirs

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, order: Any, channel: socket.socket | None = None, spec: int = -1) -> None:
        """Send an order, with a channel and a memory's descriptor (`spec`) if they are given.

        The worker gets copies of the descriptors, and the caller must close its own. Raises OSError
        if the worker has exited or does not read.
        """
        if WINDOWS:
            copies = None
            if channel is not None:
                copied = windows.copied_socket(channel.fileno(), self.peer_pid)
                copies = copied, windows.copied_file(spec, self.peer_pid)
            data = frame(pickle.dumps((order, copies)))
            if self._socket.send(data) != len(data):
                raise BlockingIOError("the worker does not read")
        else:
            descriptors = () if channel is None else (channel.fileno(), spec)
            socket.send_fds(self._socket, [pickle.dumps(order)], descriptors)

    def receive(self) -> list[tuple[Any, list[int]]] | None:
        """The received orders, each with its descriptors; None if the trainer has exited."""
        if not WINDOWS:
            data, descriptors, _, _ = socket.recv_fds(self._socket, _MOST_BYTES, _MOST_DESCRIPTORS)
            return [(pickle.loads(data), descriptors)] if data else None
        try:
            data = self._socket.recv(_MOST_BYTES)
        except ConnectionError:
            return None
        if not data:
            return None
        self._received += data
        orders: list[tuple[Any, list[int]]] = []
        for message in take_frames(self._received):
            order, copies = pickle.loads(message)
            if copies is None:
                orders.append((order, []))
            else:
                channel, spec = copies
                orders.append((order, [windows.socket_of(channel), windows.file_of(spec)]))
        return orders

    def close(self) -> None:
        self._socket.close()


_LENGTH = struct.Struct("!I")


def frame(data: bytes) -> bytes:
    """The bytes to send for one message: its length and its content."""
    return _LENGTH.pack(len(data)) + data


def take_frames(received: bytearray) -> Iterator[bytes]:
    """Yield each complete message at the buffer's front; remove it when the next is requested."""
    while len(received) >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(received)
        end = _LENGTH.size + length
        if len(received) < end:
            return
        yield bytes(received[_LENGTH.size : end])
        del received[:end]


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Make two connected stream sockets; OSError if the system has no descriptors left."""
    pair = socket.socketpair()
    if WINDOWS:  # the pair is a TCP connection, whose small messages Nagle's algorithm would delay
        for end in pair:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return pair
