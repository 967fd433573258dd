"""The content of a replay, its file, and its playback.

An episode is determined by create_game, join_game, the episode's number since create_game, and the
requests that changed it, each with a player and a loop. A replay file is an MPQ archive:
* File replay.gamemetadata.json: versions, length and players, as in replays of the real game.
* File sc2pool.info: a serialized `ResponseReplayInfo`.
* File sc2pool.episode.json: the name of our format, the episode's number, and its `Quirks`.
* File sc2pool.requests: loop, player, size and bytes of each `Request`. The first request is
  create_game, with the map and the seed. After create_game follows the join_game of each player.

Rules of the recording:
* A request is recorded as the bytes that arrived, so recording takes hardly any time.
* The recording is limited to MAX_BYTES; a longer episode has no replay.
* Before a replay file is played, it is checked against the limit of a recording. The check decodes
  one request at a time, because a decoded request takes much more memory than its bytes.
* The requests of a loop are in the order of the players, because the processes of both players must
  write the same file.

`Playback` plays the created game again, with each recorded request at its loop:
* The requests of a loop are carried out when the replay continues from this loop. So, as in the
  game, an observation of the loop is made before its requests are carried out.
* A replay that was saved before the game's end stops at the last saved loop, and its result is
  Undecided.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from reprlib import repr as shown
from typing import Final

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from s2clientprotocol import common_pb2 as common
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin import mpq
from sc2standin.game_time import LOOPS_PER_S
from sc2standin.map_reader.fields import MAX_SIDE_CELLS
from sc2standin.simulation.game import Game, Quirks

RECORDED: Final = frozenset({"action", "debug"})
"""The requests, besides step, that change an episode."""
_PLAYABLE = RECORDED | {"leave_game"}
"""The requests that can follow join_game in a file; leave_game comes from one of two players."""
MAX_BYTES: Final = 64 * 1024 * 1024
"""The largest recording in memory; it suffices for three hours with a command in each loop."""
_ENTRY_BYTES: Final = 150
"""The memory that a recorded request takes in addition to its content, in bytes."""
_REQUEST_BYTES: Final = 2 * 1024 * 1024
"""The largest size of a recorded request, which is create_game with a map of 1 MiB."""
_INFO_BYTES: Final = 256 * 1024
"""The largest size of a game's description. Most descriptions have a few hundred bytes."""
_FORMAT: Final = "sc2pool-standin-replay/3"
_METADATA, _INFO = "replay.gamemetadata.json", "sc2pool.info"
_EPISODE, _REQUESTS = "sc2pool.episode.json", "sc2pool.requests"
_REAL: Final = b"StarCraft II replay"
"""A text in the user data at the beginning of a replay of the real game."""
_USER_DATA_BYTES, _METADATA_BYTES = 1024, 1 << 20
LAST_LOOP: Final = 1 << 19
"""The number of loops since create_game after which every game ends."""
HEAD: Final = struct.Struct("<IBI")
"""Loop, player and size of a request."""
Entry = tuple[int, int, bytes]
"""Loop, player and serialized request."""


class ReplayError(ValueError):
    """A file is not a replay of the stand-in, or no replay can be made; the message says why."""


