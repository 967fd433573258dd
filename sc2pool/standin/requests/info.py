"""Requests about the game: version, maps, the current map, the data tables."""

from __future__ import annotations

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.standin.data.tables import tables
from sc2pool.standin.process.state import PLAYER_ID, State
from sc2pool.standin.version import BASE_BUILD, DATA_VERSION, GAME_VERSION

MOD_NAMES = [f"Mods/{name}.SC2Mod" for name in ("Core", "Liberty", "Swarm", "Void", "VoidMulti")]
"""The mods that every map of the real game depends on."""


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
    """The map, the players and the interface."""
    setup = state.created()
    terrain = state.playing().terrain
    reply = response.game_info
    reply.map_name = setup.scenario.name
    reply.mod_names.extend(MOD_NAMES)
    reply.local_map_path = setup.map_path
    reply.player_info.extend(player_infos(state))
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
        if state.crop is not None:
            state.crop.start(start)
    reply.options.CopyFrom(state.options)


def player_infos(state: State) -> list[sc_pb.PlayerInfo]:
    """The client, and the computer if there is one."""
    computer = state.created().computer
    client = sc_pb.PlayerInfo(
        player_id=PLAYER_ID,
        type=sc_pb.Participant,
        race_requested=state.race,
        race_actual=state.race,
        player_name=state.player_name or None,
    )
    if computer is None:
        return [client]
    opponent = sc_pb.PlayerInfo(
        player_id=PLAYER_ID + 1,
        type=sc_pb.Computer,
        race_requested=computer.race or common.Random,
        difficulty=computer.difficulty or sc_pb.VeryEasy,
    )
    return [client, opponent]


def _fill_grid(
    grid: common.ImageData, width: int, height: int, bits_per_pixel: int, data: bytes
) -> None:
    grid.bits_per_pixel = bits_per_pixel
    grid.size.x, grid.size.y = width, height
    grid.data = data


def data(_state: State, request: sc_pb.RequestData, response: sc_pb.Response) -> None:
    """The requested tables."""
    reply = response.data
    reply.SetInParent()
    for name, wanted in (
        ("abilities", request.ability_id),
        ("units", request.unit_type_id),
        ("upgrades", request.upgrade_id),
        ("buffs", request.buff_id),
        ("effects", request.effect_id),
    ):
        if wanted:
            reply.MergeFromString(tables()[name])
