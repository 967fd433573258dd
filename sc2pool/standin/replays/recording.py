"""What a replay consists of, and the file that holds it.

An episode is determined by how its game was created and joined, its number, and the requests that
changed it, each at its loop. The file is an MPQ archive:

    replay.gamemetadata.json   versions, length, players, as in replays of the real game
    sc2pool.info               `ResponseReplayInfo`, serialized
    sc2pool.episode.json       our format, and the episode's number
    sc2pool.requests           loop, size and bytes of each `Request`; the first two are
                               create_game, with the map and the seed, and join_game

Rules it keeps: a request is recorded as the bytes that arrived, which costs a step next to nothing;
the record is bounded, and an episode that is too long for it has no replay; a file is checked
before anything is played.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.protocol.game_time import LOOPS_PER_S
from sc2pool.standin.replays import mpq

RECORDED: Final = frozenset({"action", "debug"})
"""The requests that change an episode, apart from steps."""
MAX_BYTES: Final = 64 * 1024 * 1024
"""Largest record of an episode, in memory: a command every loop for three hours."""
_ENTRY_BYTES: Final = 150
"""Memory of a recorded request beside its bytes."""
_FORMAT: Final = "sc2pool-standin-replay/2"
_METADATA, _INFO = "replay.gamemetadata.json", "sc2pool.info"
_EPISODE, _REQUESTS = "sc2pool.episode.json", "sc2pool.requests"
LAST_LOOP: Final = 1 << 19
"""Loops since create_game at which every game ends."""
_HEAD = struct.Struct("<II")
"""Loop and size of a request."""


class ReplayError(ValueError):
    """Not a replay of the stand-in, or no replay can be made; the message says why."""


class Recording:
    """The requests of the current episode."""

    def __init__(self, create: sc_pb.RequestCreateGame) -> None:
        self._create = create
        self._join = sc_pb.RequestJoinGame()
        self._episode = self._loops_before = 0
        self._requests: list[tuple[int, bytes]] = []
        self._bytes = 0

    def joined(self, join: sc_pb.RequestJoinGame) -> None:
        """Remember how the game was joined."""
        self._join.CopyFrom(join)

    def begin(self, episode: int, loops_before: int) -> None:
        """Forget the last episode's requests."""
        self._episode, self._loops_before = episode, loops_before
        self._requests.clear()
        self._bytes = 0

    def note(self, loop: int, request: bytes) -> None:
        """Remember a serialized request that was carried out at this loop."""
        if self._bytes <= MAX_BYTES:
            self._requests.append((loop, request))
            self._bytes += _ENTRY_BYTES + len(request)

    def file(self, info: sc_pb.ResponseReplayInfo) -> bytes:
        """The replay file; raises ReplayError if the episode was too long to be recorded."""
        if self._bytes > MAX_BYTES:
            raise ReplayError("the episode has too many commands for a replay")
        requests = [
            (0, sc_pb.Request(create_game=self._create)),
            (0, sc_pb.Request(join_game=self._join)),
            *((loop, _without_ends(content)) for loop, content in self._requests),
        ]
        episode = {
            "format": _FORMAT,
            "episode": self._episode,
            "loops_before": self._loops_before,
        }
        return mpq.pack(
            {
                _METADATA: json.dumps(_metadata(info)).encode(),
                _INFO: info.SerializeToString(deterministic=True),
                _EPISODE: json.dumps(episode).encode(),
                _REQUESTS: b"".join(_entry(loop, request) for loop, request in requests),
            }
        )


@dataclass(frozen=True)
class Replay:
    """The content of a replay file."""

    info: sc_pb.ResponseReplayInfo
    episode: int
    """Episodes begun before this one since create_game."""
    loops_before: int
    """Loops played before this episode since create_game."""
    create: sc_pb.RequestCreateGame
    join: sc_pb.RequestJoinGame
    requests: tuple[tuple[int, sc_pb.Request], ...]
    """The requests that changed the episode, each with its loop, in order."""


