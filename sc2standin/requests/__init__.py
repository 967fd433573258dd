"""One handler per request of the API, and the tables of handlers.

A handler carries out its request and fills its part of the response, which has fields for errors of
this kind of request. If a handler raises `RequestRefused`, the whole reply is an error. Handlers of
action, step and observation do not fill a response: they return the bytes of the whole reply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.process.state import State
from sc2standin.requests import (
    debug,
    info,
    join,
    lifecycle,
    observe,
    queries,
    replays,
)
from sc2standin.requests.commands import actions

# `Any` is the message of a kind of request, such as RequestPing. `Response` is the whole reply.
Handler = Callable[[State, Any, sc_pb.Response], None]

IN_BYTES: dict[str, Callable[[State, sc_pb.Request], bytes]] = {
    "action": actions.action,
    "step": lifecycle.step,
    "observation": observe.observation,
}

HANDLERS: dict[str, Handler] = {
    "ping": info.ping,
    "available_maps": info.available_maps,
    "game_info": info.game_info,
    "data": info.data,
    "save_map": info.save_map,
    "create_game": lifecycle.create_game,
    "join_game": join.join_game,
    "restart_game": lifecycle.restart_game,
    "leave_game": lifecycle.leave_game,
    "quit": lifecycle.quit_process,
    "save_replay": replays.save_replay,
    "replay_info": replays.replay_info,
    "start_replay": replays.start_replay,
    "query": queries.query,
    "debug": debug.debug,
}
