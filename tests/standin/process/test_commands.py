"""Tests the replies to correct and wrong actions, queries and debug commands."""

from __future__ import annotations

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import query_pb2 as query_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from tests.standin.sessions import command

SMART, MOVE, ATTACK = 1, 16, 23
MARINE, ROACH, ZEALOT, HIGH_TEMPLAR, BEACON = 48, 110, 73, 75, 317


def test_action_results(offline):
    offline.start("DefeatRoaches")
    marine, roach = offline.units(MARINE)[0], offline.units(ROACH)[0]
    camera, chat, layer = sc_pb.Action(), sc_pb.Action(), sc_pb.Action()
    camera.action_raw.camera_move.center_world_space.x = 3
    chat.action_chat.message = "gl hf"
    layer.action_feature_layer.camera_move.center_minimap.x = 3
    nan = float("nan")
    cases = {
        error_pb.Success: [
            command(marine, 3794, (40, 40)),
            command([marine, 12345], MOVE, (40, 40)),
            command(marine, ATTACK, target=roach),
            camera,
            chat,
        ],
        error_pb.Error: [
            command([], MOVE, (40, 40)),
            command(12345, MOVE, (1, 1)),
            command([2**64 - 1], MOVE, (1, 1)),
            sc_pb.Action(action_raw=raw_pb.ActionRaw()),
        ],
        error_pb.NotSupported: [command(marine, 380), command(marine, -5), layer],
        error_pb.YouCantIssueCommandsToThatUnit: [command(roach, MOVE, (40, 40))],
        error_pb.MustTargetVisibleUnit: [command(marine, ATTACK, target=12345)],
        error_pb.CantTargetFriendlyUnits: [
            command(marine, ATTACK, target=offline.units(MARINE)[1].tag)
        ],
        error_pb.MustTargetWalkableLocation: [
            command(marine, MOVE, (nan, 3)),
            command(marine, MOVE, (3, 1e9)),
        ],
        error_pb.MustTargetUnit: [command(marine, MOVE)],
    }
    for result, actions in cases.items():
        assert offline.act(*actions) == [result] * len(actions)
    errors = offline.observed().action_errors
    assert {e.result for e in errors} == set(cases) - {error_pb.Success}
    assert not offline.observed().action_errors
    offline.step(2000)


def test_who_controls_the_enemy_commands_its_units_too(offline):
    offline.arena((MARINE, 1, 20, 20), (ROACH, 2, 50, 50))
    (roach,) = offline.units(ROACH)
    offline.toggle(debug_pb.control_enemy)
    offline.step()
    assert offline.order(roach, MOVE, (40, 40)) == error_pb.Success
    offline.step(16)
    (after,) = offline.units(ROACH)
    assert (after.pos.x, after.pos.y) < (50, 50)
    offline.toggle(debug_pb.control_enemy)
    offline.step()
    refused = [error_pb.YouCantIssueCommandsToThatUnit]
    assert offline.act(command(roach, MOVE, (40, 40))) == refused


def test_an_action_is_observed_once(offline):
    offline.arena((MARINE, 1, 20, 20), (ROACH, 2, 50, 50))
    (marine,), (roach,) = offline.units(MARINE), offline.units(ROACH)
    chat, camera = sc_pb.Action(), sc_pb.Action()
    chat.action_chat.message = "gl hf"
    camera.action_raw.camera_move.center_world_space.x = 3
    offline.step(4)
    offline.act(
        command([roach.tag, marine.tag], 3794, (30, 20)),
        command(roach, MOVE),
        chat,
        camera,
    )

    def told():
        seen = offline.observed()
        return list(seen.actions), list(seen.chat), len(seen.action_errors)

    assert told() == ([], [], 2)
    offline.step()
    walk = command(marine, MOVE, (30, 20))  # the reported action names only units that obey
    done = [walk, chat, camera]
    for action in done:
        action.game_loop = 5
    assert told() == (done, [sc_pb.ChatReceived(player_id=1, message="gl hf")], 0)
    offline.step()
    assert told() == ([], [], 0)


def test_a_unit_that_is_named_twice_gets_the_order_once(offline):
    offline.start()
    (marine,) = offline.units(MARINE)
    offline.order(marine, MOVE, (40, 40))
    offline.order([marine, marine], MOVE, (50, 50), queued=True)
    assert not offline.units(MARINE)[0].orders  # units begin their orders in the next loop
    offline.step()
    assert len(offline.units(MARINE)[0].orders) == 2


def test_scenery_can_be_walked_to_but_not_attacked(offline):
    offline.start("MoveToBeacon")
    (marine,), (beacon,) = offline.units(MARINE), offline.units(BEACON)
    assert offline.act(
        command(marine, ATTACK, target=beacon),
        command(marine, SMART, target=beacon),
    ) == [error_pb.CantTargetInvulnerableUnits, error_pb.Success]
    while not offline.observe().score.score:
        offline.step(4)


def test_queries(offline):
    offline.arena((MARINE, 1, 20, 20), (ROACH, 2, 50, 50))
    (marine,) = offline.units(MARINE)
    point = common.Point2D
    query = query_pb.RequestQuery(
        pathing=[
            query_pb.RequestQueryPathing(unit_tag=marine.tag, end_pos=point(x=23, y=24)),
            query_pb.RequestQueryPathing(start_pos=point(x=9, y=9), end_pos=point(x=9, y=19)),
            query_pb.RequestQueryPathing(unit_tag=marine.tag, end_pos=point(x=1, y=1)),
            query_pb.RequestQueryPathing(unit_tag=1, end_pos=point(x=23, y=24)),
        ],
        abilities=[
            query_pb.RequestQueryAvailableAbilities(unit_tag=marine.tag),
            query_pb.RequestQueryAvailableAbilities(unit_tag=1),
        ],
        placements=[
            query_pb.RequestQueryBuildingPlacement(ability_id=319, target_pos=point(x=x, y=y))
            for x, y in ((30, 30), (20, 20), (2, 2))
        ],
    )
    reply = offline.ask(query=query).query
    assert [p.distance for p in reply.pathing] == [5, 10, 0, 0]
    assert [a.ability_id for a in reply.abilities[0].abilities] == [1, 4, 16, 17, 18, 23]
    assert reply.abilities[0].unit_type_id == MARINE
    assert not reply.abilities[1].abilities
    assert [p.result for p in reply.placements] == [
        error_pb.Success,
        error_pb.CantBuildOnThat,
        error_pb.CantBuildLocationInvalid,
    ]


def test_debug_values(offline):
    offline.arena((ZEALOT, 1, 20, 20), (HIGH_TEMPLAR, 1, 24, 20))
    (zealot,) = offline.units(ZEALOT)
    (templar,) = offline.units(HIGH_TEMPLAR)

    def put(name, value, unit=zealot):
        offline.set_value(unit, name, value)
        offline.state.playing().do_asked()

    put("Life", 10)
    put("Shields", 7)
    put("Energy", 5)
    put("Energy", 5, templar)
    (zealot,) = offline.units(ZEALOT)
    assert (zealot.health, zealot.shield) == (10, 7)
    assert zealot.energy == 0, "a zealot has none"
    assert offline.units(HIGH_TEMPLAR)[0].energy == 5
    put("Energy", 1e30, templar)
    assert offline.one(HIGH_TEMPLAR).energy == 200
    put("Life", 1e6)
    assert offline.units(ZEALOT)[0].health == 100
    put("Life", 0)
    put("Life", 0, templar)
    assert offline.step().status == sc_pb.ended
