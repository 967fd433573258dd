"""Requests that begin, advance and end games."""

from __future__ import annotations

import secrets

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.layers.window import SCREENS, is_possible
from sc2standin.map_reader.fields import ScenarioError
from sc2standin.map_reader.real_map import read_scenario
from sc2standin.map_reader.scenario import MAX_PLAYERS
from sc2standin.mpq import MAGIC
from sc2standin.process.state import Fate, RequestRefused, Setup, State
from sc2standin.recording import Recording
from sc2standin.requests.text import text
from sc2standin.simulation.game import END_OF_TIME_LOOPS, HARD_RESET_LOOPS
from sc2standin.status import Status
from sc2standin.version import BASE_BUILD
from sc2standin.view.prepared import reply_tail, step_reply

CreateError = sc_pb.ResponseCreateGame.Error
MAX_MAP_BYTES = 1 << 20


class CannotCreate(Exception):
    """The reason why create_game fails: the error code and the details for its reply."""

    is_no_map = False
    """True if the file is neither an MPQ archive nor JSON."""

    def __init__(self, code: CreateError.ValueType, details: str) -> None:
        super().__init__(details)
        self.code = code


def create_game(state: State, request: sc_pb.RequestCreateGame, response: sc_pb.Response) -> None:
    """Load the map, and set the seed and the players; the episode begins only with join_game."""
    response.create_game.SetInParent()
    try:
        if state.temper.spoils_map():
            details = "temporary map 'TempLaunchMap.SC2Map' has invalid data."
            raise CannotCreate(CreateError.InvalidMapData, details)
        create(state, request)
    except CannotCreate as problem:
        if problem.is_no_map and state.temper.takes_any_file:
            state.leave_game()
            state.map_is_unreadable, state.status = True, Status.INIT_GAME
            return
        response.create_game.error = problem.code
        response.create_game.error_details = str(problem)


def create(state: State, request: sc_pb.RequestCreateGame) -> None:
    """Set up a game; if it cannot be created, change nothing and raise CannotCreate."""
    types = [player.type for player in request.player_setup]
    _check_players(types)
    content = _map_content(state, request)
    try:
        scenario = read_scenario(content)
    except ScenarioError as error:
        problem = CannotCreate(CreateError.InvalidMapData, str(error))
        problem.is_no_map = not content.lstrip().startswith((MAGIC, b"{"))
        raise problem from None
    if scenario.made_with_build > BASE_BUILD and not state.temper.loads_newer_maps:
        raise CannotCreate(
            CreateError.InvalidMapData,
            f"{scenario.name} was made with build {scenario.made_with_build} of the game, which is "
            f"newer than this one ({BASE_BUILD})",
        )
    clients = types.count(sc_pb.Participant)
    if clients > scenario.players:
        raise CannotCreate(
            CreateError.InvalidPlayerSetup,
            f"{scenario.name} is a map for {scenario.players} participant, not for {clients}",
        )
    computers = [p for p in request.player_setup if p.type == sc_pb.Computer]
    seed = request.random_seed if request.HasField("random_seed") else secrets.randbits(32)
    recorded = sc_pb.RequestCreateGame()
    recorded.CopyFrom(request)
    recorded.random_seed, recorded.local_map.map_data = seed, content
    state.setup = Setup(
        recording=Recording(recorded),
        scenario=scenario,
        map_path=text(request.local_map.map_path),
        seed=seed,
        fog=scenario.fog and not request.disable_fog,
        realtime=request.realtime,
        clients=clients,
        computer=computers[-1] if computers else None,
        first_computer=None if clients else computers[0],
    )
    state.forget_game()
    state.episodes = 0
    state.status = Status.INIT_GAME


def _check_players(types: list[sc_pb.PlayerType.ValueType]) -> None:
    if not types:
        raise CannotCreate(CreateError.MissingPlayerSetup, "player_setup is empty")
    participants = types.count(sc_pb.Participant)
    if participants > MAX_PLAYERS:
        raise CannotCreate(
            CreateError.MultiplayerUnsupported,
            f"the stand-in plays with two participants at most, not {participants}",
        )
    computers, observers = types.count(sc_pb.Computer), types.count(sc_pb.Observer)
    if (participants, computers, observers) not in _CASTS:
        raise CannotCreate(
            CreateError.InvalidPlayerSetup,
            "the stand-in plays with a participant, alone or with another one or a computer, "
            "or with two computers and an observer",
        )


_CASTS = ((1, 0, 0), (1, 1, 0), (2, 0, 0), (0, 2, 1))
"""The possible numbers of participants, computers and observers in a game."""


