"""Requests about the game: version, maps, the current map, the data tables.

The request save_map stores a map in the folder for temporary files, where create_game finds it. In
a game of two clients both processes get the map by save_map, which is allowed in any status.

The path of a saved map leads only to files below the folder for temporary files. A file is replaced
atomically.
"""

from __future__ import annotations

import numpy as np
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.data.tables import tables
from sc2standin.process.state import RequestRefused, State
from sc2standin.replacing import replace_file
from sc2standin.requests.text import text
from sc2standin.simulation.game import Game
from sc2standin.simulation.paths import cells_under
from sc2standin.simulation.units import ENEMY, ME
from sc2standin.version import BASE_BUILD, DATA_VERSION, GAME_VERSION

MOD_NAMES = [f"Mods/{name}.SC2Mod" for name in ("Core", "Liberty", "Swarm", "Void", "VoidMulti")]
"""The names of the mods on which every map of the real game depends."""


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
    game = state.playing()
    terrain = game.terrain
    reply = response.game_info
    reply.map_name = setup.scenario.name
    reply.mod_names.extend(MOD_NAMES)
    reply.local_map_path = setup.map_path
    reply.player_info.extend(player_infos(state))
    if state.options.raw:
        start = reply.start_raw
        start.map_size.x, start.map_size.y = terrain.width, terrain.height
        _fill_grid(start.pathing_grid, terrain.width, terrain.height, 1, _pathing_bits(game))
        _fill_grid(start.terrain_height, terrain.width, terrain.height, 8, terrain.height_bytes)
        _fill_grid(start.placement_grid, terrain.width, terrain.height, 1, terrain.building_bits)
        area = start.playable_area
        area.p0.x, area.p0.y, area.p1.x, area.p1.y = setup.scenario.playable_area
        if game.starts is not None:
            x, y = game.starts[0 if game.viewer == ENEMY else 1]
            start.start_locations.add(x=x, y=y)
        elif setup.has_opponent:
            if state.player_id == ME:
                start.start_locations.add(x=terrain.x1 - 2.5, y=terrain.y1 - 2.5)
            else:
                start.start_locations.add(x=terrain.x0 + 2.5, y=terrain.y0 + 2.5)
        if state.crop is not None:
            state.crop.start(start)
    reply.options.CopyFrom(state.options)


def _pathing_bits(game: Game) -> bytes:
    """The pathing grid: ground on which units can walk, without obstacles that the client knows."""
    terrain, sight, mine = game.terrain, game.sight, game.viewer
    if game.routes is None:
        return terrain.open_bits
    places = [
        (one.type, one.x, one.y) for one in game.world.units if sight is None or one.owner == mine
    ]
    if sight is not None:
        seen = [(one, one.x, one.y) for one in sight.in_sight if one.owner != mine]
        seen += [(one.unit, one.x, one.y) for one in sight.snapshots]
        places += [(one.type, x, y) for one, x, y in seen]
    cells = terrain.open_cells.copy()
    for kind, x, y in places:
        for column, row in cells_under(kind, x, y) if kind.blocks else ():
            cells[row, column] = False
    return np.packbits(cells).tobytes()


def player_infos(state: State, *, is_replay: bool = False) -> list[sc_pb.PlayerInfo]:
    """The players of the game. Only a replay shows the actual races of both players."""
    setup = state.created()
    infos = []
    if setup.clients:
        infos += [
            _client_info(
                player, knows_race=is_replay or player is state, melee=bool(setup.scenario.melee)
            )
            for player in state.players()
        ]
    if setup.first_computer is not None:
        infos.append(_computer_info(ME, setup.first_computer))
    if setup.computer is not None:
        infos.append(_computer_info(ENEMY, setup.computer))
    return infos


def _client_info(player: State, *, knows_race: bool, melee: bool) -> sc_pb.PlayerInfo:
    # In a melee all towns are Terran, whatever race was requested.
    actual = common.Terran if melee else player.race
    return sc_pb.PlayerInfo(
        player_id=player.player_id,
        type=sc_pb.Participant,
        race_requested=player.race,
        race_actual=actual if knows_race else None,
        player_name=player.player_name or None,
    )


def _computer_info(player_id: int, computer: sc_pb.PlayerSetup) -> sc_pb.PlayerInfo:
    return sc_pb.PlayerInfo(
        player_id=player_id,
        type=sc_pb.Computer,
        race_requested=computer.race or common.Random,
        difficulty=computer.difficulty or sc_pb.VeryEasy,
    )


def _fill_grid(
    grid: common.ImageData, width: int, height: int, bits_per_pixel: int, data: bytes
) -> None:
    grid.bits_per_pixel = bits_per_pixel
    grid.size.x, grid.size.y = width, height
    grid.data = data


def data(_state: State, request: sc_pb.RequestData, response: sc_pb.Response) -> None:
    """The data tables that the request asks for."""
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


MAX_PATH_LENGTH = 260
"""The greatest length of `map_path`, in characters, according to the protocol's comment."""


def save_map(state: State, request: sc_pb.RequestSaveMap, response: sc_pb.Response) -> None:
    """Write the map into the folder for temporary files."""
    response.save_map.SetInParent()
    if not request.map_data:
        response.save_map.error = sc_pb.ResponseSaveMap.InvalidMapData
        return
    folder, name = state.temp_dir, text(request.map_path)
    if folder is None:
        raise RequestRefused("There is no folder for temporary files (-tempDir)")
    try:
        path = (folder / name).resolve()  # symbolic links and `..` are followed
        if folder.resolve() not in path.parents or len(name) > MAX_PATH_LENGTH:
            raise RequestRefused(f"{name} does not name a file in the folder for temporary files")
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, request.map_data)
    except (OSError, ValueError) as error:
        raise RequestRefused(f"{name} cannot be written: {error}") from None
