"""Carries out a request that changes an episode, without a reply.

It is a recorded request of a replay, or a request of the other player from that player's process.
"""

from __future__ import annotations

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.process.state import State
from sc2standin.requests import debug
from sc2standin.requests.commands import actions


def perform(state: State, request: sc_pb.Request) -> None:
    """Carry out a request of this player."""
    if request.HasField("action"):
        actions.action(state, request)
    elif request.HasField("debug"):
        debug.debug(state, request.debug, sc_pb.Response())
    elif request.HasField("leave_game"):
        state.playing().end(state.player_id, sc_pb.Defeat)
