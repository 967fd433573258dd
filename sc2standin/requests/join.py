"""join_game: a client begins to play alone, or together with the client of another process.

With two participants, only one of the two processes has created the game. The session lets
join_game wait until the processes have met.
"""

from __future__ import annotations

from collections import deque

from s2clientprotocol import common_pb2 as common
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.map_reader.real_map import read_scenario
from sc2standin.map_reader.scenario import Scenario
from sc2standin.match import Match
from sc2standin.meeting import Invitation, Meeting, Problem
from sc2standin.process.state import RequestRefused, State
from sc2standin.requests.lifecycle import create, possible, race_of, take_seat
from sc2standin.requests.perform import perform
from sc2standin.requests.text import text
from sc2standin.simulation.units import ENEMY, ME
from sc2standin.status import Status

JoinError = sc_pb.ResponseJoinGame.Error
OBSERVER = 3
"""The player id of a client that watches two computers."""
NAME_LENGTH = 32
"""The game keeps this many characters of a player's name."""
NOT_PLAYED = (
    "the stand-in has the towns of Terrans only, and {} would get one: join as Terran or Random, "
    "or install it with --any-race"
)
LOCAL_HOST = "127.0.0.1"
"""The host's address in a game of two clients, if join_game names no address."""


def join_game(state: State, request: sc_pb.RequestJoinGame, response: sc_pb.Response) -> None:
    """Join the game and begin the episode; the processes of two clients have met already."""
    if state.temper.crowd is not None:
        state.temper.crowd.leave()
    if state.map_is_unreadable:
        response.join_game.player_id, state.status = 0, Status.LAUNCHED
        return
    if state.setup is None and not _has_ports(request):
        raise RequestRefused("Not in a game: create_game comes first, or ports lead to one")
    reply = response.join_game
    reply.SetInParent()
    met = state.meeting
    state.meeting = None
    if met is not None:
        problem = _match_problem(state, request, met)
    elif (problem := _join_problem(state, request)) is None and _needs_other(state):
        problem = JoinError.NetworkError, "this process cannot reach another one"
    state.not_joined = "" if problem is None else problem[1]
    if problem is not None:
        reply.error, reply.error_details = problem
        if met is not None:
            met.cancel()
        return
    if met is None:
        take_seat(state, request, request.options)
        if not state.created().clients:
            state.player_id = OBSERVER
        state.begin_episode(loops_before=0)
    else:
        _begin_match(state, request, met)
    reply.player_id = state.player_id


def _match_problem(state: State, request: sc_pb.RequestJoinGame, met: Meeting) -> Problem | None:
    """The reason why two players cannot play, or None. Both processes get the same answer."""
    if met.problem is not None:
        return met.problem
    setup = state.setup  # None in the guest's process, which did not create the game
    scenario = read_scenario(met.create.local_map.map_data) if setup is None else setup.scenario
    for one in (request, met.other_join):
        problem = _race_problem(state, scenario, one)
        if problem is not None:
            return problem
    name, other_name = (text(one.player_name)[:NAME_LENGTH] for one in (request, met.other_join))
    if met.problem is None and name and name == other_name:
        return JoinError.OtherError, f"both players are called {name!r}; names must differ"
    return None


def _begin_match(state: State, request: sc_pb.RequestJoinGame, met: Meeting) -> None:
    if not met.is_host:
        create(state, met.create)  # the host's process has checked the map
    state.player_id, other_id = (ME, ENEMY) if met.is_host else (ENEMY, ME)
    take_seat(state, request, request.options)
    state.other = rival(state, other_id, met.other_join)
    state.begin_episode(loops_before=0)
    state.match = Match(state, met.link, perform)


def rival(state: State, player: int, request: sc_pb.RequestJoinGame) -> State:
    """The other player's state in this process: the fields needed to carry out its requests."""
    other = State(
        state.data_dir,
        player_id=player,
        other=state,
        setup=state.setup,
        options=request.options,
        player_options=possible(request.options),
        race=race_of(request),
        player_name=text(request.player_name),
        # The other player's own process keeps these lists.
        action_errors=deque(maxlen=0),
        actions_done=deque(maxlen=0),
        chat=deque(maxlen=0),
    )
    state.created().recording.joined(player, request)
    return other


def invitation(state: State, request: sc_pb.RequestJoinGame) -> Invitation | None:
    """The invitation for the other player's process; None if the game needs no other process."""
    if state.map_is_unreadable or not _needs_other(state):
        return None
    if _join_problem(state, request) is not None:
        return None
    return Invitation(
        address=text(request.host_ip) or LOCAL_HOST,
        port=request.server_ports.game_port,
        join=request,
        create=None if state.setup is None else state.setup.recording.create,
    )


def _needs_other(state: State) -> bool:
    """True if the game has two clients: its setup says so, or another process has created it."""
    return state.setup is None or state.setup.clients > 1


def _join_problem(state: State, request: sc_pb.RequestJoinGame) -> Problem | None:
    """The reason why this request cannot join the game, or None."""
    participation = request.WhichOneof("participation")
    watches = participation == "observed_player_id"
    if participation is None:
        return JoinError.MissingParticipation, "neither race nor observed_player_id is set"
    if watches != (state.setup is not None and not state.setup.clients):
        return JoinError.FeatureUnsupported, "a game is watched if it was created for an observer"
    if watches and request.observed_player_id:
        return JoinError.InvalidObservedPlayerId, "an observer sees the whole map: player 0"
    if state.setup is not None and not watches:
        problem = _race_problem(state, state.setup.scenario, request)
        if problem is not None:
            return problem
    if not request.HasField("options"):
        return JoinError.MissingOptions, "options is missing: which interface is wanted?"
    return _ports_problem(state, request)


def _race_problem(
    state: State, scenario: Scenario, request: sc_pb.RequestJoinGame
) -> Problem | None:
    """The reason why this race cannot play a melee, or None. Maps without a melee take any race."""
    melee = scenario.melee
    if melee is None or melee.any_race or scenario.endless or state.any_race:
        return None
    if race_of(request) == common.Terran:
        return None
    return JoinError.FeatureUnsupported, NOT_PLAYED.format(common.Race.Name(request.race))


def _has_ports(request: sc_pb.RequestJoinGame) -> bool:
    return bool(request.client_ports) and request.HasField("server_ports")


def _ports_problem(state: State, request: sc_pb.RequestJoinGame) -> Problem | None:
    if not _needs_other(state):
        if _has_ports(request):
            return JoinError.FeatureUnsupported, "ports are for two participants; here is one"
        return None
    if not _has_ports(request):
        return JoinError.MissingPorts, "the ports of a game of two participants are missing"
    if not 1 <= request.server_ports.game_port <= 65535:
        return JoinError.NetworkError, f"{request.server_ports.game_port} is not a port"
    return None
