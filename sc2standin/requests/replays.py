"""Requests about replays: save a replay, describe one, start one.

The client can name only files in three folders of replays. If a replay cannot be played,
start_replay changes nothing. Commands in a replay cannot end the process.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin import recording
from sc2standin.game_time import LOOPS_PER_S
from sc2standin.process.state import RequestRefused, State
from sc2standin.recording import Playback, Replay, ReplayError
from sc2standin.requests.info import player_infos
from sc2standin.requests.join import rival
from sc2standin.requests.lifecycle import CannotCreate, create, take_seat
from sc2standin.requests.observe import results
from sc2standin.requests.perform import perform
from sc2standin.requests.text import text
from sc2standin.simulation.units import ME
from sc2standin.status import Status
from sc2standin.version import BASE_BUILD, DATA_VERSION, GAME_VERSION
from sc2standin.view.crop import Crop

InfoError = sc_pb.ResponseReplayInfo.Error
StartError = sc_pb.ResponseStartReplay.Error
MAX_FILE_BYTES = 64 * 1024 * 1024
USERS_REPLAYS = Path("~/Documents/StarCraft II/Replays")
"""The folder in which the real game looks for replays on Linux, as python-sc2 expects."""


class _CannotRead(Exception):
    """A replay cannot be read; `name` is the name of the error in the client's reply."""

    def __init__(self, name: str, details: str) -> None:
        super().__init__(details)
        self.name = name


def save_replay(state: State, _request: sc_pb.RequestSaveReplay, response: sc_pb.Response) -> None:
    """Reply with a replay of the episode up to now, as the content of a replay file."""
    setup, game = state.created(), state.playing()
    if state.playback is not None and not state.playback.may_be_saved:
        raise RequestRefused("Not supported in a replay that is not recorded (record_replay)")
    players = player_infos(state, is_replay=True)
    info = sc_pb.ResponseReplayInfo(
        map_name=setup.scenario.name,
        local_map_path=setup.map_path,
        player_info=[
            sc_pb.PlayerInfoExtra(player_info=player, player_result=result)
            for player, result in zip(players, results(state), strict=True)
        ],
        game_duration_loops=game.world.loop,
        game_duration_seconds=game.world.loop / LOOPS_PER_S,
        game_version=GAME_VERSION,
        data_version=DATA_VERSION,
        data_build=BASE_BUILD,
        base_build=BASE_BUILD,
    )
    try:
        response.save_replay.data = setup.recording.file(info)
    except ReplayError as error:
        raise RequestRefused(str(error)) from None


def replay_info(state: State, request: sc_pb.RequestReplayInfo, response: sc_pb.Response) -> None:
    """The description of the game in a replay file."""
    reply = response.replay_info
    reply.SetInParent()
    try:
        reply.CopyFrom(_read(state, request).info)
    except _CannotRead as problem:
        reply.error, reply.error_details = InfoError.Value(problem.name), str(problem)


def start_replay(state: State, request: sc_pb.RequestStartReplay, response: sc_pb.Response) -> None:
    """Begin to watch a replay, from its first loop."""
    reply = response.start_replay
    reply.SetInParent()
    try:
        _start(state, request)
    except _CannotRead as problem:
        reply.error, reply.error_details = StartError.Value(problem.name), str(problem)
    except CannotCreate as problem:
        reply.error, reply.error_details = StartError.InvalidMapData, str(problem)


def _start(state: State, request: sc_pb.RequestStartReplay) -> None:
    replay = _read(state, request)
    if not request.HasField("options"):
        raise _CannotRead("MissingOptions", "options is missing: which interface is wanted?")
    observed = request.observed_player_id
    if observed and observed not in replay.joins:
        raise _CannotRead(
            "InvalidObservedPlayerId",
            f"player {observed} cannot be observed, only one of {sorted(replay.joins)}, or 0: all",
        )
    game = sc_pb.RequestCreateGame()
    game.CopyFrom(replay.create)
    game.realtime = request.realtime
    if request.map_data:
        game.local_map.map_data = request.map_data
    create(state, game)
    state.player_id = observed or ME
    for player, join in replay.joins.items():
        if player == state.player_id:
            take_seat(state, join, request.options)
        else:
            state.other = rival(state, player, join)
    state.episodes = replay.episode
    state.begin_episode(replay.loops_before, replay.quirks)
    state.playback = Playback(
        replay,
        partial(_perform, state, state.crop_for(replay.joins[state.player_id].options)),
        sees_all=request.disable_fog or not observed,
        may_be_saved=request.record_replay,
    )
    state.canned = False  # a replay uses no prepared replies
    state.status = Status.IN_REPLAY


def _perform(state: State, crop: Crop | None, player: int, content: bytes) -> None:
    """Carry out a player's recorded request; `crop` converts the watched player's coordinates."""
    request = sc_pb.Request.FromString(content)
    if state.other is not None and player == state.other.player_id:
        perform(state.other, request)
        state.created().recording.note(state.playing().world.loop, player, content)
        return
    watching, state.crop = state.crop, crop  # player and watcher may crop the map in different ways
    try:
        perform(state, request)
        state.note(content)
    finally:
        state.crop = watching


def _read(state: State, request: sc_pb.RequestReplayInfo | sc_pb.RequestStartReplay) -> Replay:
    try:
        return recording.read(_content(state, request))
    except ReplayError as error:
        raise _CannotRead("InvalidReplayData", str(error)) from None


def _content(state: State, request: sc_pb.RequestReplayInfo | sc_pb.RequestStartReplay) -> bytes:
    if request.replay_data:
        return request.replay_data
    name = text(request.replay_path)
    if not name:
        raise _CannotRead("MissingReplay", "no replay was named")
    folders = [state.data_dir / "Replays", USERS_REPLAYS.expanduser()]
    folders += [state.temp_dir] if state.temp_dir is not None else []
    try:
        for folder in folders:
            # An absolute `name` replaces the folder. Symbolic links and `..` are followed.
            path = (folder / name).resolve()
            if path.is_relative_to(folder.resolve()) and path.is_file():
                with path.open("rb") as file:
                    return file.read(MAX_FILE_BYTES)
    except (OSError, ValueError, RuntimeError) as error:
        raise _CannotRead("InvalidReplayPath", f"{name}: {error}") from None
    raise _CannotRead(
        "MissingReplay",
        f"no {name} in {' or '.join(map(str, folders))}; send it as replay_data",
    )
