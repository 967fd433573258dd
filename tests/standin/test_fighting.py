"""Fighting: damage, armor, shields, cooldown, who fires at whom and when, and fog."""

from __future__ import annotations

import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

STOP, MOVE, HOLD, ATTACK = 4, 16, 18, 23
MARINE, ROACH, ZEALOT = 48, 110, 73


def _enemy_life(session) -> list[float]:
    return [u.health for u in session.observe().raw_data.units if u.owner == 2]


def test_damage_armor_cooldown(offline, command):
    offline.arena((MARINE, 1, 20, 20), (ROACH, 2, 25, 20))
    (marine,), (roach,) = offline.units(MARINE), offline.units(ROACH)
    offline.act(command([marine], HOLD))
    offline.step()
    assert _enemy_life(offline) == [145 - 5]
    (marine,) = offline.units(MARINE)
    assert marine.engaged_target_tag == roach.tag
    assert 12 < marine.weapon_cooldown < 14
    shots = []
    for loop in range(2, 140):
        offline.debug(
            debug_pb.DebugCommand(
                unit_value=debug_pb.DebugSetUnitValue(
                    unit_value=debug_pb.DebugSetUnitValue.Life, value=45, unit_tag=marine.tag
                )
            ),
        )
        before = _enemy_life(offline)
        offline.step()
        if _enemy_life(offline) != before:
            shots.append(loop)
    period = (shots[-1] - shots[0]) / (len(shots) - 1)
    assert period == pytest.approx(0.8608 * 16, abs=0.15)
    details = offline.observe().score.score_details
    assert details.total_damage_dealt.life == 5 * (len(shots) + 1)
    assert details.total_damage_taken.life % 16 == 0


def test_shields_take_damage_first(offline, command):
    offline.arena((MARINE, 1, 20, 20, 4), (ZEALOT, 2, 24, 20))
    offline.act(command(offline.units(MARINE), HOLD))
    offline.step()
    (zealot,) = offline.units(ZEALOT)
    assert (zealot.shield, zealot.health) == (50 - 4 * 5, 100)
    assert zealot.shield_max == 50


@pytest.mark.parametrize(
    ("ability", "fires", "walks"),
    [(None, True, False), (STOP, True, False), (HOLD, True, False), (MOVE, False, True)],
)
def test_who_fires_with_an_enemy_in_range(offline, command, ability, fires, walks):
    offline.arena((MARINE, 1, 20, 20), (ROACH, 2, 25, 20))
    (marine,) = offline.units(MARINE)
    if ability is not None:
        point = (10, 20) if ability == MOVE else None
        assert offline.act(command([marine], ability, point)) == [1]
    offline.step(4)
    assert (_enemy_life(offline) != [145]) == fires
    assert (offline.units(MARINE)[0].pos.x != 20) == walks


def test_attack_move_walks_fires_and_walks_on(offline, command):
    offline.arena((MARINE, 1, 20, 20, 6), (ROACH, 2, 36, 20))
    offline.act(command(offline.units(MARINE), ATTACK, (50, 20)))
    while offline.units(ROACH):
        offline.step(8)
        assert offline.state.status.name == "IN_GAME"
    offline.step(300)
    assert all(m.pos.x > 47 for m in offline.units(MARINE))


def test_enemies_attack_what_they_see_and_wait_otherwise(offline):
    offline.arena((MARINE, 1, 20, 20), (ROACH, 2, 31, 20))
    offline.step(50)
    assert offline.units(ROACH)[0].pos.x == 31
    offline.create((MARINE, 1, 22, 20))
    offline.step(500)
    assert not offline.units(MARINE)
    assert offline.state.status.name == "ENDED"


def test_fog_hides_enemies_until_seen(session_for):
    for disable, seen in ((False, 0), (True, 1)):
        session = session_for()
        session.arena((MARINE, 1, 20, 20), (ROACH, 2, 40, 40), fog=True)
        request = sc_pb.RequestObservation(disable_fog=disable)
        raw = session.ask(observation=request).observation.observation.raw_data
        assert sum(u.owner == 2 for u in raw.units) == seen
        grid = raw.map_state.visibility.data
        assert grid[20 * 64 + 20] == 2
        assert (grid[40 * 64 + 40] == 2) == disable