class Recording:
    """Records the requests of the current episode."""

    def __init__(self, create: sc_pb.RequestCreateGame) -> None:
        self.create = create
        """The game's create_game, with the map and the seed."""
        self._joins: dict[int, sc_pb.RequestJoinGame] = {}
        self._episode = self._loops_before = 0
        self._quirks = Quirks()
        self._requests: list[tuple[int, int, bytes]] = []
        self._bytes = 0

    def joined(self, player: int, join: sc_pb.RequestJoinGame) -> None:
        """Record the join_game of a player."""
        self._joins[player] = sc_pb.RequestJoinGame()
        self._joins[player].CopyFrom(join)

    def begin(self, episode: int, loops_before: int, quirks: Quirks) -> None:
        """Begin to record an episode, and forget the requests of the previous episode."""
        self._episode, self._loops_before, self._quirks = episode, loops_before, quirks
        self._requests.clear()
        self._bytes = 0

    def note(self, loop: int, player: int, request: bytes) -> None:
        """Record a player's serialized request that was carried out at this loop."""
        if self._bytes <= MAX_BYTES:
            self._requests.append((loop, player, request))
            self._bytes += _ENTRY_BYTES + len(request)
            if len(request) > _REQUEST_BYTES:
                self._bytes = MAX_BYTES + 1

    def file(self, info: sc_pb.ResponseReplayInfo) -> bytes:
        """The replay file; raises ReplayError if the episode was too long to be recorded."""
        if self._bytes > MAX_BYTES:
            raise ReplayError("the episode has too many commands for a replay")
        changes = sorted(self._requests, key=itemgetter(0, 1))  # a player's requests stay in order
        requests = [
            (0, 0, sc_pb.Request(create_game=self.create)),
            *((0, n, sc_pb.Request(join_game=join)) for n, join in sorted(self._joins.items())),
            *((loop, player, without_ends(content)) for loop, player, content in changes),
        ]
        episode = {
            "format": _FORMAT,
            "episode": self._episode,
            "loops_before": self._loops_before,
        }
        if self._quirks != Quirks():
            episode["quirks"] = asdict(self._quirks)
        return mpq.pack(
            {
                _METADATA: json.dumps(_metadata(info)).encode(),
                _INFO: info.SerializeToString(deterministic=True),
                _EPISODE: json.dumps(episode).encode(),
                _REQUESTS: b"".join(entry(*request) for request in requests),
            }
        )


@dataclass(frozen=True)
class Replay:
    """The content of a replay file."""

    info: sc_pb.ResponseReplayInfo
    episode: int
    """The number of this episode since create_game, counted from 0."""
    loops_before: int
    """The loops played between create_game and this episode."""
    create: sc_pb.RequestCreateGame
    joins: dict[int, sc_pb.RequestJoinGame]
    """The join_game of each player."""
    requests: tuple[Entry, ...]
    """The requests that changed the episode, in order; each can be decoded."""
    quirks: Quirks = field(default_factory=Quirks)


def read(content: bytes) -> Replay:
    """The replay in a file; raises ReplayError."""
    if _REAL in content[:_USER_DATA_BYTES]:
        raise ReplayError(
            f"a replay of StarCraft II, which the stand-in cannot play{_described(content)}"
        )
    try:
        info = sc_pb.ResponseReplayInfo.FromString(mpq.unpack(content, _INFO, _INFO_BYTES))
        episode = json.loads(mpq.unpack(content, _EPISODE, _INFO_BYTES))
        if episode["format"] != _FORMAT:
            raise ReplayError(f"its format is {shown(episode['format'])}, expected {_FORMAT!r}")
        number, loops_before = episode["episode"], episode["loops_before"]
        quirks = _quirks(**episode["quirks"]) if "quirks" in episode else Quirks()
        log = mpq.unpack(content, _REQUESTS, MAX_BYTES)
        (_, _, first), *others = _entries(log)
        create = sc_pb.Request.FromString(first)
        joins: dict[int, sc_pb.RequestJoinGame] = {}
        kinds: set[str | None] = set()
        ends = False
        for _, player, one in others:
            request = sc_pb.Request.FromString(one)
            if request.HasField("join_game") and not kinds and player not in joins:
                joins[player] = request.join_game
            else:
                kinds.add(request.WhichOneof("request"))
                ends |= _ends_process(request)
        changes = others[len(joins) :]
    except (DecodeError, struct.error, ValueError, LookupError, TypeError, RecursionError) as error:
        raise ReplayError(f"not a replay of the stand-in: {error}") from None
    loops = [loop for loop, _, _ in changes]
    if ends:
        raise ReplayError("not a replay of the stand-in: it would end the process")
    if not (create.HasField("create_game") and kinds <= _PLAYABLE):
        raise ReplayError("not a replay of the stand-in: it has other requests")
    clients = sum(setup.type == sc_pb.Participant for setup in create.create_game.player_setup)
    if sorted(joins) != list(range(1, max(1, clients) + 1)) or {n for _, n, _ in changes} - set(
        joins
    ):
        raise ReplayError("not a replay of the stand-in: it has other players")
    counts_fit = _is_count(number) and _is_count(loops_before) and loops_before <= LAST_LOOP
    if not counts_fit or loops != sorted(loops):
        raise ReplayError("not a replay of the stand-in: its numbers are wrong")
    return Replay(info, number, loops_before, create.create_game, joins, tuple(changes), quirks)


