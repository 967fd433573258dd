"""Tests frames of hand-built and recorded games: the drawn things, their places and colours."""

from __future__ import annotations

import math
import statistics
import time
from typing import Any

import numpy as np
import pytest
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.render import FRAME_SHAPE, MAP_PX, palette
from sc2pool.render.frame import draw
from tests.unit.conftest import grid_of

LEFT, BOTTOM, WIDTH, HEIGHT = 4, 6, 23, 19
"""The playable area, on a map of 32 × 32 cells."""
SIZE = 32
PX_PER_CELL = MAP_PX / (WIDTH + 1)  # the longer side has half a cell of margin at each end
BLOCKED_FROM_X = 20
OWN, ENEMY = palette.SIDES[raw_pb2.Self], palette.SIDES[raw_pb2.Enemy]


@pytest.fixture
def game_info() -> sc_pb.ResponseGameInfo:
    info = sc_pb.ResponseGameInfo(map_name="By Hand")
    start = info.start_raw
    start.map_size.x = start.map_size.y = SIZE
    low, high = start.playable_area.p0, start.playable_area.p1
    low.x, low.y, high.x, high.y = LEFT, BOTTOM, LEFT + WIDTH, BOTTOM + HEIGHT
    is_open = np.ones((SIZE, SIZE), np.uint8)
    is_open[:, BLOCKED_FROM_X:] = 0
    grid_of(start.pathing_grid, is_open, 1)
    grid_of(start.terrain_height, np.full((SIZE, SIZE), 200), 8)
    return info


def observation(*units: raw_pb2.Unit) -> sc_pb.Observation:
    made = sc_pb.Observation(game_loop=112)
    made.raw_data.units.extend(units)
    grid_of(made.raw_data.map_state.visibility, np.full((SIZE, SIZE), 2), 8)
    return made


def unit(x: float, y: float, **fields: Any) -> raw_pb2.Unit:
    defaults = {"alliance": raw_pb2.Self, "tag": 1, "radius": 0.5, "display_type": raw_pb2.Visible}
    made = raw_pb2.Unit(**(defaults | fields))
    made.pos.x, made.pos.y = x, y
    return made


def pixel(x: float, y: float) -> tuple[int, int]:
    """The row and column of a map point, computed from the area's centre, unlike in the code."""
    middle_x, middle_y = LEFT + WIDTH / 2, BOTTOM + HEIGHT / 2
    row = MAP_PX / 2 - (y - middle_y) * PX_PER_CELL
    column = MAP_PX / 2 + (x - middle_x) * PX_PER_CELL
    return int(row), int(column)


def at(frame: Any, x: float, y: float) -> tuple[int, ...]:
    return tuple(int(part) for part in frame[pixel(x, y)])


def count(frame: Any, colour: palette.Colour) -> int:
    return int((frame[:, :MAP_PX] == colour).all(axis=2).sum())


def test_a_frame_is_an_array_of_its_own(game_info):
    first, second = draw(game_info, observation()), draw(game_info, observation())
    assert first.shape == FRAME_SHAPE
    assert first.dtype == np.uint8
    assert first.flags.c_contiguous
    np.testing.assert_array_equal(first, second)
    first[...] = 0
    assert draw(game_info, observation()).any()
    assert second.any()


@pytest.mark.parametrize(
    ("x", "y"), [(4.5, 6.5), (26.5, 6.5), (4.5, 24.5), (26.5, 24.5), (11.2, 17.9)]
)
def test_a_unit_is_where_the_message_says_in_its_sides_colour(game_info, x, y):
    without = draw(game_info, observation())
    for alliance, colour in palette.SIDES.items():
        frame = draw(game_info, observation(unit(x, y, alliance=alliance)))
        assert at(frame, x, y) == colour
        changed = np.argwhere((frame != without)[:, :MAP_PX].any(axis=2))
        row, column = pixel(x, y)
        reach = 0.5 * 1.65 * PX_PER_CELL + 2  # radius, nose, and a border of up to two pixels
        assert (np.abs(changed - (row, column)).max(axis=0) <= reach).all()


def test_the_size_is_the_units_own(game_info):
    small, large = (
        count(draw(game_info, observation(unit(12, 15, radius=r, facing=math.nan))), OWN)
        for r in (0.4, 0.8)
    )
    disc = math.pi * (0.8 * PX_PER_CELL) ** 2
    assert 0.7 * disc < large < disc
    assert 3 * small < large < 6 * small


