"""The fog of war: what is seen, what was seen, what is remembered."""

from __future__ import annotations

import lzma

import numpy as np
from s2clientprotocol import debug_pb2 as debug_pb
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

SMART, MOVE, ATTACK = 1, 16, 23
MARINE, ROACH, TEMPLAR, SHARD = 48, 110, 76, 1680
SHOW_MAP = debug_pb.DebugCommand(game_state=debug_pb.show_map)
HIDDEN, FOGGED, VISIBLE = 0, 1, 2
SHARDS = {"type": "MineralShard", "owner": 16, "count": 30, "place": "random"}


def test_fog_hides_enemies_until_seen(session_for):
    for disable, seen in ((False, 0), (True, 1)):
        session = session_for()
        session.arena((MARINE, 1, 20, 20), (ROACH, 2, 40, 40), fog=True)
        raw = session.observed(disable_fog=disable).observation.raw_data
        assert sum(u.owner == 2 for u in raw.units) == seen
        grid = raw.map_state.visibility.data
        assert grid[20 * 64 + 20] == 2
        assert (grid[40 * 64 + 40] == 2) == disable


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
    offline.order(offline.one(MARINE), MOVE, (50, 12))
    offline.step(400)
    last = _grid(offline)
    assert ((last == VISIBLE) == (_distances(last, 50, 12) <= 9)).all()
    assert last[12, 12] == last[12, 30] == FOGGED
    assert last[40, 30] == HIDDEN


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
    offline.order(offline.units(MARINE), MOVE, (gone.x, gone.y))
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
    for ability in (ATTACK, MOVE, SMART):
        assert offline.order(marine, ability, target=roach) == error_pb.MustTargetVisibleUnit


def test_a_client_shows_the_whole_map_until_it_hides_it_again(session_for):
    session = session_for()
    session.arena((MARINE, 1, 12, 12), (ROACH, 2, 50, 50), (TEMPLAR, 2, 50, 40), fog=True)
    session.step()
    assert not session.units(ROACH)
    session.debug(SHOW_MAP)
    session.step()
    assert len(session.units(ROACH)) == 1
    assert not session.units(TEMPLAR)
    assert set(session.observe().raw_data.map_state.visibility.data) == {VISIBLE}
    session.debug(SHOW_MAP)
    session.step()
    assert not session.units(ROACH)
    assert set(session.observe().raw_data.map_state.visibility.data) == {VISIBLE, FOGGED}
