"""Tests of canned maps: clients must see no difference between prepared and computed replies."""

from __future__ import annotations

import pytest
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.protocol import replies
from sc2standin.simulation.game import END_OF_TIME_LOOPS, HARD_RESET_LOOPS
from tests.standin.sessions import COLLECT, against, command

MARINE, BEACON, ME, ENEMY = 48, 317, 1, 2
MOVE = 3794
OBSERVE = sc_pb.RequestObservation()


@pytest.fixture
def canned(offline):
    offline.start("Canned")
    return offline


def _canonical(reply: bytes) -> bytes:
    return bytes(sc_pb.Response.FromString(reply).SerializeToString(deterministic=True))


def _usual(session, **request) -> bytes:
    """The reply to this request, computed as on a map that is not canned."""
    session.state.canned = False
    try:
        return session.ask_bytes(**request)
    finally:
        session.state.canned = True


@pytest.mark.parametrize("loop", [0, 1, 127, 128, 16383, 16384, 199999])
def test_an_observation_has_the_bytes_of_a_usual_one(canned, loop):
    canned.step(loop)
    for number in (None, 0, 300, 2**31 - 1, 2**32 - 1):
        asked = {"observation": OBSERVE} | ({} if number is None else {"id": number})
        reply = canned.ask_bytes(**asked)
        assert reply == _usual(canned, **asked) == _canonical(reply)
        parsed = sc_pb.Response.FromString(reply)
        assert parsed.HasField("id") == (number is not None)
        assert parsed.id == (number or 0)
        assert parsed.status == sc_pb.in_game
        replies.check(parsed, parsed.id, "observation")
        replies.require(parsed, "observation")
        replies.check_observation(parsed.observation, first_loop=loop, last_loop=loop)


@pytest.mark.parametrize("seed", [1, 2, 77])
def test_it_has_the_size_and_the_parts_of_a_real_message(offline, seed):
    offline.start("Canned", seed=seed)
    for loops in (0, 150_000):
        offline.step(loops)
        reply = offline.ask_bytes(observation=OBSERVE, id=2**31 - 1)
        assert 44_000 <= len(reply) <= 46_000
    raw = sc_pb.Response.FromString(reply).observation.observation.raw_data
    shares = [
        part / len(reply)
        for part in (
            len(raw.map_state.visibility.data),
            sum(unit.ByteSize() for unit in raw.units),
            len(raw.map_state.creep.data),
        )
    ]
    assert shares == pytest.approx([0.73, 0.16, 0.09], abs=0.015)
    assert [unit.unit_type for unit in raw.units].count(BEACON) == 1
    assert [(u.unit_type, u.owner) for u in raw.units if u.alliance == raw_pb.Self] == [(MARINE, 1)]


def test_loops_ids_and_results_of_bursts(canned):
    order = command(canned.one(MARINE), MOVE, (30.0, 30.0))
    first = canned.observe()
    for burst in range(1, 300):
        count = (0, 1, 2, 200)[burst % 4]
        acted = canned.ask_bytes(action=sc_pb.RequestAction(actions=[order] * count), id=3 * burst)
        stepped = canned.ask_bytes(step=sc_pb.RequestStep(count=8), id=3 * burst + 1)
        seen = canned.ask_bytes(observation=OBSERVE, id=3 * burst + 2)
        loop = 8 * burst
        status = sc_pb.in_game
        assert acted == _canonical(acted)
        assert sc_pb.Response.FromString(acted) == sc_pb.Response(
            action=sc_pb.ResponseAction(result=[1] * count), id=3 * burst, status=status
        )
        assert stepped == _canonical(stepped)
        assert sc_pb.Response.FromString(stepped) == sc_pb.Response(
            step=sc_pb.ResponseStep(simulation_loop=loop), id=3 * burst + 1, status=status
        )
        parsed = sc_pb.Response.FromString(seen)
        assert parsed.id == 3 * burst + 2
        assert parsed.observation.observation.game_loop == loop
    parsed.observation.observation.game_loop = 0
    assert parsed.observation.observation == first


def _short(offline, **changes):
    """A canned map with one marine of the client, whose game lasts 100 loops."""
    units = [
        {"type": "Marine", "owner": ME, "count": 1, "place": "random"},
        {"type": "Roach", "owner": ENEMY, "count": 2, "place": "random"},
    ]
    offline.arena(**{"canned": True, "units": units, "time_limit_loops": 100} | changes)


