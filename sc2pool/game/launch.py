"""From an installation to a game that answers: lease, spawn, wait, prove, connect.

Rules:
- no byte is sent to a listener before its process is known to be our game (if the system cannot
  say, the launch goes on and is marked unproven);
- the wait ends at once when the process does, and at its deadline otherwise;
- a port that turns out to be taken costs one try; an executable that is missing, may not be
  executed or is being written may be in the middle of an update, and is tried again until the
  deadline; anything else that fails is final;
- whatever fails, process, port, descriptors and files are given back.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from sc2pool.deadline import Deadline
from sc2pool.errors import ConfigError, FaultKind, GameFault
from sc2pool.game.api import GameAPI
from sc2pool.game.connection import Connection
from sc2pool.game.installation import Installation
from sc2pool.game.lease import PortLease
from sc2pool.game.process import GameProcess
from sc2pool.game.wire import NotReadyError, connect

_POLL_S: Final = 0.02
_UPDATE_POLL_S: Final = 0.2
"""Time between two tries to start an executable that may be in the middle of an update."""
_PORT_TRIES: Final = 5
_KILLED: Final = -9
"""The exit code that `subprocess` gives for SIGKILL."""


async def launch(
    installation: Installation,
    deadline: Deadline,
    *,
    lease_port: Callable[[], PortLease] = PortLease.acquire,
) -> GameAPI:
    """Starts a game and connects to it.

    Args:
        installation: what to start.
        deadline: for all of it.
        lease_port: where ports come from.

    Raises:
        ConfigError: the executable cannot be started at all, or not before the deadline.
        GameFault: LAUNCH_FAILED (it ended), GAME_EXITED (it was killed), PORT_TAKEN (again and
            again), DEADLINE.
    """
    for _ in range(_PORT_TRIES - 1):
        try:
            return await _try_port(installation, lease_port(), deadline)
        except GameFault as fault:
            if fault.kind is not FaultKind.PORT_TAKEN:
                raise
    return await _try_port(installation, lease_port(), deadline)


async def _try_port(installation: Installation, lease: PortLease, deadline: Deadline) -> GameAPI:
    process = None
    try:
        process = await _spawn(installation, lease, deadline)
        connection, listener_pid = await _when_ready(process, lease.port, deadline)
    except BaseException:
        if process is not None:
            process.close()
        lease.release()
        raise
    return GameAPI(process, lease, connection, listener_pid)


async def _spawn(installation: Installation, lease: PortLease, deadline: Deadline) -> GameProcess:
    while True:
        try:
            return GameProcess.spawn(installation, lease)
        except ConfigError as error:
            if deadline.expired() or not _is_being_replaced(installation.executable, error):
                raise
        await asyncio.sleep(_UPDATE_POLL_S)


def _is_being_replaced(executable: Path, error: ConfigError) -> bool:
    """Whether a program could not be started because an update may be replacing it."""
    cause = error.__cause__
    written = isinstance(cause, OSError) and cause.errno == errno.ETXTBSY
    return written or not os.access(executable, os.X_OK)


async def _when_ready(
    process: GameProcess, port: int, deadline: Deadline
) -> tuple[Connection, int | None]:
    while True:
        if process.port_refused():
            raise GameFault(FaultKind.PORT_TAKEN, f"the game could not listen on port {port}")
        code = process.exit_code()
        if code is not None:
            # A game that the kernel kills (memory pressure) has not failed: the next may start.
            kind = FaultKind.GAME_EXITED if code == _KILLED else FaultKind.LAUNCH_FAILED
            raise process.exit_fault(kind)
        if deadline.expired():
            raise GameFault(
                FaultKind.DEADLINE,
                f"the game (pid {process.pid}) was not ready in time{process.log_note()}",
            )
        try:
            sock = connect(port)
            listener_pid = _prove_listener(process, port, sock)
            return await Connection.open(port, deadline, sock), listener_pid
        except NotReadyError:
            await asyncio.sleep(_POLL_S)


def _prove_listener(process: GameProcess, port: int, sock: socket.socket) -> int | None:
    """The pid of our game's process that listens on `port`; None if the system does not say.

    Raises:
        GameFault: PORT_TAKEN; it is another process.
        NotReadyError: by now nothing listens there.
    """
    try:
        pid = find_listener(process.family(), port)
    except (psutil.Error, OSError):
        return None
    if pid is None:
        sock.close()
        connect(port).close()  # was it our game after all, which has ended this moment?
        raise GameFault(
            FaultKind.PORT_TAKEN, f"port {port} is listened on by another process than the game"
        )
    return pid


def find_listener(processes: list[psutil.Process], port: int) -> int | None:
    """The pid of the one that listens on the port; None if none of them does.

    Raises:
        psutil.Error, OSError: the system does not say.
    """
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            connections = process.net_connections(kind="tcp")
            if any(c.status == psutil.CONN_LISTEN and c.laddr.port == port for c in connections):
                return process.pid
    return None
