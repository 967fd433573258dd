"""Tests that every reader copes with messages of real games, also with missing or strange parts.

Tasks, drawings and views accept each message that parses. If python-sc2 cannot read a message, a
`GameFault` is raised.
"""

from __future__ import annotations

import asyncio
import json
import lzma
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from s2clientprotocol import raw_pb2
from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.game_data import GameData
from sc2.game_info import GameInfo
from sc2.game_state import GameState

from sc2pool import Task
from sc2pool.errors import GameFault
from sc2pool.players.bots import UnitSorter, prepare_step, unreadable
from sc2pool.players.view import map_of, view_of
from sc2pool.protocol.observed import Observed
from sc2pool.render import FRAME_SHAPE
from sc2pool.tasks.minigames.move_to_beacon_bot import MoveToBeaconBot
from sc2pool.tasks.queue_pair import QueuePair
from sc2pool.tasks.registry import BUILT_IN, resolve_task
from sc2pool.units import unit_id

BEACON = unit_id("Beacon_Terran")
MARINE = unit_id("Marine")
MINERAL_SHARD = unit_id("NaturalMinerals")
ROACH = unit_id("Roach")

Info = sc_pb.ResponseGameInfo
Seen = sc_pb.ResponseObservation
TASKS = [task for name in BUILT_IN if issubclass(task := resolve_task(name), Task)]
NO_NUMBER = float("nan")


def without(path: str) -> Callable[[Info, Seen], None]:
    """Removes a field of the map's description (`info.…`) or of the observation (`seen.…`)."""
    *names, last = path.split(".")

    def change(info: Info, seen: Seen) -> None:
        message: Any = {"info": info, "seen": seen}[names[0]]
        for name in names[1:]:
            message = getattr(message, name)
        message.ClearField(last)

    return change


def only_a_result(info: Info, seen: Seen) -> None:
    seen.Clear()
    seen.player_result.add(player_id=1, result=sc_pb.Defeat)


def a_stub(info: Info, seen: Seen) -> None:
    seen.Clear()
    seen.observation.game_loop = 2**32 - 1


def as_player_2(info: Info, seen: Seen) -> None:
    seen.observation.player_common.player_id = 2


def as_observer(info: Info, seen: Seen) -> None:
    seen.observation.player_common.player_id = 16
    for unit in seen.observation.raw_data.units:
        if unit.alliance == raw_pb2.Self:
            unit.alliance = raw_pb2.Enemy


def unknown_types(info: Info, seen: Seen) -> None:
    for number, unit in enumerate(seen.observation.raw_data.units):
        unit.unit_type = 30_000 + number


def unknown_abilities(info: Info, seen: Seen) -> None:
    for number, unit in enumerate(seen.observation.raw_data.units):
        unit.orders.add(ability_id=50_000 + number)
        unit.buff_ids.append(9_999)
    seen.observation.abilities.add(ability_id=50_000)
    seen.observation.raw_data.effects.add(effect_id=777).pos.add(x=5, y=5)


def bare_units(info: Info, seen: Seen) -> None:
    """Clears all fields of the units except type, alliance and tag."""
    as_in_mini_games(info, seen)
    for unit in seen.observation.raw_data.units:
        bare = raw_pb2.Unit(unit_type=unit.unit_type, alliance=unit.alliance, tag=unit.tag)
        unit.CopyFrom(bare)


def empty_units(info: Info, seen: Seen) -> None:
    for unit in seen.observation.raw_data.units:
        unit.Clear()


def no_numbers(info: Info, seen: Seen) -> None:
    for unit in seen.observation.raw_data.units:
        unit.pos.x = unit.facing = unit.radius = unit.health = NO_NUMBER


def as_in_mini_games(info: Info, seen: Seen) -> None:
    """Makes own units marines, and all other units roaches, beacons and shards."""
    others = [
        (ROACH, raw_pb2.Enemy),
        (BEACON, raw_pb2.Neutral),
        (MINERAL_SHARD, raw_pb2.Neutral),
    ]
    for number, unit in enumerate(seen.observation.raw_data.units):
        if unit.alliance == raw_pb2.Self:
            unit.unit_type = MARINE
        else:
            unit.unit_type, unit.alliance = others[number % 3]


def some_nowhere(info: Info, seen: Seen) -> None:
    as_in_mini_games(info, seen)
    for unit in list(seen.observation.raw_data.units)[::3]:
        unit.ClearField("pos")


def far_outside(info: Info, seen: Seen) -> None:
    as_in_mini_games(info, seen)
    for corner in (info.start_raw.playable_area.p0, info.start_raw.playable_area.p1):
        corner.x += 500


def area_at_an_offset(info: Info, seen: Seen) -> None:
    info.start_raw.playable_area.p0.x += 37
    info.start_raw.playable_area.p0.y += 11


def area_of_no_size(info: Info, seen: Seen) -> None:
    info.start_raw.playable_area.p1.CopyFrom(info.start_raw.playable_area.p0)