def _map_content(state: State, request: sc_pb.RequestCreateGame) -> bytes:
    """The bytes of the requested map.

    A path must stay inside `Maps` or inside the temporary folder, so that a client reads no other
    files.
    """
    local = request.local_map
    if request.battlenet_map_name:
        raise CannotCreate(CreateError.InvalidMapName, "the stand-in has no Battle.net maps")
    if len(local.map_data) > MAX_MAP_BYTES:
        raise CannotCreate(CreateError.InvalidMapData, "not a stand-in map: over 1 MiB")
    if local.map_data:
        return local.map_data
    if not local.map_path:
        raise CannotCreate(CreateError.MissingMap, "no map was named")
    maps = state.data_dir / "Maps"
    path = maps / text(local.map_path)  # if map_path is absolute, the result is map_path
    try:
        path = path.resolve()  # symbolic links and `..` are followed before the comparison
        if state.temp_dir is not None:
            saved = (state.temp_dir / text(local.map_path)).resolve()
            path = saved if saved.is_file() else path
        if not any(path.is_relative_to(f.resolve()) for f in (maps, state.temp_dir) if f):
            raise CannotCreate(
                CreateError.InvalidMapPath,
                f"{path} is neither in {maps} nor in the temporary folder; send it as map_data",
            )
        with path.open("rb") as file:
            content = file.read(MAX_MAP_BYTES + 1)
    except FileNotFoundError:
        raise CannotCreate(CreateError.MissingMap, f"there is no map at {path}") from None
    except (OSError, ValueError) as error:
        raise CannotCreate(CreateError.InvalidMapPath, f"{path}: {error}") from None
    if len(content) > MAX_MAP_BYTES:
        raise CannotCreate(CreateError.InvalidMapData, f"{path} is not a stand-in map: over 1 MiB")
    return content


def take_seat(
    state: State, request: sc_pb.RequestJoinGame, options: sc_pb.InterfaceOptions
) -> None:
    """Set the race and name of the client's player, and the client's interface."""
    state.options.CopyFrom(possible(options))
    state.player_options.CopyFrom(possible(request.options))
    state.race = race_of(request)
    state.player_name = text(request.player_name)
    state.created().recording.joined(state.player_id, request)


def race_of(request: sc_pb.RequestJoinGame) -> common.Race.ValueType:
    # A random race is always Terran, because the towns of all maps are Terran.
    return common.Terran if request.race == common.Random else request.race


def possible(options: sc_pb.InterfaceOptions) -> sc_pb.InterfaceOptions:
    """The interface without images of impossible sizes.

    The reduced interface is also in game_info, so that the client knows which images it gets.
    """
    given = sc_pb.InterfaceOptions()
    given.CopyFrom(options)
    for screen, _part in SCREENS:
        if not is_possible(getattr(given, screen)):
            given.ClearField(screen)
    return given


def restart_game(
    state: State, _request: sc_pb.RequestRestartGame, response: sc_pb.Response
) -> None:
    """Begin a new episode of the same game."""
    if state.playback is not None:
        raise RequestRefused("Not supported in a replay: start it again")
    reply = response.restart_game
    reply.SetInParent()
    if state.match is not None:
        reply.error = sc_pb.ResponseRestartGame.LaunchError
        reply.error_details = "a game of two participants cannot be restarted; create another one"
        return
    loops = state.playing().simulation_loop
    if loops > HARD_RESET_LOOPS:
        reply.need_hard_reset = True
    if loops >= END_OF_TIME_LOOPS:
        reply.error = sc_pb.ResponseRestartGame.LaunchError
        reply.error_details = "the end of time is reached; create a new game"
        return
    state.begin_episode(loops_before=loops)


def leave_game(state: State, _request: sc_pb.RequestLeaveGame, response: sc_pb.Response) -> None:
    """Return to the main menu."""
    response.leave_game.SetInParent()
    state.leave_game()


def quit_process(state: State, _request: sc_pb.RequestQuit, _response: sc_pb.Response) -> None:
    """End the process, without a reply."""
    state.status = Status.QUIT
    state.fate = Fate.EXIT


def step(state: State, request: sc_pb.Request) -> bytes:
    """Advance by `count` loops, or by one loop if `count` is not set."""
    if state.clock is not None:
        raise RequestRefused("Not supported in realtime: the game steps by itself")
    if state.match is None:
        state.advance(loops_asked(request.step))
    else:
        state.match.end_step()  # the loops were played while the request waited
    state.pay_for_step()
    return step_reply(state.playing().simulation_loop, reply_tail(request, state.status))


def loops_asked(request: sc_pb.RequestStep) -> int:
    """The number of loops that a step plays."""
    # The game ends at END_OF_TIME_LOOPS, so a larger count advances no farther.
    return min(request.count, END_OF_TIME_LOOPS) if request.HasField("count") else 1
