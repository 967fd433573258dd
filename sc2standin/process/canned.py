"""Canned maps: games that cost almost no CPU time, to measure the code around them.

No unit moves and no rule applies. A step counts loops, an action succeeds and changes nothing, and
the observation is prepared once per episode. This file answers action and observation from
prepared bytes; all other requests take the usual path.

Rule it keeps: the replies equal those of a usual map on which nothing happens.
"""

from __future__ import annotations

from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin import requests
from sc2standin.process.state import State
from sc2standin.replays import recording
from sc2standin.requests.observe import player_results, whole_observation
from sc2standin.view.prepared import (
    PreparedObservation,
    action_reply,
    reply_tail,
)

_SUCCESS = int(error_pb.Success)


def _act(state: State, request: sc_pb.Request) -> bytes:
    results = (_SUCCESS,) * len(request.action.actions)
    return action_reply(results, reply_tail(request, state.status))


def _observe(state: State, request: sc_pb.Request) -> bytes:
    game = state.playing()
    prepared = state.prepared
    if prepared is None:
        prepared = state.prepared = _prepare(state)
    results = b""
    if game.result is not None:
        ended = sc_pb.ResponseObservation(player_result=player_results(state))
        results = ended.SerializeToString(deterministic=True)
    return prepared.reply(game.world.loop, results, reply_tail(request, state.status))


def _prepare(state: State) -> PreparedObservation:
    results_sent = state.results_sent
    whole = whole_observation(state, sc_pb.RequestObservation())
    state.results_sent = results_sent  # this observation is not sent
    return PreparedObservation(whole.observation)


IN_BYTES = requests.IN_BYTES | {"action": _act, "observation": _observe}
"""The handlers of a canned map's steps."""

RECORDED = recording.RECORDED - {"action"}
"""The requests that change an episode of a canned map; actions do not change it."""