@pytest.mark.parametrize("facing", [0.0, math.pi / 2, math.pi, 5.5])
def test_the_nose_points_where_the_unit_looks(game_info, facing):
    frame = draw(game_info, observation(unit(12, 15, facing=facing)))
    reach = 0.5 * 1.35
    ahead = (12 + reach * math.cos(facing), 15 + reach * math.sin(facing))
    behind = (12 - reach * math.cos(facing), 15 - reach * math.sin(facing))
    assert at(frame, *ahead) == OWN
    assert at(frame, *behind) != OWN


@pytest.mark.parametrize(
    ("health", "colour"),
    [(45, palette.HEALTH_FULL), (20, palette.HEALTH_HALF), (5, palette.HEALTH_LOW)],
)
def test_the_bar_is_as_long_as_the_health(game_info, health, colour):
    frame = draw(game_info, observation(unit(12, 15, health=health, health_max=45)))
    full = draw(game_info, observation(unit(12, 15, health=45, health_max=45)))
    assert count(frame, colour) == pytest.approx(
        count(full, palette.HEALTH_FULL) * health / 45, rel=0.25
    )


def test_shields_and_progress_have_bars_too(game_info):
    building = unit(
        12, 15, radius=1.5, health=9, health_max=9, shield=5, shield_max=9, build_progress=0.5
    )
    frame = draw(game_info, observation(building))
    assert count(frame, palette.SHIELD) > 0
    assert count(frame, palette.PROGRESS) > 0
    assert count(frame, palette.SHIELD) < count(frame, palette.HEALTH_FULL)


def test_neutral_things_have_no_bars_and_their_own_colours(game_info):
    (shard,), (beacon,) = palette.MINERAL_SHARD_TYPES, palette.BEACON_TYPES
    frame = draw(
        game_info,
        observation(
            unit(8, 10, alliance=raw_pb2.Neutral, unit_type=341, radius=1.1, health_max=500),
            unit(12, 10, alliance=raw_pb2.Neutral, unit_type=342, radius=1.6),
            unit(16, 10, alliance=raw_pb2.Neutral, unit_type=shard, radius=0.1),
            unit(20, 10, alliance=raw_pb2.Neutral, unit_type=beacon, radius=2.5),
        ),
    )
    assert [at(frame, x, 10) for x in (8, 12, 16, 20)] == [
        palette.MINERALS,
        palette.GAS,
        palette.MINERALS,
        palette.BEACON,
    ]
    assert count(frame, palette.HEALTH_LOW) == 0


@pytest.mark.parametrize(("moves", "attacks"), [(16, 23), (3794, 3674)])
def test_orders_are_lines_to_their_targets(game_info, moves, attacks):
    ordered = unit(8, 10)
    ordered.orders.add(ability_id=moves).target_world_space_pos.x = 14
    ordered.orders[0].target_world_space_pos.y = 10
    ordered.orders.add(ability_id=attacks, target_unit_tag=2)
    other = unit(14, 16, tag=2, alliance=raw_pb2.Enemy)
    without = draw(game_info, observation(unit(8, 10), other))
    frame = draw(game_info, observation(ordered, other))
    ground = np.array(at(without, 11, 10), int)
    move = np.array(at(frame, 11, 10), int) - ground
    attack = np.array(at(frame, 14, 13), int) - ground
    assert move[1] > 20, "green on the way to the first target"
    assert move[1] > move[0]
    assert attack[0] > 20, "red from there to the second"
    assert attack[0] > 2 * attack[1]
    np.testing.assert_array_equal(at(frame, 14, 16), ENEMY)


def test_an_order_without_a_place_draws_nothing(game_info):
    ordered = unit(8, 10)
    ordered.orders.add(ability_id=23, target_unit_tag=99)
    ordered.orders.add(ability_id=3793)
    np.testing.assert_array_equal(
        draw(game_info, observation(ordered)), draw(game_info, observation(unit(8, 10)))
    )


def test_flying_units_are_drawn_above_walking_ones(game_info):
    walker = unit(12, 15, alliance=raw_pb2.Enemy, tag=2)
    flyer = unit(12, 15, is_flying=True)
    for units in ((walker, flyer), (flyer, walker)):
        assert at(draw(game_info, observation(*units)), 12, 15) == OWN


def test_cloaked_and_planned_units_are_translucent(game_info):
    for fields in (
        {"cloak": raw_pb2.Cloaked},
        {"is_burrowed": True},
        {"display_type": raw_pb2.Placeholder},
    ):
        frame = draw(game_info, observation(unit(12, 15, **fields)))
        assert at(frame, 12, 15) != OWN
        assert count(frame, OWN) > 0, "its edge"


