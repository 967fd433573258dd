"""A melee: two towns, the places of structures, victory and defeat."""

from __future__ import annotations

import math

import pytest
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb
from s2clientprotocol import score_pb2 as score_pb
from sc2.game_info import GameInfo

from sc2standin.simulation.computer import LEVELS, Holdings, Step, next_steps
from tests.standin.sessions import (
    RAW,
    abilities,
    apart,
    command,
    create_request,
    place_of,
    saved,
    step_until,
)

CENTER, DEPOT, LOWERED, BARRACKS = 18, 19, 47, 21
SCV, MARINE, FIELD = 45, 48, 341
EASY = LEVELS[sc_pb.Easy]
SMART, STOP, ATTACK, GATHER = 1, 4, 23, 3666
BUILD_CENTER, BUILD_DEPOT, BUILD_REFINERY, BUILD_BARRACKS = 318, 319, 320, 321
TRAIN_SCV, LOWER, RAISE = 524, 556, 558
CANCEL, HALT = 3659, 3660
STARTS = {(19.5, 76.5), (68.5, 19.5)}


def _mine(session, unit_type: int) -> list[raw_pb.Unit]:
    return [unit for unit in session.units(unit_type) if unit.alliance == raw_pb.Self]


def _info(session) -> GameInfo:
    info = GameInfo(session.game_info())
    info.map_ramps, info.vision_blockers = info._find_ramps_and_vision_blockers()
    return info


def _free_place(session, ability_id: int, near: raw_pb.Unit) -> tuple[float, float]:
    places = [
        (near.pos.x + dx, near.pos.y + dy)
        for dx in range(-10, 11, 2)
        for dy in range(-10, 11, 2)
        if max(abs(dx), abs(dy)) >= 6
    ]
    results = session.can_place(ability_id, *places)
    return places[results.index(error_pb.Success)]


def test_the_start_is_the_recorded_games(melee):
    session = melee()
    seen = session.observe()
    player = seen.player_common
    assert (player.minerals, player.food_used, player.food_cap) == (50, 12, 15)
    (center,) = _mine(session, CENTER)
    assert (center.pos.x, center.pos.y) in STARTS
    assert (center.assigned_harvesters, center.ideal_harvesters) == (12, 16)
    assert center.pos.z == pytest.approx(11.98, abs=0.05)
    workers = _mine(session, SCV)
    assert len(workers) == 12
    assert {order.ability_id for one in workers for order in one.orders} == {295}
    assert len(center.rally_targets) == 1
    assert seen.score.score_type == score_pb.Score.Melee
    assert seen.score.score == 1050
    details = seen.score.score_details
    assert (details.total_value_units, details.total_value_structures) == (600, 400)
    assert details.used_minerals.economy == details.total_used_minerals.economy == 1000
    assert all(unit.alliance != raw_pb.Enemy for unit in seen.raw_data.units)
    assert len(session.units(FIELD)) == 48


def test_both_starts_are_drawn(melee):
    centers = [_mine(melee(seed=seed), CENTER)[0].pos for seed in range(6)]
    assert {(pos.x, pos.y) for pos in centers} == STARTS


def test_two_games_with_a_seed_are_one(melee):
    frames = []
    for steps in ([8] * 100, [200] * 4):
        session = melee(sc_pb.Hard, disable_fog=True)
        for count in steps:
            session.step(count)
        frames.append(session.ask_bytes(observation=sc_pb.RequestObservation()))
    assert frames[0] == frames[1]


@pytest.mark.parametrize("race", [common.Zerg, common.Protoss])
def test_a_race_without_towns_is_refused(offline, race):
    created = offline.ask(create_game=create_request("Melee/Simple64"))
    assert not created.create_game.HasField("error")
    reply = offline.ask(join_game=sc_pb.RequestJoinGame(race=race, options=RAW))
    assert reply.status == sc_pb.init_game
    assert reply.join_game.error == sc_pb.ResponseJoinGame.FeatureUnsupported
    assert common.Race.Name(race) in reply.join_game.error_details
    assert "--any-race" in reply.join_game.error_details
    # python-sc2 ignores the refusal of join_game, and sends further requests.
    (error,) = offline.ask(observation=sc_pb.RequestObservation()).error
    assert "join_game comes first, and was refused" in error
    assert "--any-race" in error
    join = sc_pb.RequestJoinGame(race=common.Random, options=RAW)
    assert offline.ask(join_game=join).status == sc_pb.in_game


