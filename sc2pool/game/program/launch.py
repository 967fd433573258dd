"""From an installation to a game that answers: lease, spawn, wait, prove, connect.

Rules:
* Nothing is sent to a port's listening process until that process is known to be our game. If the
  system does not reveal that process, the launch continues and is marked unproven.
* A game accepts a single websocket, called its seat. We connect as soon as the game listens. If
  another program has taken the seat, another game is started immediately, on another port.
* The wait ends when the game answers, when its process ends, or at the deadline.
* A program that refuses the websocket's handshake is given up: immediately if its answer is not
  HTTP, else some seconds later, because a game may refuse while it starts.
* A game that a signal has stopped is given up here, because the watchdog does not watch it yet.
* A taken port uses up one try. An executable that is missing, not executable or being written may
  be in the middle of an update, and is tried again until the deadline. Other failures are final.
* After any failure, process, port, descriptors and files are released.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import psutil

from sc2pool.deadline import Deadline
from sc2pool.errors import ConfigError, FaultKind, GameFault
from sc2pool.game.connection import Connection, GameAPI
from sc2pool.game.program.installation import Installation
from sc2pool.game.program.lease import PortLease, lease_directory
from sc2pool.game.program.process import BEING_WRITTEN, KILLED, GameProcess
from sc2pool.game.wire import NotReadyError, connect
from sc2pool.processes.filelock import try_lock, unlock_and_remove
from sc2pool.processes.spawn import is_shortage

_POLL_S: Final = 0.004
"""Seconds between two checks whether the game listens. On average we connect half of this time
after the game listens, so another program may be first. Polling this often takes 3 % of a core."""
_SEAT_POLL_S: Final = 0.25
"""Time between two checks of which program has the seat, while no handshake is answered."""
_STOP_POLL_S: Final = 0.5
"""Time between two checks whether a signal has stopped the game."""
_STOPPED_LOOKS: Final = 3
"""How many checks in a row must find the game stopped. Time is not measured, because this process
may have been stopped as well (Ctrl-Z, a closed lid)."""
_APART_S: Final = 0.1
"""The least time, in seconds, between the starts of two games."""
_TURN_POLL_S: Final = 0.01
_TURN_WAIT_S: Final = 10.0
"""The longest wait for the turn to start a game; a stopped process may hold the turn."""
_UPDATE_POLL_S: Final = 0.2
"""Time between two tries to start an executable that may be in the middle of an update."""
_REFUSES_FOR_S: Final = 10.0
"""How long, in seconds, a game may refuse the handshake while it starts."""
_PORT_TRIES: Final = 5
_Connects = Callable[[socket.socket], Coroutine[Any, Any, Connection]]
"""A function that opens the websocket over a socket that is connected to the game's port."""


async def launch(
    installation: Installation,
    deadline: Deadline,
    *,
    directory: Path | None = None,
    core_file_bytes: int = 0,
    warn: Callable[[str], None] = lambda _: None,
    lease_port: Callable[[], PortLease] = PortLease.acquire,
    connection_type: type[Connection] = Connection,
    in_turn: bool = True,
) -> GameAPI:
    """Starts a game and connects to it, all before the deadline.

    `directory` is for the game's temporary files (None: the system's folder). For `warn` see
    `Connection`. If `in_turn`, the game starts at least `_APART_S` seconds after every other game.
    Raises ConfigError if the executable cannot be started before the deadline. Raises GameFault
    LAUNCH_FAILED (the game ended, or the system refused a resource), GAME_EXITED (the game was
    killed), STOPPED, PORT_TAKEN (in all tries) or DEADLINE.
    """
    spawn = partial(
        GameProcess.spawn, installation, directory=directory, core_file_bytes=core_file_bytes
    )
    with refusals_as_faults():
        for left in reversed(range(_PORT_TRIES)):
            lease = lease_port()
            try:
                connects = partial(connection_type.open, lease.port, deadline)
                api = await _try_port(
                    installation, lease, deadline, partial(spawn, lease), connects, in_turn=in_turn
                )
            except GameFault as fault:
                if fault.kind is not FaultKind.PORT_TAKEN or not left:
                    raise
            else:
                api.connection.warn = warn
                return api
    raise AssertionError("the last try returns or raises")


