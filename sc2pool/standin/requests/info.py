"""Requests about the game: version, maps, the current map, the data tables."""

from __future__ import annotations

from functools import lru_cache

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import data_pb2 as data_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.standin.abilities import ABILITIES
from sc2pool.standin.state import PLAYER_ID, State
from sc2pool.standin.unit_types import UNIT_TYPES, UnitType
from sc2pool.standin.version import BASE_BUILD, DATA_VERSION, GAME_VERSION


def ping(_state: State, _request: sc_pb.RequestPing, response: sc_pb.Response) -> None:
    """The version of the game."""
    reply = response.ping
    reply.game_version = GAME_VERSION
    reply.data_version = DATA_VERSION
    reply.data_build = reply.base_build = BASE_BUILD


def available_maps(
    state: State, _request: sc_pb.RequestAvailableMaps, response: sc_pb.Response
) -> None:
    """The maps of the installation, as paths below its `Maps`."""
    maps = state.data_dir / "Maps"
    found = sorted(str(path.relative_to(maps)) for path in maps.rglob("*.SC2Map"))
    response.available_maps.SetInParent()
    response.available_maps.local_map_paths.extend(found)


def game_info(state: State, _request: sc_pb.RequestGameInfo, response: sc_pb.Response) -> None:
    """The map, the players and the requested interface."""
    setup = state.created()
    terrain = state.playing().terrain
    reply = response.game_info
    reply.map_name = setup.scenario.name
    reply.local_map_path = setup.map_path
    reply.player_info.add(
        player_id=PLAYER_ID,
        type=sc_pb.Participant,
        race_requested=state.race,
        race_actual=state.race,
        player_name=state.player_name,
    )
    if setup.computer is not None:
        reply.player_info.add(
            player_id=PLAYER_ID + 1,
            type=sc_pb.Computer,
            race_requested=setup.computer.race or common.Random,
            difficulty=setup.computer.difficulty or sc_pb.VeryEasy,
        )
    if state.options.raw:
        start = reply.start_raw
        start.map_size.x, start.map_size.y = terrain.width, terrain.height
        _fill_grid(start.pathing_grid, terrain.width, terrain.height, 1, terrain.open_bits)
        _fill_grid(start.terrain_height, terrain.width, terrain.height, 8, terrain.height_bytes)
        _fill_grid(start.placement_grid, terrain.width, terrain.height, 1, terrain.open_bits)
        area = start.playable_area
        area.p0.x, area.p0.y, area.p1.x, area.p1.y = setup.scenario.playable_area
        if setup.computer is not None:
            start.start_locations.add(x=terrain.x1 - 2.5, y=terrain.y1 - 2.5)
    reply.options.CopyFrom(state.options)


def _fill_grid(
    grid: common.ImageData, width: int, height: int, bits_per_pixel: int, data: bytes
) -> None:
    grid.bits_per_pixel = bits_per_pixel
    grid.size.x, grid.size.y = width, height
    grid.data = data


def data(_state: State, request: sc_pb.RequestData, response: sc_pb.Response) -> None:
    """The requested tables. There are no upgrades, buffs or effects."""
    tables = _tables()
    reply = response.data
    reply.SetInParent()
    if request.ability_id:
        reply.abilities.extend(tables.abilities)
    if request.unit_type_id:
        reply.units.extend(tables.units)


@lru_cache(maxsize=1)
def _tables() -> sc_pb.ResponseData:
    tables = sc_pb.ResponseData()
    for ability in ABILITIES:
        row = tables.abilities.add(
            ability_id=ability.id,
            link_name=ability.link_name,
            link_index=ability.link_index,
            button_name=ability.button,
            friendly_name=ability.friendly_name,
            hotkey=ability.hotkey,
            available=True,
            target=ability.target,
            allow_minimap=ability.target == data_pb.AbilityData.PointOrUnit,
        )
        if ability.remaps_to:
            row.remaps_to_ability_id = ability.remaps_to
    for unit in UNIT_TYPES:
        _fill_unit_type(tables.units.add(), unit)
    return tables


def _fill_unit_type(row: data_pb.UnitTypeData, unit: UnitType) -> None:
    row.unit_id = unit.id
    row.name = unit.name
    row.available = True
    row.race = unit.race
    row.attributes.extend(unit.attributes)
    row.movement_speed = unit.speed_per_s
    row.armor = unit.armor
    row.sight_range = unit.sight
    row.mineral_cost, row.vespene_cost = unit.minerals, unit.vespene
    row.food_required = unit.food
    row.cargo_size = unit.cargo_size
    row.build_time = unit.build_time_loops
    row.has_minerals = unit.has_minerals
    if unit.build_ability_id:
        row.ability_id = unit.build_ability_id
    if unit.weapon is not None:
        weapon = row.weapons.add(
            type=unit.weapon.targets,
            damage=unit.weapon.damage,
            attacks=unit.weapon.attacks,
            range=unit.weapon.range,
            speed=unit.weapon.cooldown_s,
        )
        if unit.weapon.bonus is not None:
            attribute, bonus = unit.weapon.bonus
            weapon.damage_bonus.add(attribute=attribute, bonus=bonus)