def test_the_flat_map_lets_any_race_in(offline):
    offline.start("Melee/Flat64", race=common.Protoss)


def test_all_races_may_get_a_terran_town_and_are_told_so(melee):
    session = melee(race=common.Zerg, any_race=True)
    me, them = session.game_info().player_info
    assert (me.race_requested, me.race_actual) == (common.Zerg, common.Terran)
    assert (them.race_requested, them.race_actual) == (common.Zerg, common.NoRace)
    assert len(_mine(session, SCV)) == 12


def test_ramps_and_places_for_a_wall(melee):
    session = melee()
    info = _info(session)
    (center,) = _mine(session, CENTER)
    assert {tuple(place) for place in info.start_locations} == STARTS - {
        (center.pos.x, center.pos.y)
    }
    assert not info.vision_blockers
    assert sorted(len(ramp.upper) for ramp in info.map_ramps) == [2, 2, 6, 6]
    for ramp in info.map_ramps:
        if len(ramp.upper) == 2:
            assert session.can_place(BUILD_DEPOT, *ramp.corner_depots) == [1, 1]
            barracks = [ramp.barracks_in_middle, ramp.barracks_correct_placement]
            assert session.can_place(BUILD_BARRACKS, *barracks) == [1, 1]
            assert session.can_place(BUILD_DEPOT, *ramp.upper, *ramp.lower) == [44] * 4


def test_where_a_command_center_can_stand(melee):
    session = melee()
    natural, far = (19.5, 39.5), (19.5, 15.5)
    assert session.can_place(BUILD_CENTER, natural, far, (68.5, 56.5), (68.5, 80.5)) == [1] * 4
    towards_minerals = (18.5, 39.5)
    assert session.can_place(BUILD_CENTER, towards_minerals) == [
        error_pb.CantBuildTooCloseToResources
    ]
    (center,) = _mine(session, CENTER)
    start = center.pos.x, center.pos.y
    blocked = session.can_place(BUILD_CENTER, start, (2.5, 2.5), (38.5, 60.5))
    assert set(blocked) == {error_pb.CantBuildLocationInvalid}
    assert session.can_place(BUILD_DEPOT, (17.0, 39.0)) == [error_pb.Success]


def test_a_way_leads_over_the_ramps(melee):
    session = melee()
    start, natural, cliff = (19.5, 76.5), (19.5, 39.5), (35.5, 80.5)
    there = session.way(start, natural)
    assert 40 < there < 50  # the straight line is 37 cells long
    assert there == pytest.approx(session.way(natural, start), rel=0.02)
    assert session.way(start, cliff) == 0


def test_a_wall_closes_the_ramp_until_a_depot_is_lowered(melee):
    session = melee(None)
    info = _info(session)
    (center,) = _mine(session, CENTER)
    ramp = min(
        (ramp for ramp in info.map_ramps if len(ramp.upper) == 2),
        key=lambda ramp: math.dist(ramp.top_center, place_of(center)),
    )
    places = [(DEPOT, *place) for place in ramp.corner_depots]
    places.append((BARRACKS, *ramp.barracks_in_middle))
    session.create(*((kind, 1, x, y) for kind, x, y in places))
    inside, outside = place_of(center), (44.0, 48.0)
    assert session.way(inside, outside) == 0
    depot = _mine(session, DEPOT)[0]
    assert session.order(depot, LOWER) == 1
    session.step()
    assert session.way(inside, outside) > 40
    (lowered,) = _mine(session, LOWERED)
    assert lowered.tag == depot.tag
    assert session.order(lowered, RAISE) == 1
    session.step()
    assert session.way(inside, outside) == 0