def _quirks(spent: list[tuple[float, float, int]], late_loops: int, *, waves_stall: bool) -> Quirks:
    """The odd rules of an episode in a file; raises TypeError or ValueError."""
    places = [one for x, y, _left in spent for one in (x, y)]
    counts = [late_loops, *(left for _x, _y, left in spent)]
    if not (all(map(_is_place, places)) and all(map(_is_count, counts))):
        raise ValueError("its odd rules have wrong numbers")
    deposits = tuple((float(x), float(y), left) for x, y, left in spent)
    return Quirks(deposits, late_loops, bool(waves_stall))


def _described(real: bytes) -> str:
    """Map, version, length and players of a replay of the real game, from its metadata."""
    try:
        told = json.loads(mpq.unpack(real, _METADATA, _METADATA_BYTES))
        players = [
            f"player {one['PlayerID']} {one['AssignedRace']}, {one['Result']}"
            for one in told["Players"]
        ]
        title, version, seconds = (told[key] for key in ("Title", "GameVersion", "Duration"))
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        return f"; it does not say of which game ({error})"
    return f": {'; '.join([f'{title}, version {version}, {seconds} s', *players]):.1000}"


def _is_place(number: object) -> bool:
    """True if the value can be a coordinate on a map."""
    return isinstance(number, int | float) and 0 <= number <= MAX_SIDE_CELLS


def _is_count(number: object) -> bool:
    return isinstance(number, int) and 0 <= number < 1 << 32


def _ends_process(request: sc_pb.Request) -> bool:
    return request.HasField("debug") and any(
        command.HasField("test_process") for command in request.debug.debug
    )


def without_ends(content: bytes) -> sc_pb.Request:
    """A request without the commands that crash, hang or end the process."""
    request: sc_pb.Request = sc_pb.Request.FromString(content)
    if not _ends_process(request):
        return request
    kept = [command for command in request.debug.debug if not command.HasField("test_process")]
    return sc_pb.Request(debug=sc_pb.RequestDebug(debug=kept))


def entry(loop: int, player: int, request: sc_pb.Request) -> bytes:
    """The bytes of a request, with its loop and its player."""
    content = request.SerializeToString(deterministic=True)
    return bytes(HEAD.pack(loop, player, len(content)) + content)


def _entries(log: bytes) -> list[Entry]:
    """The undecoded requests of a log; raises ValueError if they are too many or too long.

    The limit is that of `Recording`, plus room for create_game and each join_game, which
    `Recording` does not count.
    """
    entries, place, left = [], 0, MAX_BYTES + 4 * _REQUEST_BYTES
    while place < len(log):
        loop, player, size = HEAD.unpack_from(log, place)
        place += HEAD.size + size
        left -= _ENTRY_BYTES + size
        if left < 0 or size > _REQUEST_BYTES or place > len(log):
            raise ValueError("its requests are too many, too long, or cut off")
        entries.append((loop, player, log[place - size : place]))
    return entries


def _metadata(info: sc_pb.ResponseReplayInfo) -> dict[str, object]:
    """The metadata file, from which clients learn which version of the game can play the replay."""
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


Perform = Callable[[int, bytes], None]


class Playback:
    """Plays the requests of a replay that a client watches.

    Args:
        perform: carries out a recorded, serialized request of a player.

    Attributes:
        sees_all: if true, the replay is watched without fog.
        may_be_saved: if true, the client asked for a recording of the replay.
    """

    def __init__(
        self, replay: Replay, perform: Perform, *, sees_all: bool, may_be_saved: bool
    ) -> None:
        self.sees_all = sees_all
        self.may_be_saved = may_be_saved
        self._perform = perform
        self._last_loop = replay.info.game_duration_loops
        self._requests = replay.requests
        self._done = 0

    def advance(self, game: Game, loops: int, stop: Callable[[], bool]) -> None:
        """Play this many loops, or until the replay is over, or until `stop()` is true."""
        end = min(game.world.loop + loops, self._last_loop)
        while game.world.loop < end and game.result is None and not stop():
            until = end
            while self._done < len(self._requests):
                loop, player, request = self._requests[self._done]
                if loop > game.world.loop:
                    until = min(end, loop)
                    break
                self._done += 1
                self._perform(player, request)
            game.advance(until - game.world.loop, stop)
        if game.result is None and game.world.loop >= self._last_loop:
            game.result = sc_pb.Undecided