def test_fog_darkens_places_out_of_sight_and_more_those_never_seen(game_info):
    state = observation()
    visibility = np.full((SIZE, SIZE), 2)
    visibility[:, 8:12], visibility[:, 12:] = 1, 0
    grid_of(state.raw_data.map_state.visibility, visibility, 8)
    frame = draw(game_info, state)
    seen, once, never = (sum(at(frame, x, 15)) for x in (6.5, 10.5, 14.5))
    assert seen > 1.2 * once > 1.2 * 1.2 * never > 0


def test_walls_are_darker_and_creep_is_purple(game_info):
    plain = draw(game_info, observation())
    assert sum(at(plain, 18.5, 15.5)) > 1.5 * sum(at(plain, 22.5, 15.5))
    state = observation()
    creep = np.zeros((SIZE, SIZE), np.uint8)
    creep[10:14, 10:14] = 1
    grid_of(state.raw_data.map_state.creep, creep, 1)
    red, green, blue = at(draw(game_info, state), 12.5, 12.5)
    assert green < red < blue
    assert at(draw(game_info, state), 16.5, 12.5) == at(plain, 16.5, 12.5)


def test_effects_are_where_they_act(game_info):
    state = observation()
    effect = state.raw_data.effects.add(radius=2.0)
    effect.pos.add(x=12, y=15)
    frame, without = draw(game_info, state), draw(game_info, observation())
    assert at(frame, 13.5, 15) != at(without, 13.5, 15)
    assert at(frame, 14.5, 15) == at(without, 14.5, 15)


def test_the_panel_tells_what_changes(game_info):
    def panel(state: sc_pb.Observation, **options: Any) -> bytes:
        return draw(game_info, state, **options)[:, MAP_PX:].tobytes()

    scored, rich = observation(), observation()
    scored.score.score = 7
    rich.player_common.minerals = 50
    later = observation()
    later.game_loop = 113
    told = {
        panel(observation()),
        panel(scored),
        panel(rich),
        panel(later),
        panel(observation(), title="Another"),
        panel(observation(), max_loops=200),
        panel(observation(), figures={"return": 3.5}),
        panel(observation(), title="AWordThatIsFarTooLongForTheWidthOfThisPanel"),
    }
    assert len(told) == 8


def test_messages_with_little_in_them(game_info):
    for info in (sc_pb.ResponseGameInfo(), game_info):
        for state in (sc_pb.Observation(), observation(raw_pb2.Unit())):
            assert draw(info, state).shape == FRAME_SHAPE


@pytest.mark.timing
def test_absurd_numbers_neither_raise_nor_take_long(game_info):
    game_info.start_raw.playable_area.p1.x = 2**31 - 1
    game_info.start_raw.terrain_height.data = b"short"
    absurd = []
    for tag, number in enumerate((math.nan, math.inf, -math.inf, 3e38, -3e38), start=1):
        strange = unit(number, 15, tag=tag, radius=number, facing=number)
        strange.health = strange.health_max = strange.shield = number
        strange.shield_max = 1.0
        strange.orders.add(ability_id=16).target_world_space_pos.x = number
        strange.orders.add(ability_id=16).target_unit_tag = tag
        absurd.append(strange)
    state = observation(*absurd)
    state.raw_data.effects.add(radius=math.nan).pos.add(x=math.nan, y=math.inf)
    began_s = time.monotonic()
    assert draw(game_info, state).shape == FRAME_SHAPE
    assert time.monotonic() - began_s < 10.0


@pytest.mark.timing
def test_real_games(recorded):
    for info, response in recorded:
        state = response.observation
        frame = draw(info, state)
        assert frame.shape == FRAME_SHAPE, info.map_name
        town_halls = [
            u for u in state.raw_data.units if u.alliance == raw_pb2.Self and u.radius > 2
        ]
        area = info.start_raw.playable_area
        side = max(area.p1.x - area.p0.x, area.p1.y - area.p0.y) + 1
        for hall in town_halls:
            column = 240 + (hall.pos.x - (area.p0.x + area.p1.x) / 2) * MAP_PX / side
            row = 240 - (hall.pos.y - (area.p0.y + area.p1.y) / 2) * MAP_PX / side
            assert tuple(frame[int(row), int(column)]) == OWN, info.map_name
        times_s = []
        for _ in range(5):
            began_s = time.process_time()
            draw(info, state)
            times_s.append(time.process_time() - began_s)
        assert statistics.median(times_s) < 0.1  # about 5 ms on a calm machine