def test_a_second_command_center_is_built_and_mined_from(melee):
    session = melee(None)
    session.rich(400)
    (center,) = _mine(session, CENTER)
    natural = (19.5, 39.5) if center.pos.y > 48 else (68.5, 56.5)
    workers = _mine(session, SCV)
    assert session.order(workers[:1], BUILD_CENTER, natural) == 1
    step_until(session, lambda: len(_mine(session, CENTER)) == 2)
    site = next(one for one in _mine(session, CENTER) if one.tag != center.tag)
    assert (site.pos.x, site.pos.y) == natural
    step_until(
        session, lambda: all(one.build_progress == 1 for one in _mine(session, CENTER)), 2000
    )
    assert session.observe().player_common.food_cap == 30
    near = [field for field in session.units(FIELD) if math.dist(place_of(field), natural) < 10]
    assert len(near) == 8
    session.order(workers[:6], GATHER, target=near[0])
    session.step(900)
    second = next(one for one in _mine(session, CENTER) if one.tag == site.tag)
    assert (second.assigned_harvesters, second.ideal_harvesters) == (6, 16)


def test_construction_is_halted_resumed_and_cancelled(melee):
    session = melee(None)
    session.rich(200)
    (center,) = _mine(session, CENTER)
    builder, other = _mine(session, SCV)[:2]
    place = _free_place(session, BUILD_DEPOT, center)
    session.order(builder, BUILD_DEPOT, place)
    step_until(session, lambda: _mine(session, DEPOT))
    session.step(100)
    before = _mine(session, DEPOT)[0].build_progress
    assert session.order(builder, HALT) == 1
    session.step(50)
    halted = _mine(session, DEPOT)[0]
    assert halted.build_progress == pytest.approx(before, abs=0.01)
    assert session.order(other, SMART, target=halted) == 1
    session.step(400)
    assert _mine(session, DEPOT)[0].build_progress > before + 0.3
    minerals = session.observe().player_common.minerals
    assert session.order(halted, CANCEL) == 1
    session.step(2)
    assert not _mine(session, DEPOT)
    assert session.observe().player_common.minerals >= minerals + 75
    assert not next(one for one in _mine(session, SCV) if one.tag == other.tag).orders


def test_a_structure_is_paid_for_when_it_is_ordered(melee):
    session = melee(None)
    (center,) = _mine(session, CENTER)
    place = _free_place(session, BUILD_DEPOT, center)
    worker, other = _mine(session, SCV)[:2]
    session.rich(250)
    build = command(worker, BUILD_DEPOT, place)
    for asked, left in ((build, 150), (build, 150), (command(worker, STOP), 250)):
        assert session.act(asked) == [1]
        session.step(2)
        assert saved(session)[0] == left
    assert session.act(build, command(other, BUILD_DEPOT, place)) == [1, 1]
    step_until(session, lambda: _mine(session, DEPOT))
    session.step(200)  # the second SCV finds that the place is already taken
    assert saved(session)[0] == 150
    session.order(other, BUILD_DEPOT, _free_place(session, BUILD_DEPOT, center))
    session.step()
    session.kill(other)
    session.step(2)
    assert saved(session)[0] == 150


def test_a_lost_builder_leaves_its_site(melee):
    session = melee(None)
    session.rich(200)
    (center,) = _mine(session, CENTER)
    builder = _mine(session, SCV)[0]
    session.order(builder, BUILD_DEPOT, _free_place(session, BUILD_DEPOT, center))
    step_until(session, lambda: _mine(session, DEPOT))
    session.kill(builder)
    session.step(100)
    before = _mine(session, DEPOT)[0].build_progress
    session.step(100)
    assert _mine(session, DEPOT)[0].build_progress == before < 1


def test_abilities_available_now(melee):
    session = melee(None)
    (center,), worker = _mine(session, CENTER), _mine(session, SCV)[0]
    builds = {BUILD_CENTER, BUILD_DEPOT, BUILD_REFINERY, BUILD_BARRACKS}
    assert not abilities(session, worker) & builds
    assert abilities(session, worker, free=True) & builds == builds - {BUILD_BARRACKS}
    assert TRAIN_SCV in abilities(session, center)
    assert 306 not in abilities(session, center)
    session.order(center, TRAIN_SCV)
    session.step()
    assert TRAIN_SCV not in abilities(session, center)
    assert {TRAIN_SCV, 306} <= abilities(session, center, free=True)


