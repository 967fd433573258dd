"""The statuses of the SC2 API, and the requests that are legal in each.

`LEGAL` lists for each request the statuses in which the game accepts it. The source is the table in
`protocol.md` of Blizzard's s2client-proto. The table forbids create_game in a running game, but the
real game allows it, and pysc2's reset needs it. The keys of the table are the field names of
`sc2api_pb2.Request`.
"""

from __future__ import annotations

from enum import IntEnum

from s2clientprotocol import sc2api_pb2 as sc_pb


class Status(IntEnum):
    """The values of `sc2api_pb2.Status`, with their names in the protocol."""

    LAUNCHED = sc_pb.launched
    INIT_GAME = sc_pb.init_game
    IN_GAME = sc_pb.in_game
    IN_REPLAY = sc_pb.in_replay
    ENDED = sc_pb.ended
    QUIT = sc_pb.quit
    UNKNOWN = sc_pb.unknown


_ANY = frozenset(Status)
_PLAYING = frozenset({Status.IN_GAME})
_WITH_STATE = frozenset({Status.IN_GAME, Status.IN_REPLAY, Status.ENDED})

LEGAL: dict[str, frozenset[Status]] = {
    "ping": _ANY,
    "available_maps": _ANY,
    "save_map": _ANY,
    "quit": _ANY,
    "create_game": frozenset({Status.LAUNCHED, Status.IN_GAME, Status.ENDED}),
    # In LAUNCHED, join_game joins a game that another process has created.
    "join_game": frozenset({Status.LAUNCHED, Status.INIT_GAME}),
    "restart_game": frozenset({Status.IN_GAME, Status.ENDED}),
    "leave_game": frozenset({Status.IN_GAME, Status.IN_REPLAY, Status.ENDED}),
    "game_info": _WITH_STATE,
    "data": _WITH_STATE,
    "observation": _WITH_STATE,
    "query": _WITH_STATE,
    "save_replay": _WITH_STATE,
    "replay_info": _ANY,
    "start_replay": frozenset({Status.LAUNCHED, Status.IN_GAME, Status.IN_REPLAY, Status.ENDED}),
    "action": _PLAYING,
    "debug": _PLAYING,
    "step": frozenset({Status.IN_GAME, Status.IN_REPLAY}),
    "quick_save": _PLAYING,
    "quick_load": frozenset({Status.IN_GAME, Status.ENDED}),
}


def is_legal(request: str, status: Status) -> bool:
    """True if `request` (a field name of `Request`) may be sent in `status`."""
    return status in LEGAL.get(request, frozenset())
