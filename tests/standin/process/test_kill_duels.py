"""Kill, stop or end one of two processes of a game at a random instant, and watch the other one.

The other side has won within its time if the process is dead, and waits if it is stopped. SIGTERM
ends every process, and no port is left. `SC2POOL_LONG=1` tries more instants.
"""

from __future__ import annotations

import random
import select
import signal
import socket
import time
from collections.abc import Callable

import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from tests.standin.sessions import GameProcess, Wire
from tests.support.duels import DUEL, TWO, Pair, join_request
from tests.support.fuzz.wire import TIMEOUT_S
from tests.tiers import is_long

HARMS = (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM)
PHASES = ("joining", "between two steps", "one waits", "both step")
INSTANTS = 20 if is_long() else 1
QUIET_S = 0.1
"""How long a side is watched that must not answer."""
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
    """Play a while; returns the sides that were asked for one more step."""
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
