"""The observation request: what the client sees, and what happened since the last one.

Rule it keeps: action errors appear once, in the first observation after them.
"""

from __future__ import annotations

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.standin.state import PLAYER_ID, State


def observation(state: State, request: sc_pb.RequestObservation, response: sc_pb.Response) -> None:
    """Everything that the joined interface requested, at the current loop."""
    game = state.playing()
    reply = response.observation
    reply.observation.CopyFrom(state.seen().update(fog=game.fog and not request.disable_fog))
    reply.action_errors.extend(state.action_errors)
    state.action_errors.clear()
    if state.created().scenario.stamp:
        message = state.provenance.text(game.world.loop)
        reply.chat.add(player_id=PLAYER_ID, message=message)
    reply.player_result.extend(player_results(state))


def player_results(state: State) -> list[sc_pb.PlayerResult]:
    """Each player's result; empty before the end."""
    result = state.playing().result
    if result is None:
        return []
    results = [sc_pb.PlayerResult(player_id=PLAYER_ID, result=result)]
    if state.created().computer is not None:
        results.append(sc_pb.PlayerResult(player_id=PLAYER_ID + 1, result=_OPPOSITE[result]))
    return results


_OPPOSITE = {
    sc_pb.Victory: sc_pb.Defeat,
    sc_pb.Defeat: sc_pb.Victory,
    sc_pb.Tie: sc_pb.Tie,
}
