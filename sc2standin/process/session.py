"""A client's session: checks each request against the API's status table, and answers it.

Rules of the replies:
* Every frame gets exactly one reply, in order, unless it ends or hangs the process at once.
* Every reply carries the request's `id` and the `status`.
* A reply to a protocol error has only `error`, id and status.

A game on a canned map costs almost no CPU time; such maps serve to measure the code around a game.
On a canned map no unit moves, and no rule applies. A step only counts loops. An action succeeds but
changes nothing. Actions and observations are answered in bytes, and the observation's bytes are
prepared once per episode. Requests of all other kinds are answered as on maps that are not canned.
The replies on a canned map equal those of another map on which nothing happens.

This module never uses the socket or ends the process: only `server` does.
"""

from __future__ import annotations

import math
import sys
import traceback

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.process.state import RequestRefused, State
from sc2standin.recording import RECORDED
from sc2standin.requests import HANDLERS, IN_BYTES
from sc2standin.requests.join import invitation
from sc2standin.requests.lifecycle import loops_asked
from sc2standin.requests.observe import player_results, whole_observation
from sc2standin.simulation.game import Game
from sc2standin.status import LEGAL, Status
from sc2standin.view.prepared import action_reply, game_loop, observation_reply, reply_tail

_SUCCESS = int(error_pb.Success)


def _act(state: State, request: sc_pb.Request) -> bytes:
    results = (_SUCCESS,) * len(request.action.actions)
    return action_reply(results, reply_tail(request, state.status))


def _observe(state: State, request: sc_pb.Request) -> bytes:
    game = state.playing()
    if state.prepared is None:
        state.prepared = _prepare(state)
    results = b""
    if game.result is not None:
        ended = sc_pb.ResponseObservation(player_result=player_results(state))
        results = ended.SerializeToString(deterministic=True)
    tail, loop = reply_tail(request, state.status), game_loop(game.world.loop)
    return observation_reply(b"", state.prepared, results, tail, loop)


def _prepare(state: State) -> bytes:
    results_sent = state.results_sent
    whole = whole_observation(state, sc_pb.RequestObservation())
    state.results_sent = results_sent  # the client does not get this observation
    whole.observation.ClearField("game_loop")
    return bytes(whole.observation.SerializeToString(deterministic=True))


CANNED_IN_BYTES = IN_BYTES | {"action": _act, "observation": _observe}
"""The handlers that return their replies in bytes on a canned map."""

CANNED_RECORDED = RECORDED - {"action"}
"""The requests that are recorded on a canned map; actions are not, because they change nothing."""


NOT_STARTED = "A game has not been started yet"
"""The answer to each request after a join on a map that the game could not read."""
_WHY_ILLEGAL = {
    Status.LAUNCHED: "Not in a game",
    Status.INIT_GAME: "Not in a game: join_game comes first",
    Status.IN_GAME: "Not supported while a game is running",
    Status.IN_REPLAY: "Not supported in a replay",
    Status.ENDED: "Not supported if game has already ended",
    Status.QUIT: "The game is about to exit",
}


_ALLOWED = {name: tuple(statuses) for name, statuses in LEGAL.items()}
"""The legal statuses of each request, in tuples, because hashing an enum's member is slow."""


def wait_s(state: State, request: sc_pb.Request | None) -> float:
    """Seconds until a request can be answered; more than 0 only in real time and with two clients.

    Infinity means that the request waits for the other player (`Hooks.wake` is called later), or
    that a temper, an imitated fault of the real game, prevents the answer.

    An observation may ask for a future loop. The wait for this loop is split into single loops, so
    that the game continues during the wait, and the game's end is noticed immediately.
    """
    game = state.game
    if game is None:
        return _meeting_wait_s(state, request)
    seconds = 0.0
    if state.match is not None:
        loops = loops_asked(request.step) if request is not None else 0
        seconds = state.match.wait_s(request, loops)
    elif state.clock is not None:
        state.catch_up()
        clock = state.clock  # there is no clock after the game's end
        if clock is not None and _asks_for_later_loop(game, request):
            seconds = clock.wait_s(game.world.loop + 1)
    if state.is_silent and _asks_for_later_loop(game, request):
        return math.inf
    return seconds


