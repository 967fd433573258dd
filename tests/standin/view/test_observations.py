"""Tests the stamps of maps, the fog of war, and that updated observations equal new ones."""

from __future__ import annotations

import lzma
import zlib

import numpy as np
import pytest
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.abilities import ABILITIES
from sc2standin.data.unit_types.files import UNIT_TYPES
from tests.standin.sessions import COLLECT, command

SCV, MARINE, MEDIVAC, OBSERVER, RAVEN, TURRET, AUTO_TURRET = 45, 48, 54, 82, 56, 31, 1764


def _disturb(session, rng: np.random.Generator) -> None:
    """Give commands to some units, and create, kill or change a unit."""
    units = list(session.observe().raw_data.units)
    group = [unit for unit in units if unit.owner == 1 and rng.random() < 0.5]
    if group:
        ability = ABILITIES[rng.integers(len(ABILITIES))].id
        point = rng.uniform(20, 40, 2).tolist()
        session.order(group, ability, point, queued=bool(rng.integers(2)))
    match rng.integers(4):
        case 0:
            kind = UNIT_TYPES[rng.integers(len(UNIT_TYPES))].id
            session.create((kind, int(rng.choice([1, 2, 16])), *rng.uniform(20, 40, 2)))
        case 1:
            session.kill(units[rng.integers(len(units))])
        case 2:
            name = rng.choice(debug_pb.DebugSetUnitValue.UnitValue.keys())
            session.set_value(units[rng.integers(len(units))], name, rng.uniform(1, 50))


