"""The listener on a port may be our game, another process, or gone."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import psutil
import pytest

from sc2pool.deadline import Deadline
from sc2pool.errors import FaultKind, GameFault
from sc2pool.game.program import launch as module
from sc2pool.game.program.installation import find_installation
from sc2pool.game.program.launch import _prove_listener, launch
from sc2pool.game.program.lease import PortLease, lease_directory
from sc2pool.game.program.process import GameProcess
from sc2pool.game.wire import NotReadyError, connect
from sc2pool.processes.filelock import try_lock, unlock_and_remove
from sc2pool.protocol import requests
from tests.support.programs import talking
from tests.support.systems import KILLED, not_told_by_wine

LISTEN = """
import socket, sys
listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen()
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
"""


class Family:
    """Starts processes that take the place of a game when its listener is checked."""

    def __init__(self, *processes: psutil.Process) -> None:
        self._processes = list(processes)

    def family(self) -> list[psutil.Process]:
        return self._processes


@pytest.fixture
def listener():
    with talking(sys.executable, "-c", LISTEN) as process:
        yield process, int(process.stdout.readline())


@not_told_by_wine
def test_our_own_is_proven(listener):
    process, port = listener
    with connect(port) as sock:
        assert _prove_listener(Family(psutil.Process(process.pid)), port, sock)


def test_someone_else_has_taken_the_port(listener):
    _, port = listener
    with pytest.raises(GameFault) as raised:
        _prove_listener(Family(), port, connect(port))
    assert raised.value.kind is FaultKind.PORT_TAKEN


@not_told_by_wine
def test_a_game_that_ends_meanwhile_has_not_lost_its_port(listener):
    process, port = listener
    game = Family(psutil.Process(process.pid))
    sock = connect(port)
    process.kill()
    process.wait()
    with pytest.raises(NotReadyError):
        _prove_listener(game, port, sock)


@not_told_by_wine
def test_a_game_that_is_killed_once_it_has_answered_has_not_lost_its_port(fake, monkeypatch):
    clients = module._clients
    begun: list[psutil.Process] = []

    def kill_before_the_look(process, port):
        if process.exit_code() is None:
            begun.append(process.family()[0])
            begun[-1].kill()
        while process.exit_code() is None:
            pass
        return clients(process, port)

    monkeypatch.setattr(module, "_clients", kill_before_the_look)
    with pytest.raises(GameFault) as raised:
        asyncio.run(launch(fake(), Deadline.after(30)))
    assert raised.value.kind is FaultKind.GAME_EXITED
    assert len(begun) == 1


@not_told_by_wine
async def test_games_of_all_programs_start_apart(game_installation, monkeypatch):
    """Launches take turns by a lock on a file, so that launches in other processes wait as well."""
    started_s = []
    spawn = module.GameProcess.spawn

    def noting(*arguments: Any, **keywords: Any) -> GameProcess:
        started_s.append(time.monotonic())
        return spawn(*arguments, **keywords)

    monkeypatch.setattr(module.GameProcess, "spawn", noting)
    launching = [launch(game_installation, Deadline.after(60)) for _ in range(3)]
    for api in await asyncio.gather(*launching):
        api.close()
    apart_s = [later - earlier for earlier, later in pairwise(sorted(started_s))]
    assert min(apart_s) >= module._APART_S
    take_turn()()


def take_turn() -> Callable[[], None]:
    """Take the turn when no other launch has it; returns the function that gives the turn back."""
    turn = lease_directory() / "launch-turn"
    deadline = Deadline.after(30)
    while (held := try_lock(turn)) is None:
        assert not deadline.expired()
    return lambda: unlock_and_remove(held, turn)


async def test_a_turn_that_another_program_keeps_is_not_waited_for_forever(
    game_installation, monkeypatch
):
    """If a worker is stopped while it starts a game, other workers must still start games."""
    monkeypatch.setattr(module, "_TURN_WAIT_S", 0.1)
    give_up = take_turn()
    try:
        api = await launch(game_installation, Deadline.after(60))
        api.close()
    finally:
        give_up()


async def test_a_game_with_a_pending_reply_is_killed_before_its_socket_closes(
    tempered, monkeypatch
):
    """The process must end before its socket closes: a closed socket is fatal to a running game."""
    api = await launch(find_installation(tempered("fatal-close")), Deadline.after(60))
    asked = asyncio.ensure_future(api.burst([requests.ping()] * 200, Deadline.after(30)))
    await asyncio.sleep(0)  # now the task sends the requests
    abort, ended = api.connection.abort, []

    def noting() -> None:
        ended.append(api.process.exit_code() is not None)
        abort()

    monkeypatch.setattr(api.connection, "abort", noting)
    api.close()
    assert ended == [True]
    with pytest.raises(GameFault):
        await asked
    assert api.process.exit_code() in KILLED
    assert "Error" not in api.process.log_tail()


@not_told_by_wine
def test_ports_that_are_all_taken_are_tried_five_times(game_installation):
    with ExitStack() as listeners:
        leased: list[int] = []

        def lease_a_taken_port():
            lease = PortLease.acquire()
            other = listeners.enter_context(socket.socket())
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", lease.port))
            other.listen()
            leased.append(lease.port)
            return lease

        with pytest.raises(GameFault) as raised:
            asyncio.run(
                launch(game_installation, Deadline.after(30), lease_port=lease_a_taken_port)
            )
    assert raised.value.kind is FaultKind.PORT_TAKEN
    assert len(leased) == 5