@contextmanager
def refusals_as_faults() -> Iterator[None]:
    """Turn an OSError in the block into a GameFault LAUNCH_FAILED."""
    try:
        yield
    except OSError as error:
        detail = f"the system refuses what a game needs: {error}"
        raise GameFault(FaultKind.LAUNCH_FAILED, detail, refused=is_shortage(error)) from error


async def _try_port(
    installation: Installation,
    lease: PortLease,
    deadline: Deadline,
    spawn: Callable[[], GameProcess],
    connects: _Connects,
    *,
    in_turn: bool,
) -> GameAPI:
    process, turn = None, _Turn()
    try:
        if in_turn:
            await turn.take(deadline)
        process = await _spawn(installation, deadline, spawn)
        connection, listener_pid = await _when_ready(process, lease.port, deadline, turn, connects)
    except BaseException:
        if process is not None:
            process.close()
        lease.release()
        raise
    finally:
        turn.end()
    return GameAPI(process, lease, connection, listener_pid)


async def _spawn(
    installation: Installation, deadline: Deadline, spawn: Callable[[], GameProcess]
) -> GameProcess:
    while True:
        try:
            return spawn()
        except ConfigError as error:
            if deadline.expired() or not _is_being_replaced(installation.executable, error):
                raise
        await asyncio.sleep(_UPDATE_POLL_S)


class _Turn:
    """The exclusive right to start a game: no other game of this user starts within `_APART_S`.

    Games that started at the same moment were seen to fail on Linux. The right is a lock that all
    pools of this user take; the system frees it when the holding process ends. If the lock cannot
    be created, or a process keeps it too long, games start without it.
    """

    def __init__(self) -> None:
        self._held: tuple[int, Path] | None = None
        self._over_s = 0.0

    async def take(self, deadline: Deadline) -> None:
        """Wait for the right to start a game; give up after `_TURN_WAIT_S` or at the deadline."""
        wait = Deadline.after(min(_TURN_WAIT_S, deadline.remaining_s()))
        with suppress(ConfigError, OSError):
            path = lease_directory() / "launch-turn"
            while (held := try_lock(path)) is None and not wait.expired():
                await asyncio.sleep(_TURN_POLL_S)
            if held is not None:
                self._held = held, path
        self._over_s = time.monotonic() + _APART_S

    def end_in_time(self) -> None:
        """Release the right to start a game if it was taken `_APART_S` seconds ago or earlier."""
        if time.monotonic() >= self._over_s:
            self.end()

    def end(self) -> None:
        """Release the right; may be called again."""
        held, self._held = self._held, None
        if held is not None:
            unlock_and_remove(*held)


def _is_being_replaced(executable: Path, error: ConfigError) -> bool:
    """True if the start may have failed because an update is replacing the executable."""
    cause = error.__cause__
    written = isinstance(cause, OSError) and (
        cause.errno == errno.ETXTBSY or getattr(cause, "winerror", None) == BEING_WRITTEN
    )
    return written or not os.access(executable, os.X_OK)


async def _when_ready(
    process: GameProcess, port: int, deadline: Deadline, turn: _Turn, connects: _Connects
) -> tuple[Connection, int | None]:
    refuses: Deadline | None = None
    stops = _Stops(process)
    while True:
        turn.end_in_time()
        stops.check()
        code = process.exit_code()  # read before the output: an ended game's output is complete
        if process.port_refused():
            raise GameFault(FaultKind.PORT_TAKEN, f"the game could not listen on port {port}")
        if code is not None:
            # The kernel may have killed the game (memory pressure), so another launch may succeed.
            kind = FaultKind.GAME_EXITED if code == KILLED else FaultKind.LAUNCH_FAILED
            raise process.exit_fault(kind)
        if deadline.expired():
            raise GameFault(
                FaultKind.DEADLINE,
                f"the game (pid {process.pid}) was not ready in time{process.log_note()}",
            )
        listener_pid = None
        try:
            sock = connect(port)
            listener_pid = _prove_listener(process, port, sock)
            return await _take_seat(process, port, sock, connects, stops), listener_pid
        except NotReadyError as not_ready:
            if not_ready.answer:
                refuses = refuses or Deadline.after(_REFUSES_FOR_S)
                if not_ready.final or refuses.expired():
                    raise _speaks_otherwise(process, listener_pid, not_ready.answer) from not_ready
            await asyncio.sleep(_POLL_S)