def read(content: bytes) -> Replay:
    """The replay in a file; raises ReplayError."""
    try:
        info = sc_pb.ResponseReplayInfo.FromString(mpq.unpack(content, _INFO, MAX_BYTES))
        episode = json.loads(mpq.unpack(content, _EPISODE, MAX_BYTES))
        requests = _entries(mpq.unpack(content, _REQUESTS, MAX_BYTES))
        if episode["format"] != _FORMAT:
            raise ReplayError(f"its format is {episode['format']!r}, expected {_FORMAT!r}")
        number, loops_before = episode["episode"], episode["loops_before"]
        (_, create), (_, join), *changes = requests
    except (DecodeError, struct.error, ValueError, LookupError, TypeError, RecursionError) as error:
        raise ReplayError(f"not a replay of the stand-in: {error}") from None
    loops = [loop for loop, _request in changes]
    kinds = {request.WhichOneof("request") for _loop, request in changes}
    if any(_ends_process(request) for _loop, request in changes):
        raise ReplayError("not a replay of the stand-in: it would end the process")
    if not (create.HasField("create_game") and join.HasField("join_game") and kinds <= RECORDED):
        raise ReplayError("not a replay of the stand-in: it has other requests")
    counts_fit = _is_count(number) and _is_count(loops_before) and loops_before <= LAST_LOOP
    if not counts_fit or loops != sorted(loops):
        raise ReplayError("not a replay of the stand-in: its numbers are wrong")
    return Replay(info, number, loops_before, create.create_game, join.join_game, tuple(changes))


def _is_count(number: object) -> bool:
    return isinstance(number, int) and 0 <= number < 1 << 32


def _ends_process(request: sc_pb.Request) -> bool:
    return request.HasField("debug") and any(
        command.HasField("test_process") for command in request.debug.debug
    )


def _without_ends(content: bytes) -> sc_pb.Request:
    """A request without the commands that crash, hang or end the process."""
    request: sc_pb.Request = sc_pb.Request.FromString(content)
    if not _ends_process(request):
        return request
    kept = [command for command in request.debug.debug if not command.HasField("test_process")]
    return sc_pb.Request(debug=sc_pb.RequestDebug(debug=kept))


def _entry(loop: int, request: sc_pb.Request) -> bytes:
    content = request.SerializeToString(deterministic=True)
    return bytes(_HEAD.pack(loop, len(content)) + content)


def _entries(log: bytes) -> list[tuple[int, sc_pb.Request]]:
    entries, place = [], 0
    while place < len(log):
        loop, size = _HEAD.unpack_from(log, place)
        place += _HEAD.size + size
        entries.append((loop, sc_pb.Request.FromString(log[place - size : place])))
    return entries


def _metadata(info: sc_pb.ResponseReplayInfo) -> dict[str, object]:
    """What clients read of any replay to find the version of the game that plays it."""
    return {
        "Title": info.map_name,
        "GameVersion": f"{info.game_version}.{info.base_build}",
        "DataBuild": str(info.data_build),
        "DataVersion": info.data_version,
        "BaseBuild": f"Base{info.base_build}",
        "Duration": round(info.game_duration_loops / LOOPS_PER_S),
        "IsNotAvailable": False,
        "Players": [
            {
                "PlayerID": player.player_info.player_id,
                "APM": 0.0,
                "AssignedRace": _short(player.player_info.race_actual),
                "SelectedRace": _short(player.player_info.race_requested),
                "Result": _RESULTS[player.player_result.result],
            }
            for player in info.player_info
        ],
    }


def _short(race: common.Race.ValueType) -> str:
    return str(common.Race.Name(race))[:4]


_RESULTS = {
    sc_pb.Victory: "Win",
    sc_pb.Defeat: "Loss",
    sc_pb.Tie: "Tie",
    sc_pb.Undecided: "Undecided",
}
