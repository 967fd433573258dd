"""One client's session: requests in, replies out, checked against the API's status table.

Rules it keeps:
- every frame gets exactly one reply, in order, except requests that end or hang the process;
- every reply carries the request's `id` and the `status`;
- a protocol error is a reply with `error`, id and status, and nothing else.

This file touches neither the socket nor the process; `server` does.
"""

from __future__ import annotations

import sys
import traceback

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.protocol.status import LEGAL, Status, is_legal
from sc2pool.standin import canned
from sc2pool.standin.requests import HANDLERS
from sc2pool.standin.state import RequestRefused, State

_WHY_ILLEGAL = {
    Status.LAUNCHED: "Not in a game",
    Status.INIT_GAME: "Not in a game: join_game comes first",
    Status.IN_GAME: "Not supported while a game is running",
    Status.ENDED: "Not supported if game has already ended",
    Status.QUIT: "The game is about to exit",
}


def wait_s(state: State, request: sc_pb.Request | None) -> float:
    """Seconds until a request can be answered; more than 0 only in real time.

    An observation may ask for a future loop. The wait is split into single loops, so that the game
    goes on meanwhile and an early end is noticed.
    """
    state.catch_up()
    game, clock = state.game, state.clock
    if request is None or clock is None or game is None or not request.HasField("observation"):
        return 0.0
    if request.observation.game_loop <= game.world.loop:
        return 0.0
    return clock.wait_s(game.world.loop + 1)


def decode(frame: bytes) -> sc_pb.Request | None:
    """The request in a frame; None if it cannot be decoded."""
    try:
        request = sc_pb.Request()
        request.ParseFromString(frame)
    except DecodeError:
        return None
    return request


def answer(state: State, request: sc_pb.Request | None) -> bytes:
    """Carry out one request and serialize its reply."""
    response = sc_pb.Response()
    try:
        if state.canned and request is not None:
            reply = canned.answer(state, request)
            if reply is not None:
                return reply
        _dispatch(state, request, response)
    except RequestRefused as refusal:
        response.Clear()
        response.error.append(str(refusal))
    except Exception as error:  # an error in the stand-in must not leave its client waiting
        traceback.print_exc(file=sys.stderr)
        response.Clear()
        response.error.append(f"Internal error of the stand-in: {error!r}")
    if request is not None and request.HasField("id"):
        response.id = request.id
    response.status = sc_pb.Status.ValueType(state.status)
    return bytes(response.SerializeToString(deterministic=True))


def _dispatch(state: State, request: sc_pb.Request | None, response: sc_pb.Response) -> None:
    if request is None:
        raise RequestRefused("The frame could not be decoded as a Request")
    name = request.WhichOneof("request")
    if name is None:
        raise RequestRefused("The Request is empty, or of a kind this version does not know")
    if name in LEGAL and not is_legal(name, state.status):
        raise RequestRefused(_WHY_ILLEGAL[state.status])
    handler = HANDLERS.get(name)
    if handler is None:
        raise RequestRefused(f"{name} is not supported by the stand-in")
    handler(state, getattr(request, name), response)
