"""The SC2 API's statuses of a game."""

from __future__ import annotations

from enum import IntEnum

from s2clientprotocol import sc2api_pb2 as sc_pb


class Status(IntEnum):
    """`sc2api_pb2.Status` under its protocol names."""

    LAUNCHED = sc_pb.launched
    INIT_GAME = sc_pb.init_game
    IN_GAME = sc_pb.in_game
    IN_REPLAY = sc_pb.in_replay
    ENDED = sc_pb.ended
    QUIT = sc_pb.quit
    UNKNOWN = sc_pb.unknown
