"""Requests that begin, advance and end games."""

from __future__ import annotations

import json
import secrets

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.protocol.status import Status
from sc2pool.standin.game import END_OF_TIME_LOOPS, HARD_RESET_LOOPS
from sc2pool.standin.scenario import Scenario, ScenarioError, parse_scenario
from sc2pool.standin.state import PLAYER_ID, Fate, RequestRefused, Setup, State

CreateError = sc_pb.ResponseCreateGame.Error
JoinError = sc_pb.ResponseJoinGame.Error
MAX_MAP_BYTES = 1 << 20


class _CannotCreate(Exception):
    """Why create_game fails: the error code of its reply, and the details."""

    def __init__(self, code: CreateError.ValueType, details: str) -> None:
        super().__init__(details)
        self.code = code


def create_game(state: State, request: sc_pb.RequestCreateGame, response: sc_pb.Response) -> None:
    """Load the map, set seed and players; the episode begins with join_game."""
    response.create_game.SetInParent()
    try:
        _check_players([player.type for player in request.player_setup])
        scenario = _load_scenario(state, request)
    except _CannotCreate as problem:
        response.create_game.error = problem.code
        response.create_game.error_details = str(problem)
        return
    computers = [p for p in request.player_setup if p.type == sc_pb.Computer]
    state.setup = Setup(
        scenario=scenario,
        map_path=request.local_map.map_path,
        seed=request.random_seed if request.HasField("random_seed") else secrets.randbits(32),
        fog=scenario.fog and not request.disable_fog,
        realtime=request.realtime,
        computer=computers[0] if computers else None,
    )
    state.game = state.clock = None
    state.episodes = 0
    state.status = Status.INIT_GAME


def _check_players(types: list[sc_pb.PlayerType.ValueType]) -> None:
    if not types:
        raise _CannotCreate(CreateError.MissingPlayerSetup, "player_setup is empty")
    participants = types.count(sc_pb.Participant)
    if participants > 1:
        raise _CannotCreate(
            CreateError.MultiplayerUnsupported,
            f"the stand-in plays with one participant, not {participants}",
        )
    if participants == 0 or types.count(sc_pb.Computer) > 1 or sc_pb.Observer in types:
        raise _CannotCreate(
            CreateError.InvalidPlayerSetup,
            "the stand-in plays with one participant and at most one computer",
        )


def _load_scenario(state: State, request: sc_pb.RequestCreateGame) -> Scenario:
    try:
        return parse_scenario(_map_content(state, request))
    except ScenarioError as error:
        raise _CannotCreate(CreateError.InvalidMapData, str(error)) from None


def _map_content(state: State, request: sc_pb.RequestCreateGame) -> bytes:
    """The bytes of the requested map.

    A path stays inside `Maps` or the temporary folder: a client must not read other files.
    """
    local = request.local_map
    if request.battlenet_map_name:
        raise _CannotCreate(CreateError.InvalidMapName, "the stand-in has no Battle.net maps")
    if local.map_data:
        return local.map_data
    if not local.map_path:
        raise _CannotCreate(CreateError.MissingMap, "no map was named")
    maps = state.data_dir / "Maps"
    path = maps / local.map_path  # an absolute map_path stays what it is
    try:
        path = path.resolve()  # symbolic links and `..` are followed before the comparison
        if not any(path.is_relative_to(f.resolve()) for f in (maps, state.temp_dir) if f):
            raise _CannotCreate(
                CreateError.InvalidMapPath,
                f"{path} is neither in {maps} nor in the temporary folder; send it as map_data",
            )
        with path.open("rb") as file:
            content = file.read(MAX_MAP_BYTES + 1)
    except FileNotFoundError:
        raise _CannotCreate(CreateError.MissingMap, f"there is no map at {path}") from None
    except (OSError, ValueError) as error:
        raise _CannotCreate(CreateError.InvalidMapPath, f"{path}: {error}") from None
    if len(content) > MAX_MAP_BYTES:
        raise _CannotCreate(CreateError.InvalidMapData, f"{path} is no stand-in map: over 1 MiB")
    return content


def join_game(state: State, request: sc_pb.RequestJoinGame, response: sc_pb.Response) -> None:
    """Join as the one participant and begin the episode."""
    reply = response.join_game
    reply.SetInParent()
    problem = _join_problem(request)
    if problem is not None:
        reply.error, reply.error_details = problem
        return
    state.options.CopyFrom(request.options)
    # A random race may depend on the map alone: all of these maps are Terran.
    state.race = common.Terran if request.race == common.Random else request.race
    state.player_name = request.player_name
    state.begin_episode(loops_before=0)
    reply.player_id = PLAYER_ID


def _join_problem(
    request: sc_pb.RequestJoinGame,
) -> tuple[JoinError.ValueType, str] | None:
    if request.WhichOneof("participation") is None:
        return JoinError.MissingParticipation, "neither race nor observed_player_id is set"
    if request.HasField("observed_player_id"):
        return JoinError.FeatureUnsupported, "the stand-in cannot be observed, only played"
    if not request.HasField("options"):
        return JoinError.MissingOptions, "options is missing: which interface is wanted?"
    if request.client_ports or request.HasField("server_ports"):
        return JoinError.FeatureUnsupported, "the stand-in has no multiplayer"
    return None


def restart_game(
    state: State, _request: sc_pb.RequestRestartGame, response: sc_pb.Response
) -> None:
    """Begin a new episode of the same game."""
    reply = response.restart_game
    reply.SetInParent()
    loops = state.playing().simulation_loop
    if loops > HARD_RESET_LOOPS:
        reply.need_hard_reset = True
    if loops >= END_OF_TIME_LOOPS:
        reply.error = sc_pb.ResponseRestartGame.LaunchError
        reply.error_details = "the end of time is reached; create the game anew"
        return
    state.begin_episode(loops_before=loops)


def leave_game(state: State, _request: sc_pb.RequestLeaveGame, response: sc_pb.Response) -> None:
    """Back to the main menu."""
    response.leave_game.SetInParent()
    state.setup = state.game = state.clock = None
    state.status = Status.LAUNCHED


def quit_process(state: State, _request: sc_pb.RequestQuit, _response: sc_pb.Response) -> None:
    """End the process; there is no reply."""
    state.status = Status.QUIT
    state.fate = Fate.EXIT


def step(state: State, request: sc_pb.RequestStep, response: sc_pb.Response) -> None:
    """Advance by `count` loops, by one if it is not set."""
    if state.created().realtime:
        raise RequestRefused("Not supported in realtime: the game steps by itself")
    state.step(loops_asked(request))
    response.step.simulation_loop = state.playing().simulation_loop


def loops_asked(request: sc_pb.RequestStep) -> int:
    """The number of loops that a step plays."""
    # The game ends at END_OF_TIME_LOOPS, so a larger count has the same effect.
    return min(request.count, END_OF_TIME_LOOPS) if request.HasField("count") else 1


def save_replay(state: State, _request: sc_pb.RequestSaveReplay, response: sc_pb.Response) -> None:
    """A summary instead of a recording: map, seed, episode and length."""
    setup = state.created()
    summary = {
        "format": "sc2pool-standin-replay/1",
        "map": setup.scenario.name,
        "seed": setup.seed,
        "episode": state.episodes,
        "loops": state.playing().world.loop,
    }
    response.save_replay.data = json.dumps(summary, sort_keys=True).encode()
