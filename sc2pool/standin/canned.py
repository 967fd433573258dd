"""Canned maps: games that cost almost no CPU time, to measure the code around them.

No unit moves and no rule applies. A step counts loops, an action succeeds and changes nothing, and
the observation is prepared once per episode. This file answers action, step and observation from
prepared bytes; all other requests take the usual path.

Rule it keeps: the replies equal those of a usual map on which nothing happens.
"""

from __future__ import annotations

from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.protocol.status import Status
from sc2pool.standin.prepared import (
    PreparedObservation,
    action_reply,
    reply_tail,
    step_reply,
)
from sc2pool.standin.requests.lifecycle import loops_asked
from sc2pool.standin.requests.observe import observation, player_results
from sc2pool.standin.state import State

_SUCCESS = int(error_pb.Success)
_IN_GAME, _ENDED = Status.IN_GAME, Status.ENDED  # enum look-ups cost more than the rest


def answer(state: State, request: sc_pb.Request) -> bytes | None:
    """The reply to an action, a step or an observation; None if the usual path must answer."""
    kind, status = request.WhichOneof("request"), state.status
    if kind == "observation" and (status is _IN_GAME or status is _ENDED):
        return _observe(state, request)
    if status is not _IN_GAME:
        return None
    if kind == "step" and state.clock is None:
        state.step(loops_asked(request.step))
        loop = state.playing().simulation_loop
        return step_reply(loop, reply_tail(request, state.status))
    if kind == "action":
        return action_reply(_SUCCESS, len(request.action.actions), reply_tail(request, status))
    return None


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
    response = sc_pb.Response()
    observation(state, sc_pb.RequestObservation(), response)
    return PreparedObservation(response.observation.observation)