def test_a_snapshot_can_be_gathered_from(melee):
    session = melee(None)
    (center,) = _mine(session, CENTER)
    far = max(session.units(FIELD), key=lambda field: apart(field, center))
    assert far.display_type == raw_pb.Snapshot
    worker = _mine(session, SCV)[:1]
    assert session.order(worker, GATHER, target=far) == 1
    session.step()
    (order,) = next(one for one in _mine(session, SCV) if one.tag == worker[0].tag).orders
    assert order.target_unit_tag == far.tag - (1 << 32) - 2


def test_marines_destroy_a_town_and_win(melee):
    session = melee(sc_pb.VeryEasy, disable_fog=True)
    there = next(unit for unit in session.units(CENTER) if unit.alliance == raw_pb.Enemy)
    x, y = there.pos.x, there.pos.y
    session.create((MARINE, 1, x + 6, y, 20))
    marines = _mine(session, MARINE)
    session.order(marines, ATTACK, (x, y))
    for _ in range(400):
        session.step(8)
        if session.state.game.result is not None:
            break
        idle = [unit for unit in _mine(session, MARINE) if not unit.orders]
        enemies = [u for u in session.observe().raw_data.units if u.alliance == raw_pb.Enemy]
        if idle and enemies:
            goal = enemies[-1].pos
            session.order(idle, ATTACK, (goal.x, goal.y))
    reply = session.observed()
    results = {one.player_id: one.result for one in reply.player_result}
    assert results == {1: sc_pb.Victory, 2: sc_pb.Defeat}
    details = reply.observation.score.score_details
    assert details.killed_value_structures >= 400
    assert details.killed_minerals.economy >= 400


def test_a_stronger_computer_has_more(melee):
    soldiers = []
    for difficulty in (sc_pb.VeryEasy, sc_pb.Medium, sc_pb.VeryHard):
        session = melee(difficulty)
        session.step(4600)
        army = session.state.game.world.armies[2]
        soldiers.append(army.soldiers)
        assert army.workers >= 12
    assert soldiers == sorted(soldiers)
    assert soldiers[-1] >= soldiers[0] + 8


def _holdings(**changes: float) -> Holdings:
    nothing = dict.fromkeys(Holdings.__dataclass_fields__, 0)
    return Holdings(**{**nothing, "minerals": 50, "free_food": 3, "workers": 12, **changes})


def test_the_computers_plan():
    assert next_steps(_holdings(idle_halls=1), EASY) == [Step.TRAIN_SCV]
    assert next_steps(_holdings(idle_halls=1, minerals=150), EASY) == [
        Step.TRAIN_SCV,
        Step.BUILD_DEPOT,
    ]
    rich = {"minerals": 1000, "depots": 1, "workers": 99}
    assert next_steps(_holdings(**rich, loop=3000), EASY) == [Step.BUILD_BARRACKS]
    assert next_steps(_holdings(**rich, loop=2999), EASY) == []
    assert next_steps(_holdings(**rich, depots_coming=1, barracks=2, idle_barracks=1), EASY) == [
        Step.TRAIN_MARINE
    ]
    ready = {"idle_marines": 8, "loop": 10_000, "minerals": 0}
    assert Step.ATTACK in next_steps(_holdings(**ready), EASY)
    assert Step.ATTACK not in next_steps(_holdings(**ready, attacks=1), EASY)
    assert Step.ATTACK not in next_steps(_holdings(**ready | {"loop": 100}), EASY)
    very_easy, *others = LEVELS.values()
    assert very_easy.thinks_every_loops > max(level.thinks_every_loops for level in others)


def test_structures_are_attacked_though_workers_live_elsewhere(melee):
    session = melee(None)
    session.create((DEPOT, 1, 26.0, 46.0), (SCV, 1, 40.0, 46.0), (MARINE, 2, 28.0, 46.0))
    session.step(100)
    assert len(_mine(session, SCV)) == 13
    assert _mine(session, DEPOT)[0].health < 400
