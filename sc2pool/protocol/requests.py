"""Builders of the requests that a client sends; nothing is sent here.

Rule: each builder returns a new `sc2api_pb2.Request` with exactly one field set. The connection
sets the id when it sends the request.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.config import GameSetup


class MatchPorts(NamedTuple):
    """The ports by which two games of a match find each other; both games join with equal ports."""

    server_game: int
    server_base: int
    client_game: int
    client_base: int


def ping() -> sc_pb.Request:
    """Asks for the game's version; allowed in every status of the game."""
    return sc_pb.Request(ping=sc_pb.RequestPing())


def create_game(
    setup: GameSetup, map_path: Path, seed: int | None, map_data: bytes = b""
) -> sc_pb.Request:
    """Creates a game for the setup's API players and computers.

    Args:
        map_path: The map's path, sent unchanged; a game looks up a relative path in its own map
            folder.
        seed: The game's seed; None lets the game choose a seed.
        map_data: The map file's content; if given, the game does not open the file.
    """
    request = sc_pb.RequestCreateGame(
        local_map=sc_pb.LocalMap(map_path=str(map_path), map_data=map_data or None),
        realtime=setup.realtime,
        disable_fog=setup.disable_fog,
    )
    if seed is not None:
        request.random_seed = seed
    for _ in range(setup.participants):
        request.player_setup.add(type=sc_pb.Participant)
    for computer in setup.opponents:
        request.player_setup.add(
            type=sc_pb.Computer,
            race=computer.race,
            difficulty=computer.difficulty,
            ai_build=computer.build,
        )
    return sc_pb.Request(create_game=request)


def join_game(
    setup: GameSetup, ports: MatchPorts | None = None, player_name: str = ""
) -> sc_pb.Request:
    """Joins the created game, with the raw and score interfaces.

    `ports` are needed for a game of two API players, who must have different names.
    """
    options = sc_pb.InterfaceOptions(
        raw=True,
        score=True,
        show_cloaked=True,
        show_burrowed_shadows=True,
        show_placeholders=True,
        raw_affects_selection=False,
        raw_crop_to_playable_area=False,
    )
    join = sc_pb.RequestJoinGame(
        race=setup.race,  # type: ignore[arg-type]  # the config holds plain numbers
        options=options,
    )
    if ports is not None:
        join.server_ports.game_port = ports.server_game
        join.server_ports.base_port = ports.server_base
        join.client_ports.add(game_port=ports.client_game, base_port=ports.client_base)
        join.player_name = player_name
    return sc_pb.Request(join_game=join)


def save_map(path: str, data: bytes) -> sc_pb.Request:
    """Stores a map in the game's temporary folder; create_game finds the map by the same path."""
    return sc_pb.Request(save_map=sc_pb.RequestSaveMap(map_path=path, map_data=data))


def restart_game() -> sc_pb.Request:
    """Restarts the same game without loading the map. The request has no field for a seed."""
    return sc_pb.Request(restart_game=sc_pb.RequestRestartGame())


def leave_game() -> sc_pb.Request:
    """Leaves a running game. The process is then in the same state as after its launch."""
    return sc_pb.Request(leave_game=sc_pb.RequestLeaveGame())


def observation(game_loop: int | None = None, disable_fog: bool = False) -> sc_pb.Request:
    """Asks for the state that the player sees, or (`disable_fog`) the state of the whole map.

    In real time, `game_loop` is the loop to wait for; otherwise the game ignores it.
    """
    request = sc_pb.RequestObservation(disable_fog=disable_fog)
    if game_loop is not None:
        request.game_loop = game_loop
    return sc_pb.Request(observation=request)


def save_replay() -> sc_pb.Request:
    """Asks for the replay file of the game so far."""
    return sc_pb.Request(save_replay=sc_pb.RequestSaveReplay())


def step(loops: int) -> sc_pb.Request:
    """Advances the game by `loops` game loops."""
    return sc_pb.Request(step=sc_pb.RequestStep(count=loops))


def action(actions: Sequence[sc_pb.Action]) -> sc_pb.Request:
    """Gives the player's commands, which take effect with the next step."""
    return sc_pb.Request(action=sc_pb.RequestAction(actions=actions))


def step_burst(actions: Sequence[sc_pb.Action], loops: int) -> list[sc_pb.Request]:
    """The requests of one step: give the commands (if any), step, and observe."""
    asked = [step(loops), observation()]
    return [action(actions), *asked] if actions else asked


def game_info() -> sc_pb.Request:
    """Asks for map, players and terrain; only the pathing grid changes during a game."""
    return sc_pb.Request(game_info=sc_pb.RequestGameInfo())


def data() -> sc_pb.Request:
    """Asks for names, costs and attributes of all units, abilities, upgrades, buffs, effects."""
    everything = sc_pb.RequestData(
        ability_id=True, unit_type_id=True, upgrade_id=True, buff_id=True, effect_id=True
    )
    return sc_pb.Request(data=everything)