def small_map(info: Info, seen: Seen) -> None:
    """Puts all units beyond the edge of the map."""
    start, state = info.start_raw, seen.observation.raw_data.map_state
    grids = (start.pathing_grid, start.placement_grid, start.terrain_height)
    for grid in (*grids, state.creep, state.visibility):
        grid.size.x, grid.size.y = 40, 24
        grid.data = b"\x01" * (40 * 24 * grid.bits_per_pixel // 8)
    start.map_size.x, start.map_size.y = 40, 24
    area = start.playable_area
    area.p0.x, area.p0.y, area.p1.x, area.p1.y = 3, 2, 36, 20


def grids_cut_short(info: Info, seen: Seen) -> None:
    for grid in (info.start_raw.pathing_grid, seen.observation.raw_data.map_state.visibility):
        grid.data = grid.data[:100]


def eight_bits_for_one(info: Info, seen: Seen) -> None:
    grid = info.start_raw.pathing_grid
    bits = np.unpackbits(np.frombuffer(grid.data, np.uint8))[: grid.size.x * grid.size.y]
    grid.bits_per_pixel, grid.data = 8, (bits * 255).tobytes()


def twins(info: Info, seen: Seen) -> None:
    """Gives many units the same tag."""
    units = seen.observation.raw_data.units
    units.extend([units[0]] * 200)


STATE = "seen.observation.raw_data"
MISSING = [
    *("seen.observation", STATE),
    *(f"seen.observation.{part}" for part in ("player_common", "score", "game_loop", "abilities")),
    *(f"{STATE}.{part}" for part in ("units", "player", "map_state")),
    *(f"{STATE}.map_state.{grid}" for grid in ("creep", "visibility")),
    *(f"info.{part}" for part in ("map_name", "player_info", "start_raw")),
    *(f"info.start_raw.{part}" for part in ("playable_area", "map_size", "start_locations")),
    *(f"info.start_raw.{grid}" for grid in ("pathing_grid", "placement_grid", "terrain_height")),
]
STRANGE = [
    *(only_a_result, a_stub, as_player_2, as_observer, unknown_types, unknown_abilities),
    *(bare_units, empty_units, as_in_mini_games, some_nowhere, far_outside, area_at_an_offset),
    *(area_of_no_size, small_map, grids_cut_short, eight_bits_for_one, twins),
]
CHANGES = {f"without {path}": without(path) for path in MISSING} | {
    change.__name__: change for change in STRANGE
}


@pytest.fixture(scope="module")
def data(recorded_dir: Path) -> GameData:
    path = next(recorded_dir.glob("*.data.pb.xz"))
    return GameData(sc_pb.ResponseData.FromString(lzma.decompress(path.read_bytes())))


def play_task(cls: type[Task], info: Info, seen: Seen) -> None:
    task = cls()
    task.game_info, task.lazy_observation = info, Observed.of(seen)
    task.on_start()
    assert cls.observation_space.contains(task.observe())
    cls.action_space.seed(1)
    for _ in range(12):
        list(task.act(cls.action_space.sample()))
    if hasattr(task, "action_masks"):
        assert cls.action_space.contains(cls.action_space.sample(task.action_masks().astype("i1")))


@contextmanager
def python_sc2_reads() -> Iterator[None]:
    """A block in which python-sc2 reads messages, and in which no code of the user runs."""
    try:
        yield
    except Exception as error:
        raise unreadable("it", error) from error


async def play_bot(info: Info, seen: Seen, data: GameData) -> None:
    bot = MoveToBeaconBot(QueuePair.local())
    player_id = seen.observation.player_common.player_id or 1
    response = sc_pb.Response(game_info=info)
    with python_sc2_reads():
        bot._prepare_start(None, player_id, GameInfo(info), data, realtime=False, base_build=1)
        bot._prepare_step(GameState(seen), response)
        bot._prepare_first_step()
    await bot.on_start()
    assert bot.observation_space.contains(bot.observe())
    with python_sc2_reads():
        prepare_step(bot, GameState(seen), UnitSorter(data))
    await bot.issue_events()
    assert bot.observation_space.contains(bot.observe())


def read_all(info: Info, seen: Seen, data: GameData) -> None:
    for cls in TASKS:
        play_task(cls, info, seen)
    told = [view_of(seen.observation), map_of(info)]
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    task = TASKS[0]()
    task.game_info, task.observation = info, seen.observation
    assert task.render().shape == FRAME_SHAPE


def test_as_they_came(recorded, data):
    for info, seen in recorded:
        read_all(info, seen, data)
        asyncio.run(play_bot(info, seen, data))


@pytest.mark.parametrize(("number", "name"), list(enumerate(CHANGES)), ids=list(CHANGES))
def test_changed(number, name, recorded, data):
    info, seen = deepcopy(recorded[number % len(recorded)])
    CHANGES[name](info, seen)
    read_all(info, seen, data)
    with suppress(GameFault):
        asyncio.run(play_bot(info, seen, data))


def test_without_numbers(recorded):
    """NaN in a message is the game's fault; views show the message until a newer message comes."""
    info, seen = deepcopy(recorded[0])
    no_numbers(info, seen)
    for cls in TASKS:
        with pytest.raises(GameFault, match=r"the pos\.x of a unit is nan"):
            play_task(cls, info, seen)
    told = view_of(seen.observation)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
