"""Tests how the processes of two players find each other, and act if one of them dies or stops.

A process is killed at a random instant. If a player's process dies, the other side must win in
time. If the process is stopped, the other side must wait. SIGTERM must end every process, and no
port may stay in use. `SC2POOL_LONG=1` tries more instants.
"""

from __future__ import annotations

import asyncio
import functools
import random
import select
import signal
import socket
import time
from collections.abc import Callable, Coroutine

import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin import meeting
from sc2standin.meeting import Invitation, Meeting, begin_meeting
from tests.standin.sessions import GameProcess, Wire
from tests.support.duels import DUEL, TWO, Pair, free_ports, join_request
from tests.support.fuzz.wire import TIMEOUT_S
from tests.tiers import is_long

CREATE = sc_pb.RequestCreateGame(player_setup=TWO, random_seed=1)
NetworkError = sc_pb.ResponseJoinGame.NetworkError


def _invitation(port: int, create: sc_pb.RequestCreateGame | None, **fields) -> Invitation:
    named = {"address": "127.0.0.1", "port": port, "join": join_request([port, 1, 2, 3])}
    return Invitation(**named | fields, create=create)


def in_event_loop(test: Callable[..., Coroutine[None, None, None]]) -> Callable[..., None]:
    """Turn a test that is a coroutine into an ordinary function."""

    @functools.wraps(test)
    def run(*args: object, **kwargs: object) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


async def _done(*invitations: Invitation) -> list[Meeting]:
    wakes = [asyncio.Event() for _ in invitations]
    met = [begin_meeting(one, wake.set) for one, wake in zip(invitations, wakes, strict=True)]
    for wake in wakes:
        await asyncio.wait_for(wake.wait(), 10)
    return met


@in_event_loop
async def test_both_know_the_same_and_what_one_sends_the_other_gets():
    (port,) = free_ports(1)
    named = {"join": join_request([port, 1, 2, 3], player_name="guest")}
    host, guest = await _done(_invitation(port, CREATE), _invitation(port, None, **named))
    assert (host.problem, guest.problem) == (None, None)
    assert (host.is_host, guest.is_host) == (True, False)
    assert guest.create == CREATE
    assert host.other_join.player_name == "guest"
    assert guest.other_join == join_request([port, 1, 2, 3])
    host.link.send(7)
    host.link.send(8, b"request")
    assert [await guest.link.next_frame() for _ in range(2)] == [(7, b""), (8, b"request")]
    host.link.close()
    with pytest.raises(ConnectionError):
        await guest.link.next_frame()
    guest.link.close()


@pytest.mark.parametrize("create", [CREATE, None], ids=["host", "guest"])
@in_event_loop
async def test_nobody_comes(monkeypatch, create):
    monkeypatch.setattr(meeting, "JOIN_TIMEOUT_S", 0.1)
    (port,) = free_ports(1)
    (met,) = await _done(_invitation(port, create))
    assert met.problem is not None
    assert met.problem[0] == NetworkError
    assert "did not come" in met.problem[1]
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


@in_event_loop
async def test_a_port_that_is_taken():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        (met,) = await _done(_invitation(port, CREATE))
    assert met.problem is not None
    assert met.problem[0] == NetworkError
    assert str(port) in met.problem[1]


@pytest.mark.parametrize("address", ["a" * 300, "\0", "256.256.256.256"])
@in_event_loop
async def test_no_such_address(address):
    (port,) = free_ports(1)
    (met,) = await _done(_invitation(port, CREATE, address=address))
    assert met.problem is not None
    assert met.problem[0] == NetworkError


HARMS = (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM)
PHASES = ("joining", "between two steps", "one waits", "both step")
INSTANTS = 20 if is_long() else 1
QUIET_S = 0.1
"""The seconds for which a test watches a process that must not answer."""
STEPS = 20


@pytest.mark.parametrize("instant", range(INSTANTS))
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.name)
def test_the_other_side_goes_on(
    launch: Callable[[], GameProcess], harm: signal.Signals, phase: str, instant: int
) -> None:
    rng = random.Random(f"{harm.name} {phase} {instant}")
    loser = rng.randrange(2)
    games = launch(), launch()
    pair = Pair(*(game.connect() for game in games))
    survivor = pair.wires[1 - loser]
    if phase == "joining":
        join_and_harm(pair, games[loser], harm, rng)
    else:
        asked = begin_and_ask(pair, survivor, phase, rng)
        games[loser].process.send_signal(harm)
        if harm is signal.SIGSTOP:
            assert not ends(survivor, is_asked=survivor in asked, within_s=QUIET_S)
            games[loser].process.kill()
            asked = pair.wires
        assert ends(survivor, is_asked=survivor in asked, within_s=TIMEOUT_S)
        seen = survivor.observed()
        assert {one.player_id: one.result for one in seen.player_result}[2 - loser] == sc_pb.Victory
        assert survivor.replay()
    for game in games:
        game.process.send_signal(signal.SIGCONT)
        game.process.terminate()
        game.process.wait(TIMEOUT_S)
    for port in (*(game.port for game in games), *pair.ports):
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0, f"port {port} is left"


def join_and_harm(pair: Pair, loser: GameProcess, harm: signal.Signals, rng: random.Random) -> None:
    pair.wires[0].ask(create_game=sc_pb.RequestCreateGame(local_map=DUEL, player_setup=TWO))
    for wire in pair.wires:
        time.sleep(rng.uniform(0.0, 0.03))
        wire.send(join_game=join_request(pair.ports))
    time.sleep(rng.uniform(0.0, 0.03))
    loser.process.send_signal(harm)


def begin_and_ask(pair: Pair, survivor: Wire, phase: str, rng: random.Random) -> tuple[Wire, ...]:
    """Play some steps; returns the sides that still wait for the reply to a step."""
    pair.begin(seed=1)
    for _ in range(rng.randrange(STEPS)):
        pair.step(8)
    asked = {"between two steps": (), "one waits": (survivor,), "both step": pair.wires}[phase]
    for wire in asked:
        wire.send(step=sc_pb.RequestStep(count=rng.choice((1, 8, 64))))
    time.sleep(rng.uniform(0.0, 0.01))
    return asked


def ends(wire: Wire, *, is_asked: bool, within_s: float) -> bool:
    """Step until the game has ended; False if a step is not answered in time."""
    while True:
        if not is_asked:
            wire.send(step=sc_pb.RequestStep(count=8))
        if not select.select([wire.socket], [], [], within_s)[0]:
            return False
        if wire.reply().status == sc_pb.ended:
            return True
        is_asked = False