@pytest.mark.parametrize("fog", [False, True])
def test_a_kept_observation_has_the_bytes_of_a_new_one(offline, fog):
    rng = np.random.default_rng(1)
    everyone = [(kind.id, owner) for kind in UNIT_TYPES for owner in (1, 2)]
    places = ((*one, 10 + i % 40, 20 + 4 * (i // 40)) for i, one in enumerate(everyone))
    offline.arena(*places, rules=[COLLECT], fog=fog)
    sizes = set()
    for _ in range(60):
        _disturb(offline, rng)
        offline.step(int(rng.integers(1, 9)))
        if offline.state.status.name != "IN_GAME":
            break
        sizes.add(len(offline.look(disable_fog=bool(rng.integers(2)))))
    assert len(sizes) > 20


def _fields(unit) -> set[str]:
    return {field.name for field, _value in unit.ListFields()}


def test_a_units_fields_are_those_of_recorded_ones(offline, recorded_dir):
    """A marine must have the fields of a recorded SCV, and scenery fewer fields than a unit."""
    path = next(recorded_dir.glob("*.observation.pb.xz"))
    recorded = sc_pb.ResponseObservation.FromString(lzma.decompress(path.read_bytes()))
    scv = next(unit for unit in recorded.observation.raw_data.units if unit.unit_type == SCV)
    offline.arena((48, 1, 20, 20), (110, 2, 24, 20), (1680, 16, 40, 40))
    marine, roach, shard = offline.observe().raw_data.units
    assert _fields(marine) == _fields(scv) - {"orders"}
    others = _fields(marine) - {"weapon_cooldown", "assigned_harvesters", "ideal_harvesters"}
    assert _fields(roach) == others | {"is_powered"}
    assert _fields(shard) < _fields(roach)
    assert marine.facing == pytest.approx(1.5 * np.pi)
    offline.step()
    (marine,) = offline.units(48)
    assert marine.engaged_target_tag == roach.tag
    offline.order(marine, 16, (10, 20))
    offline.step()
    assert not offline.units(48)[0].HasField("engaged_target_tag")


def test_a_units_range_of_detection_and_the_time_it_is_there(offline):
    """As recorded, only detectors have a detection range; only temporary units have a time left."""
    offline.arena((OBSERVER, 1, 20, 20), (MARINE, 1, 20, 24), (RAVEN, 1, 24, 24))
    offline.set_value(offline.one(RAVEN), "Energy", 200)
    offline.step()
    offline.order(offline.units(RAVEN), AUTO_TURRET, (25, 24))
    offline.step(9)
    observer, marine, turret = (offline.one(kind) for kind in (OBSERVER, MARINE, TURRET))
    assert (observer.detect_range, marine.HasField("detect_range")) == (11, False)
    assert turret.buff_duration_max == 224
    assert 214 <= turret.buff_duration_remain <= 224
    offline.step(10)
    later = offline.one(TURRET)
    assert later.buff_duration_remain == turret.buff_duration_remain - 10
    assert not marine.HasField("buff_duration_remain")


def test_healed_life_is_in_the_score(offline):
    offline.arena((MEDIVAC, 1, 20, 20), (MARINE, 1, 21, 20), (MEDIVAC, 2, 50, 50))
    offline.set_value(offline.one(MARINE), "Life", 20)
    offline.set_value(offline.units(MEDIVAC)[0], "Energy", 100)
    offline.step(100)
    assert offline.one(MARINE).health == 45
    assert offline.observe().score.score_details.total_healed.life == pytest.approx(25, abs=1)


ME = 1
MOVE = 3794


def stamp(offline):
    """Returns the stamp of an observation: instance, episode, loop, actions and checksum."""
    reply = offline.observed()
    (chat,) = reply.chat
    word, *numbers = chat.message.split()
    assert word == "stamp"
    return [int(number) for number in numbers]


def test_it_tells_instance_episode_loop_and_the_newest_action(offline, session_for):
    offline.arena((MARINE, ME, 20, 20), stamp=True)
    instance, *rest = stamp(offline)
    assert rest == [1, 0, 0, 0]
    for count, point in enumerate([(30.0, 30.0), (31.0, 30.0)], start=1):
        request = sc_pb.RequestAction(actions=[command(offline.units(MARINE), MOVE, point)])
        offline.ask(action=request)
        offline.step(8)
        checksum = zlib.crc32(request.SerializeToString())
        assert stamp(offline) == [instance, 1, 8 * count, count, checksum]
    offline.ask(restart_game=sc_pb.RequestRestartGame())
    assert stamp(offline) == [instance, 2, 0, 0, 0]
    offline.ask(leave_game=sc_pb.RequestLeaveGame())
    offline.arena(stamp=True)
    assert stamp(offline) == [instance, 3, 0, 0, 0]
    other = session_for()
    other.arena(stamp=True)
    assert stamp(other)[0] != instance


def test_other_maps_say_nothing(offline):
    offline.arena()
    assert not offline.observed().chat


SMART, MOVE_MOVE, ATTACK = 1, 16, 23
ROACH, TEMPLAR, SHARD = 110, 76, 1680
HIDDEN, FOGGED, VISIBLE = 0, 1, 2
SHARDS = {"type": "MineralShard", "owner": 16, "count": 30, "place": "random"}


def _grid(session) -> np.ndarray:
    state = session.observe().raw_data.map_state.visibility
    return np.frombuffer(state.data, np.uint8).reshape(state.size.y, state.size.x)


def _distances(grid: np.ndarray, x: float, y: float) -> np.ndarray:
    """The distance of each cell's centre from a point."""
    rows, columns = np.indices(grid.shape) + 0.5
    return np.hypot(columns - x, rows - y)


def test_unseen_places_are_hidden_and_seen_ones_fogged(offline):
    offline.arena((MARINE, 1, 12, 12), fog=True)
    first = _grid(offline)
    assert (first == np.where(_distances(first, 12, 12) <= 9, VISIBLE, HIDDEN)).all()
    offline.order(offline.one(MARINE), MOVE_MOVE, (50, 12))
    offline.step(400)
    last = _grid(offline)
    assert ((last == VISIBLE) == (_distances(last, 50, 12) <= 9)).all()
    assert last[12, 12] == last[12, 30] == FOGGED
    assert last[40, 30] == HIDDEN
    lifted = offline.observed(disable_fog=True).observation.raw_data.map_state
    assert set(lifted.visibility.data) == {VISIBLE}


def test_neutral_scenery_is_remembered_from_the_start_and_seen_as_it_is(offline, recorded_dir):
    path = next(recorded_dir.glob("*.observation.pb.xz"))
    recorded = sc_pb.ResponseObservation.FromString(lzma.decompress(path.read_bytes()))
    real = next(
        unit for unit in recorded.observation.raw_data.units if unit.display_type == raw_pb.Snapshot
    )
    offline.arena((MARINE, 1, 30, 30), units=[SHARDS], fog=True)
    shards = offline.units(SHARD)
    assert len(shards) == 30
    for shard in shards:
        near = np.hypot(shard.pos.x - 30, shard.pos.y - 30) < 8
        far = np.hypot(shard.pos.x - 30, shard.pos.y - 30) > 10
        assert not (near and shard.display_type != raw_pb.Visible)
        if far:
            fields = {field.name for field, _value in shard.ListFields()}
            assert fields == {field.name for field, _value in real.ListFields()}
            assert (shard.display_type, shard.cloak) == (real.display_type, real.cloak)
    assert len({shard.tag for shard in shards}) == 30


def test_a_structure_lost_out_of_sight_is_remembered_until_its_place_is_seen(offline):
    offline.arena((MARINE, 1, 12, 30), units=[SHARDS], fog=True, playable_area=[[8, 28], [56, 32]])
    real = [unit for unit in offline.state.game.world.units if unit.type.id == SHARD]
    gone = max(real, key=lambda unit: unit.x)
    assert gone.x > 30
    offline.kill(gone)
    offline.step()

    def shown():
        return [unit for unit in offline.units(SHARD) if abs(unit.pos.x - gone.x) < 1e-3]

    assert [unit.display_type for unit in shown()] == [raw_pb.Snapshot]
    offline.order(offline.units(MARINE), MOVE_MOVE, (gone.x, gone.y))
    offline.step(400)
    assert not shown()
    assert len(offline.units(SHARD)) == 29


def test_an_enemy_in_the_fog_is_no_target(offline):
    offline.arena((MARINE, 1, 12, 12), (ROACH, 2, 18, 12), fog=True)
    marine, roach = offline.one(MARINE), offline.one(ROACH)
    assert offline.order(marine, ATTACK, target=roach) == 1
    offline.state.game.world.by_tag[roach.tag].x = 40.0
    offline.step(8)
    assert not offline.units(ROACH)
    for ability in (ATTACK, MOVE_MOVE, SMART):
        assert offline.order(marine, ability, target=roach) == error_pb.MustTargetVisibleUnit


def test_a_client_shows_the_whole_map_until_it_hides_it_again(session_for):
    session = session_for()
    session.arena((MARINE, 1, 12, 12), (ROACH, 2, 50, 50), (TEMPLAR, 2, 50, 40), fog=True)
    session.step()
    assert not session.units(ROACH)
    session.toggle(debug_pb.show_map)
    session.step()
    assert len(session.units(ROACH)) == 1
    assert not session.units(TEMPLAR)
    assert set(session.observe().raw_data.map_state.visibility.data) == {VISIBLE}
    session.toggle(debug_pb.show_map)
    session.step()
    assert not session.units(ROACH)
    assert set(session.observe().raw_data.map_state.visibility.data) == {VISIBLE, FOGGED}
