"""Checks of a reply: does it answer the request, and did the request succeed?

A reply that can be parsed may still be wrong: an empty frame and most frames with a flipped bit can
be parsed as well. So a reply is checked in three steps, each a pure function:

    `check`: Id, kind and status of the reply fit the request; else GameFault BAD_REPLY.
    `require`: The request was not refused and did not fail; else GameFault or ConfigError.
    `check_observation`: The state is complete and of the expected loop; else GameFault BAD_REPLY.

Rules: a failure to create or join a game is a fault SETUP_FAILED, because a new process may
succeed. An error in a replay's file or options is a `ConfigError`. All other errors are
`GameFault`s, after which the game gets no more requests. If the requested reply also has a text in
`error`, the text is only a warning. A refusal because the game has ended is no error (see
`is_game_over`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.errors import ConfigError, FaultKind, GameFault
from sc2pool.foreign import printable


class Status(IntEnum):
    """A game's status, as in `sc2api_pb2.Status`."""

    LAUNCHED = sc_pb.launched
    INIT_GAME = sc_pb.init_game
    IN_GAME = sc_pb.in_game
    IN_REPLAY = sc_pb.in_replay
    ENDED = sc_pb.ended
    QUIT = sc_pb.quit
    UNKNOWN = sc_pb.unknown


LAST_LOOP: Final = 1 << 19
"""The game loop at which the game itself ends every episode."""
HARD_RESET_LOOP: Final = 1 << 18
"""From this game loop on, the game cannot be restarted; a new game must be created."""
FIRST_LOOP_MAX: Final = 16
"""The first observation should be of game loop 0, but any loop up to this one is accepted."""
_WORDS: Final = 500
"""At most this many characters of a game's own text are put into an error message."""
_STUB_LOOP: Final = (1 << 32) - 1
"""The game loop that an observation without a state shows."""

_RUNNING = frozenset({Status.IN_GAME, Status.ENDED})
_PLAYED = _RUNNING | {Status.IN_REPLAY}
_ANY = frozenset(Status)

STATUS_AFTER: dict[str, frozenset[int]] = {
    **dict.fromkeys(("ping", "available_maps", "save_map", "replay_info"), _ANY),
    "create_game": frozenset({Status.INIT_GAME}),
    # A game that cannot use the map's file answers with status LAUNCHED and player id 0.
    "join_game": frozenset({Status.IN_GAME, Status.LAUNCHED}),
    "leave_game": frozenset({Status.LAUNCHED, Status.ENDED}),
    "start_replay": frozenset({Status.IN_REPLAY}),
    **dict.fromkeys(("game_info", "data", "observation", "query", "save_replay", "step"), _PLAYED),
    **dict.fromkeys(("restart_game", "action", "debug", "quick_save", "quick_load"), _RUNNING),
}
"""The statuses that a game may report after a successful request."""

_GAME_OVER_ERRORS = frozenset(
    {
        "game has already ended",
        "not supported if game has already ended",
        "not in a game",
    }
)

_ReplayInfo = sc_pb.ResponseReplayInfo
_Replay = sc_pb.ResponseStartReplay

_SETUP: Final = frozenset({"create_game", "join_game", "save_map"})
"""Requests whose errors concern the map, the players, or effects of the process's earlier games."""
_PERMANENT: dict[str, frozenset[int]] = {
    # Each request's errors, except the subtracted one, concern the replay's file or options.
    "replay_info": frozenset(_ReplayInfo.Error.values()) - {_ReplayInfo.DownloadError},
    "start_replay": frozenset(_Replay.Error.values()) - {_Replay.LaunchError},
}
"""For each request, the errors that a new game would give again."""
_MAY_FAIL: Final = _SETUP | _PERMANENT.keys() | {"restart_game"}
"""Requests whose replies have an `error` field besides `Response.error`."""


def _bad(detail: str) -> GameFault:
    return GameFault(FaultKind.BAD_REPLY, detail)