def test_the_end_and_a_restart(offline):
    _short(offline)
    layout = offline.observe().raw_data
    assert offline.step(99).status == sc_pb.in_game
    ended = offline.ask(step=sc_pb.RequestStep(count=8), id=7)
    assert (ended.status, ended.step.simulation_loop, ended.id) == (sc_pb.ended, 100, 7)
    reply = offline.ask_bytes(observation=OBSERVE, id=300)
    later = offline.ask_bytes(observation=OBSERVE, id=300)
    assert later == _usual(offline, observation=OBSERVE, id=300) == _canonical(later)
    offline.state.results_sent = False
    assert reply == _usual(offline, observation=OBSERVE, id=300) == _canonical(reply)
    assert not sc_pb.Response.FromString(later).observation.player_result
    seen = sc_pb.Response.FromString(reply)
    assert seen.status == sc_pb.ended
    assert seen.observation.observation.game_loop == 100
    assert [(r.player_id, r.result) for r in seen.observation.player_result] == [(1, sc_pb.Victory)]
    for late in ({"step": sc_pb.RequestStep()}, {"action": sc_pb.RequestAction()}):
        assert "already ended" in offline.ask(**late).error[0]
    offline.ask(restart_game=sc_pb.RequestRestartGame())
    again = offline.ask(observation=OBSERVE)
    assert again.status == sc_pb.in_game
    assert not again.observation.player_result
    assert again.observation.observation.game_loop == 0
    assert again.observation.observation.raw_data != layout
    assert offline.step(8).step.simulation_loop == 108  # a restart does not reset `simulation_loop`


def test_a_computer_has_a_result_too(offline):
    offline.start("Canned", player_setup=against(sc_pb.VeryEasy))
    offline.end_game("Surrender")
    assert offline.step(8).step.simulation_loop == 1
    seen = offline.observed()
    assert [(r.player_id, r.result) for r in seen.player_result] == [
        (1, sc_pb.Defeat),
        (2, sc_pb.Victory),
    ]


def test_nothing_moves_fights_or_scores(offline):
    _short(offline, rules=[COLLECT | {"count": 1, "reach": 60.0}])
    before = offline.observe()
    assert [u.unit_type for u in before.raw_data.units].count(BEACON) == 1
    offline.order(offline.units(MARINE), MOVE, (10.0, 10.0))
    offline.step(50)
    after = offline.observe()
    assert after.game_loop == 50
    after.game_loop = 0
    assert after == before


def test_time_over_all_restarts_holds(canned):
    canned.state.begin_episode(loops_before=HARD_RESET_LOOPS)
    canned.step()
    assert canned.ask(restart_game=sc_pb.RequestRestartGame()).restart_game.need_hard_reset
    canned.state.begin_episode(loops_before=END_OF_TIME_LOOPS - 10)
    assert canned.step(2**32 - 1).step.simulation_loop == END_OF_TIME_LOOPS
    seen = canned.ask(observation=OBSERVE)
    assert seen.status == sc_pb.ended
    assert seen.observation.player_result[0].result == sc_pb.Tie
    assert canned.ask(restart_game=sc_pb.RequestRestartGame()).restart_game.HasField("error")


def test_the_interface_that_was_joined_with_holds(offline):
    for options in (sc_pb.InterfaceOptions(raw=True), sc_pb.InterfaceOptions(score=True)):
        offline.start("Canned", interface=options)
        seen = offline.observe()
        assert (seen.HasField("raw_data"), seen.HasField("score")) == (options.raw, options.score)
        offline.ask(leave_game=sc_pb.RequestLeaveGame())
        assert "Not in a game" in offline.ask(observation=OBSERVE).error[0]


def test_a_usual_map_after_a_canned_one(canned):
    canned.observe()
    canned.ask(leave_game=sc_pb.RequestLeaveGame())
    canned.start("MoveToBeacon")
    (marine,) = canned.units(MARINE)
    (beacon,) = canned.units(BEACON)
    canned.order(marine, MOVE, (beacon.pos.x, beacon.pos.y))
    canned.step(8)
    assert canned.units(MARINE)[0].pos != marine.pos


def test_changes_of_the_observation_are_refused(canned):
    point = common.Point2D(x=30, y=30)
    birth = debug_pb.DebugCreateUnit(unit_type=MARINE, owner=ME, pos=point)
    for change in (
        {"create_unit": birth},
        {"kill_unit": debug_pb.DebugKillUnit(tag=[canned.units(MARINE)[0].tag])},
        {"unit_value": debug_pb.DebugSetUnitValue()},
        {"score": debug_pb.DebugSetScore(score=3)},
    ):
        request = sc_pb.RequestDebug(debug=[debug_pb.DebugCommand(**change)])
        assert "canned map" in canned.ask(debug=request).error[0]
    canned.debug(debug_pb.DebugCommand(draw=debug_pb.DebugDraw()))
