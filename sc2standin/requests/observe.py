"""The observation request: the client's view, and the events since the last observation.

Actions, their errors, chat and results appear once, in the first observation after they happen.
"""

from __future__ import annotations

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.process.state import State
from sc2standin.simulation.game import OPPOSITE
from sc2standin.simulation.units import ENEMY, ME
from sc2standin.view.prepared import observation_reply, reply_tail


def observation(state: State, request: sc_pb.Request) -> bytes:
    """The reply at the current loop, with everything that the client's interface asks for."""
    tail = reply_tail(request, state.status)
    if state.crop is not None:
        response = sc_pb.Response(observation=whole_observation(state, request.observation))
        return bytes(response.SerializeToString(deterministic=True)) + tail
    # Serialize the kept message itself, because copying it would take as long as serializing it.
    content = _seen(state, request.observation).SerializeToString(deterministic=True)
    return observation_reply(_before(state), content, _after(state), tail)


def whole_observation(state: State, request: sc_pb.RequestObservation) -> sc_pb.ResponseObservation:
    """The reply of `observation`, as a message."""
    reply = sc_pb.ResponseObservation()
    reply.ParseFromString(_before(state) + _after(state))
    reply.observation.CopyFrom(_seen(state, request))
    if state.crop is not None:
        state.crop.observation(reply.observation.raw_data)
        for done in reply.actions:
            state.crop.done(done.action_raw)
    return reply


def _seen(state: State, request: sc_pb.RequestObservation) -> sc_pb.Observation:
    """The content of the field `observation`, which is valid until the next call."""
    sees_all = not state.created().clients
    if state.playback is not None:
        sees_all = sees_all or state.playback.sees_all
    lifted = request.disable_fog and not sees_all
    return state.seen().update(fog=not (sees_all or lifted), lifted=lifted)


def _before(state: State) -> bytes:
    """The fields of the reply before `observation`: the client's actions and their errors."""
    fields = b""
    if state.actions_done:
        loop, all_done = state.playing().world.loop, list(state.actions_done)
        fields = b"".join([done.shown(state.options) for done in all_done if done.loop <= loop])
        state.actions_done.clear()
        state.actions_done.extend(done for done in all_done if done.loop > loop)
    if state.action_errors:
        errors = sc_pb.ResponseObservation(action_errors=state.action_errors)
        fields += errors.SerializeToString(deterministic=True)
        state.action_errors.clear()
    return fields


def _after(state: State) -> bytes:
    """The fields of the reply after `observation`: results and chat."""
    game, stamp = state.playing(), state.created().scenario.stamp
    if game.result is None and not state.chat and not stamp:
        return b""
    fields = sc_pb.ResponseObservation(player_result=player_results(state), chat=state.chat)
    state.chat.clear()
    if stamp:
        fields.chat.add(player_id=state.player_id, message=state.provenance.text(game.world.loop))
    return bytes(fields.SerializeToString(deterministic=True))


def player_results(state: State) -> list[sc_pb.PlayerResult]:
    """Each player's result; empty before the end, and after the results have been sent."""
    if state.results_sent or state.playing().result is None:
        return []
    state.results_sent = True
    found = results(state)
    return found if state.match is None else state.temper.results(found)


def results(state: State) -> list[sc_pb.PlayerResult]:
    """Each player's result; undecided before the end."""
    result = state.playing().result
    if result is None:
        result = sc_pb.Undecided
    found = [sc_pb.PlayerResult(player_id=ME, result=result)]
    if state.created().has_opponent:
        found.append(sc_pb.PlayerResult(player_id=ENEMY, result=OPPOSITE[result]))
    return found
