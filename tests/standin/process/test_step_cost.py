"""What a step costs: CPU time burnt, time slept, and nothing else changed."""

from __future__ import annotations

import time

import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

STEPS = 5
OBSERVE = sc_pb.RequestObservation()


@pytest.fixture
def priced(changed):
    """The content of a mini-game's map, with a price."""
    return lambda name, **step_cost: changed(f"mini_games/{name}", step_cost=step_cost)


@pytest.mark.timing
@pytest.mark.parametrize(("burn_ms", "sleep_ms"), [(20, 0), (0, 25.0)], ids=["burnt", "slept"])
def test_a_step_takes_the_time_told(offline, priced, burn_ms, sleep_ms):
    offline.start(priced("MoveToBeacon", burn_ms=burn_ms, sleep_ms=sleep_ms))
    began_s, cpu_before_s = time.monotonic(), time.thread_time()
    for _ in range(STEPS):
        offline.step(8)
    elapsed_s, cpu_s = time.monotonic() - began_s, time.thread_time() - cpu_before_s
    assert elapsed_s >= STEPS * (burn_ms + sleep_ms) / 1000
    assert STEPS * burn_ms / 1000 <= cpu_s <= STEPS * burn_ms / 1000 + 0.1


@pytest.mark.timing
@pytest.mark.parametrize("name", ["Canned", "MoveToBeacon"])
def test_only_steps_that_are_played_cost_anything(offline, priced, name):
    offline.start(priced(name, burn_ms=5, sleep_ms=50))
    began_s = time.monotonic()
    for _ in range(5):
        offline.observe()
        offline.act()
    assert time.monotonic() - began_s < 0.05
    offline.step(8)
    assert time.monotonic() - began_s >= 0.055
    offline.step(2**31)
    began_s = time.monotonic()
    for _ in range(5):
        assert "already ended" in offline.step().error[0]
    assert time.monotonic() - began_s < 0.05


def test_a_price_changes_no_reply(session_for, priced):
    played = []
    for cost in ({}, {"burn_ms": 1}, {"sleep_ms": 1, "burn_ms": 0.5}):
        session = session_for()
        session.start(priced("DefeatRoaches", **cost), seed=5)
        replies = []
        for _ in range(20):
            replies.append(session.ask_bytes(step=sc_pb.RequestStep(count=8), id=3))
            replies.append(session.ask_bytes(observation=OBSERVE, id=4))
        played.append(replies)
    assert played[0] == played[1] == played[2]


def test_sigterm_is_heard_between_dear_steps(game, priced):
    """After it no step is played; what was played before was answered, in order."""
    wire = game.connect()
    wire.start(priced("MoveToBeacon", sleep_ms=200))
    for number in range(100):  # 20 s
        wire.send(step=sc_pb.RequestStep(count=1), id=number)
    for number in range(2):
        assert wire.reply().id == number
    game.process.terminate()
    assert game.process.wait(3) == 0
