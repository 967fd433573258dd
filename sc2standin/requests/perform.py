"""Carries out a request that needs no reply.

The request comes from a replay, or from the other player's process, which sends the reply.
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
