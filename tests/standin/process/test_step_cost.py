"""What a step costs: CPU time burnt, time slept, and nothing else changed."""

from __future__ import annotations

import json
import time

import psutil
import pytest
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.cost import burn

STEPS = 20
OBSERVE = sc_pb.RequestObservation()
KINDS_OF_MAP = ["Canned", "MoveToBeacon"]


@pytest.fixture
def priced(installation):
    """A bundled map's content, with a price."""

    def content(name: str, **step_cost: object) -> sc_pb.LocalMap:
        path = installation / "Maps" / "mini_games" / f"{name}.SC2Map"
        scenario = json.loads(path.read_text()) | {"step_cost": step_cost}
        return sc_pb.LocalMap(map_data=json.dumps(scenario).encode())

    return content


def _cpu_s(game) -> float:
    times = psutil.Process(game.process.pid).cpu_times()
    return float(times.user + times.system)


def _play(game, wire) -> tuple[float, float]:
    """Seconds and CPU seconds that the game takes for its steps, all sent at once."""
    cpu_before_s, began_s = _cpu_s(game), time.monotonic()
    for number in range(STEPS):
        step = sc_pb.Request(step=sc_pb.RequestStep(count=8), id=number)
        wire.send_frame(step.SerializeToString())
        wire.send_frame(sc_pb.Request(observation=OBSERVE, id=number).SerializeToString())
    for number in range(STEPS):
        stepped, seen = (sc_pb.Response.FromString(wire.receive()) for _ in range(2))
        assert (stepped.id, seen.id) == (number, number)
        assert stepped.step.simulation_loop == 8 * number + 8
        assert seen.observation.observation.game_loop == 8 * number + 8
    return time.monotonic() - began_s, _cpu_s(game) - cpu_before_s


@pytest.mark.timing
@pytest.mark.parametrize("name", KINDS_OF_MAP)
def test_burning_takes_the_cpu_time_told(game, priced, name):
    wire = game.connect()
    wire.start(local_map=priced(name, burn_ms=20))
    _elapsed_s, cpu_s = _play(game, wire)
    # Two ticks of the kernel's accounts are 0.02 s.
    assert STEPS * 0.02 - 0.02 <= cpu_s <= STEPS * 0.02 + 0.3


@pytest.mark.timing
@pytest.mark.parametrize("name", KINDS_OF_MAP)
def test_sleeping_takes_time_and_no_cpu(game, priced, name):
    wire = game.connect()
    wire.start(local_map=priced(name, sleep_ms=25.0))
    elapsed_s, cpu_s = _play(game, wire)
    assert elapsed_s >= STEPS * 0.025
    assert cpu_s <= 0.25


@pytest.mark.timing
def test_burning_counts_only_the_threads_own_time():
    before_s = time.thread_time()
    burn(0.01)
    assert 0.01 <= time.thread_time() - before_s <= 0.02


@pytest.mark.timing
@pytest.mark.parametrize("name", KINDS_OF_MAP)
def test_only_steps_that_are_played_cost_anything(offline, priced, name):
    offline.start(local_map=priced(name, burn_ms=5, sleep_ms=50))
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
        session.start(local_map=priced("DefeatRoaches", **cost), seed=5)
        replies = []
        for _ in range(20):
            replies.append(session.ask_bytes(step=sc_pb.RequestStep(count=8), id=3))
            replies.append(session.ask_bytes(observation=OBSERVE, id=4))
        played.append(replies)
    assert played[0] == played[1] == played[2]


@pytest.mark.parametrize("name", KINDS_OF_MAP)
def test_sigterm_is_heard_between_dear_steps(game, priced, name):
    """After it no step is played; what was played before was answered, in order."""
    wire = game.connect()
    wire.start(local_map=priced(name, sleep_ms=200))
    for number in range(100):  # 20 s
        step = sc_pb.Request(step=sc_pb.RequestStep(count=1), id=number)
        wire.send_frame(step.SerializeToString())
    for number in range(2):
        assert sc_pb.Response.FromString(wire.receive()).id == number
    game.process.terminate()
    assert game.process.wait(3) == 0


@pytest.mark.parametrize(
    ("cost", "complaint"),
    [
        ({"burn_ms": -1}, "map.step_cost.burn_ms must be 0 to 1000"),
        ({"sleep_ms": 1000.5}, "map.step_cost.sleep_ms must be 0 to 1000"),
        ({"burn_ms": float("nan")}, "map.step_cost.burn_ms"),
        ({"burn_ms": True}, "map.step_cost.burn_ms must be float"),
        ({"sleep_ms": "5"}, "map.step_cost.sleep_ms must be float"),
        ({"nap_ms": 5}, "map.step_cost has unknown keys: nap_ms"),
        (5, "map.step_cost must be an object"),
        (None, "map.step_cost must be an object"),
    ],
)
def test_wrong_prices(offline, cost, complaint):
    with pytest.raises(AssertionError, match=complaint):
        offline.arena(step_cost=cost)