def _asks_for_later_loop(game: Game, request: sc_pb.Request | None) -> bool:
    return request is not None and request.observation.game_loop > game.world.loop


def _meeting_wait_s(state: State, request: sc_pb.Request | None) -> float:
    """The result of `wait_s` if there is no game; only join_game may have to wait."""
    if request is None or not request.HasField("join_game") or state.hooks.meet is None:
        return 0.0
    crowd_s = 0.0 if state.temper.crowd is None else state.temper.crowd.remaining_s()
    if crowd_s > 0.0:
        return crowd_s
    if state.meeting is None and state.status in _ALLOWED["join_game"]:
        invited = invitation(state, request.join_game)
        state.meeting = None if invited is None else state.hooks.meet(invited)
    return 0.0 if state.meeting is None or state.meeting.done else math.inf


def decode(frame: bytes) -> sc_pb.Request | None:
    """The request in a frame; None if it cannot be decoded."""
    try:
        request = sc_pb.Request()
        request.ParseFromString(frame)
    except DecodeError:
        return None
    return request


def answer(state: State, request: sc_pb.Request | None, frame: bytes) -> bytes:
    """Carry out one request, which was decoded from `frame`, and serialize its reply."""
    reply = _answer(state, request, frame)
    if not state.temper.alters_replies:
        return reply
    is_over = state.game is not None and state.game.result is not None
    return state.temper.altered(reply, is_over=is_over)


def _answer(state: State, request: sc_pb.Request | None, frame: bytes) -> bytes:
    try:
        reply = _carried_out(state, request, frame)
        if isinstance(reply, bytes):
            return reply
    except RequestRefused as refusal:
        reply = sc_pb.Response(error=[str(refusal)])
    except Exception as error:  # the client needs a reply even after an error in the stand-in
        traceback.print_exc(file=sys.stderr)
        reply = sc_pb.Response(error=[f"Internal error of the stand-in: {error!r}"])
    if request is not None and request.HasField("id"):
        reply.id = request.id
    reply.status = sc_pb.Status.ValueType(state.status)
    return bytes(reply.SerializeToString(deterministic=True))


def _carried_out(
    state: State, request: sc_pb.Request | None, frame: bytes
) -> sc_pb.Response | bytes:
    """The reply of a handler: a response without id and status, or the bytes of the whole reply."""
    if request is None:
        raise RequestRefused("The frame could not be decoded as a Request")
    name = request.WhichOneof("request")
    if name is None:
        raise RequestRefused("The Request is empty, or of a kind this version does not know")
    if state.is_untold and name == "action":
        refused = [error_pb.YouCantControlThatUnit] * len(request.action.actions)
        return action_reply(refused, reply_tail(request, state.status))
    if state.is_silent and not state.is_untold and name in ("action", "observation"):
        state.tell_end()
    if name in _ALLOWED and state.status not in _ALLOWED[name] and not _was_legal(state, name):
        why = NOT_STARTED if state.map_is_unreadable else _WHY_ILLEGAL[state.status]
        raise RequestRefused(
            f"{why}, and was refused: {state.not_joined}" if state.not_joined else why
        )
    reply = _handled(state, name, request)
    if name in (CANNED_RECORDED if state.canned else RECORDED):
        state.note(frame)
    return reply


def _was_legal(state: State, name: str) -> bool:
    """True for a step that was legal when it arrived, but whose game ended during this step."""
    return name == "step" and state.match is not None and state.match.is_stepping


def _handled(state: State, name: str, request: sc_pb.Request) -> sc_pb.Response | bytes:
    in_bytes = (CANNED_IN_BYTES if state.canned else IN_BYTES).get(name)
    if in_bytes is not None:
        return in_bytes(state, request)
    handler = HANDLERS.get(name)
    if handler is None:
        raise RequestRefused(f"{name} is not supported by the stand-in")
    response = sc_pb.Response()
    handler(state, getattr(request, name), response)
    return response