class _Stops:
    """Checks now and then whether a signal has stopped the game."""

    def __init__(self, process: GameProcess) -> None:
        self._process = process
        self._next_look = Deadline.after(_STOP_POLL_S)
        self._found = 0

    def check(self) -> None:
        """Check at intervals; GameFault STOPPED if the last checks found the game stopped."""
        if not self._next_look.expired():
            return
        self._next_look = Deadline.after(_STOP_POLL_S)
        self._found = self._found + 1 if self._process.is_stopped() else 0
        if self._found == _STOPPED_LOOKS:
            detail = "the game was stopped by a signal and not continued"
            raise GameFault(FaultKind.STOPPED, detail)


def _speaks_otherwise(process: GameProcess, listener_pid: int | None, answer: str) -> GameFault:
    # An unproven listener may be another program, so only its port is given up.
    # The text lacks the port and the pid, because two equal failures end the tries.
    return GameFault(
        FaultKind.PORT_TAKEN if listener_pid is None else FaultKind.LAUNCH_FAILED,
        "the program does not speak StarCraft II's protocol: it answers the websocket's handshake "
        f"with {answer!r}{process.log_note()}",
    )


def _prove_listener(process: GameProcess, port: int, sock: socket.socket) -> int | None:
    """The listener's pid or None; PORT_TAKEN if another program listens, NotReadyError if none."""
    try:
        pid = find_listener(process.family(), port)
    except (psutil.Error, OSError):
        return None
    if pid is None:
        sock.close()
        connect(port).close()  # NotReadyError if the listener was our game, which has just ended
        raise GameFault(
            FaultKind.PORT_TAKEN, f"a process other than the game listens on port {port}"
        )
    return pid


async def _take_seat(
    process: GameProcess, port: int, sock: socket.socket, connects: _Connects, stops: _Stops
) -> Connection:
    """Open the game's websocket over a socket that is connected to its port.

    Raises NotReadyError if the game does not answer yet, or has ended. Raises GameFault STOPPED if
    the game is stopped, PORT_TAKEN if another program has the seat or is our peer.
    """
    own_port: int = sock.getsockname()[1]
    opening = asyncio.ensure_future(connects(sock))
    try:
        while not (await asyncio.wait([opening], timeout=_SEAT_POLL_S))[0]:
            _require_free_seat(process, port, own_port)
            stops.check()
        connection = opening.result()
    except NotReadyError:
        _require_free_seat(process, port, own_port)
        raise
    except BaseException:
        opening.cancel()
        await asyncio.wait([opening])
        raise
    clients = _clients(process, port)
    if clients is not None and own_port not in clients:
        connection.abort()
        if process.exit_code() is not None:
            raise NotReadyError  # the game has ended; `_when_ready` says how
        raise GameFault(FaultKind.PORT_TAKEN, f"the peer on port {port} is not the game")
    return connection


def _require_free_seat(process: GameProcess, port: int, own_port: int) -> None:
    strangers = (_clients(process, port) or set()) - {own_port}
    if strangers:
        raise GameFault(
            FaultKind.PORT_TAKEN,
            f"another program has connected to the game's port {port}, from port {min(strangers)}",
        )


def _clients(process: GameProcess, port: int) -> set[int] | None:
    """The ports of the game's clients; None if unknown."""
    try:
        found = list(_connections(process.family(), port, psutil.CONN_ESTABLISHED))
    except (psutil.Error, OSError):
        return None
    return {connection.raddr.port for _, connection in found}


def find_listener(processes: list[psutil.Process], port: int) -> int | None:
    """The pid of the listener among `processes`, or None; psutil.Error or OSError if hidden."""
    return next((pid for pid, _ in _connections(processes, port, psutil.CONN_LISTEN)), None)


def _connections(
    processes: list[psutil.Process], port: int, status: str
) -> Iterator[tuple[int, Any]]:
    """The processes' connections with this state at this port, each with the process's pid."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            for connection in process.net_connections(kind="tcp"):
                if connection.status == status and connection.laddr.port == port:
                    yield process.pid, connection