def check(reply: sc_pb.Response, request_id: int, kind: str) -> None:
    """Raises BAD_REPLY unless `reply` is an answer to the request of this id and kind.

    A refusal (a reply with only `error`) is an answer. Old games omit the id.
    """
    if reply.id != request_id and reply.HasField("id"):
        raise _bad(f"the reply to {kind} has id {reply.id}, expected {request_id}")
    if not reply.HasField("status"):
        raise _bad(f"the reply to {kind} has no status")
    got = reply.WhichOneof("response")
    if got == kind:
        if reply.status not in STATUS_AFTER.get(kind, _ANY) and not _has_failed(reply, kind):
            raise _bad(f"status {_status(reply)} cannot follow {kind}")
    elif got is not None:
        raise _bad(f"the reply to {kind} is a {got}")
    elif not reply.error:
        raise _bad(f"the reply to {kind} is empty")


def require(reply: sc_pb.Response, kind: str) -> None:
    """Raises an error if `reply`, which passed `check`, reports that the request failed.

    ConfigError if the request can never succeed because a replay's file or options are wrong.
    GameFault SETUP_FAILED if the game cannot be created or joined, otherwise BAD_REPLY.
    """
    if is_refusal(reply):
        status = _status(reply)
        words = printable("; ".join(reply.error), _WORDS)
        raise _bad(f"the game refused {kind} (status {status}): {words}")
    if not _has_failed(reply, kind):
        return
    answer = getattr(reply, kind)
    name = type(answer).Error.Name(answer.error)
    details = printable(getattr(answer, "error_details", ""), _WORDS)  # some replies lack the field
    detail = f"the game cannot {kind}: {name} {details}".rstrip()
    if kind in _SETUP:
        raise GameFault(FaultKind.SETUP_FAILED, detail)
    if answer.error in _PERMANENT.get(kind, ()):
        raise ConfigError(detail)
    raise _bad(detail)


def is_refusal(reply: sc_pb.Response) -> bool:
    """True if `reply` is an error in place of the requested reply."""
    return bool(reply.error) and reply.WhichOneof("response") is None


def is_game_over(reply: sc_pb.Response) -> bool:
    """True if `reply` refuses a request because the game has ended."""
    return is_refusal(reply) and any(
        error.strip(" .").lower() in _GAME_OVER_ERRORS for error in reply.error
    )


def is_stub(answer: sc_pb.ResponseObservation) -> bool:
    """True if the observation holds no state; it may still contain the game's result."""
    return not answer.HasField("observation") or answer.observation.game_loop == _STUB_LOOP


def check_observation(
    answer: sc_pb.ResponseObservation, *, first_loop: int, last_loop: int
) -> None:
    """Raises BAD_REPLY for an incomplete state, or a loop outside `first_loop` … `last_loop`."""
    if not answer.HasField("observation"):
        raise _bad("the observation reply holds no observation")
    observation = answer.observation
    loop = observation.game_loop
    if loop == _STUB_LOOP:
        raise _bad("the observation is a stub without a game loop")
    if not first_loop <= loop <= last_loop:
        expected = str(first_loop) if first_loop == last_loop else f"{first_loop} to {last_loop}"
        raise _bad(f"the observation is of game loop {loop}, expected {expected}")
    if not observation.HasField("raw_data"):
        raise _bad(f"the observation of game loop {loop} has no raw data")
    if not observation.HasField("player_common"):
        raise _bad(f"the observation of game loop {loop} has no player")


def result_of(answer: sc_pb.ResponseObservation, player_id: int) -> int | None:
    """The player's `Result`; None while the game has not reported it."""
    for outcome in answer.player_result:
        if outcome.player_id == player_id:
            return int(outcome.result)
    return None


def expected_kind(request: sc_pb.Request) -> str:
    """The field that is set in `request` and in its reply; ValueError if the kind is unknown."""
    kind = request.WhichOneof("request")
    if kind is None:
        raise ValueError("cannot send a request without content")
    if kind not in STATUS_AFTER:
        raise ValueError(f"{kind} is not a request with a known reply")
    return kind


def _has_failed(reply: sc_pb.Response, kind: str) -> bool:
    return kind in _MAY_FAIL and getattr(reply, kind).HasField("error")


def _status(reply: sc_pb.Response) -> str:
    return str(sc_pb.Status.Name(reply.status))
