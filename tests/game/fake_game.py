"""A game that misbehaves on demand: a small websocket server that speaks a part of the API.

The fake game is started like the real game. Its data directory has a file `behaviour.json`, a dict
with these keys:

    `at_start`: "exit", "silent", "port-refused", "not-found-first", "not-found", "speaks-SSH",
        "stopped" or "stopped-in-handshake".
    `on_step`: A dict from a step's number to the name of its wrong answer (`send_wrong`).
    `no_result`: A number N; the first N observations after the end have no player_result.
    `stub`: All observations are stubs.
    `stub_at_end`: Only observations after the end are stubs; they have the result.
    `not_in_game`: After the end, all requests except create_game are refused: "Not in a game".
    `warns`: Each reply has a text in `error`.
    `player_id`: The id in join_game's reply; with 0 the status stays launched.
    `units_fade`: Each restart has one unit less than before.
    `ends_at`: The game ends at this loop.
    `hard_reset`: Restarts ask for a hard reset.
    `same_again`: All episodes are the same; by default, an episode's minerals show its number.
    `repeats_seed`: A restart plays the same episode again.
    `without_ids`: No reply has an id.
    `drifts`: No two observations are the same.
    `bursts_differ`: Requests in a burst get other minerals than single requests.
    `no_exit`: A request to exit is refused.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import socket
import sys
import time
from pathlib import Path

import picows
import psutil
from s2clientprotocol import sc2api_pb2 as sc_pb

BINARY = picows.WSMsgType.BINARY


class FakeGame(picows.WSListener):
    """A game without rules: it only counts its loops."""

    def __init__(self, behaviour: dict) -> None:
        self.behaviour = behaviour
        self.status = sc_pb.launched
        self.loop = 0
        self.units = 3
        self.steps = 0
        self.results_held_back = behaviour.get("no_result", 0)
        self.episodes = 0
        self.observations = 0
        self.in_burst = False

    def on_ws_frame(self, transport, frame) -> None:
        if frame.msg_type != BINARY:
            return
        request = sc_pb.Request.FromString(frame.get_payload_as_bytes())
        kind = request.WhichOneof("request")
        # In a burst, another message follows every message except the last.
        self.in_burst |= not frame.last_in_buffer
        if self.behaviour.get("not_in_game") and self.status == sc_pb.ended and kind != "step":
            self.status = sc_pb.launched
        refused = self.status == sc_pb.launched and kind in ("action", "observation", "leave_game")
        if refused and self.behaviour.get("not_in_game"):
            reply = sc_pb.Response(error=["Not in a game"])
        else:
            reply = getattr(self, kind)(request)
        if self.behaviour.get("warns"):
            reply.error.append("Something is deprecated.")
        if not self.behaviour.get("without_ids"):
            reply.id = request.id
        reply.status = self.status
        wrong = None
        if kind == "step":
            self.steps += 1
            wrong = self.behaviour.get("on_step", {}).get(str(self.steps))
        if wrong is None:
            transport.send(BINARY, reply.SerializeToString())
        else:
            send_wrong(transport, wrong, reply)
        self.in_burst &= not frame.last_in_buffer

    def ping(self, request):
        return sc_pb.Response(
            ping=sc_pb.ResponsePing(
                game_version="fake", data_version="0", data_build=1, base_build=99999
            )
        )

    def create_game(self, request):
        self.status = sc_pb.init_game
        self.episodes = request.create_game.random_seed
        return sc_pb.Response(create_game=sc_pb.ResponseCreateGame())

    def join_game(self, request):
        self.status, self.loop, self.units = sc_pb.in_game, 0, 3
        player_id = self.behaviour.get("player_id", 1)
        if not player_id:
            self.status = sc_pb.launched
        return sc_pb.Response(join_game=sc_pb.ResponseJoinGame(player_id=player_id))

    def restart_game(self, request):
        restart = sc_pb.ResponseRestartGame(need_hard_reset=bool(self.behaviour.get("hard_reset")))
        self.status, self.loop = sc_pb.in_game, 0
        self.units -= bool(self.behaviour.get("units_fade"))
        self.episodes += not self.behaviour.get("repeats_seed")
        return sc_pb.Response(restart_game=restart)

    def leave_game(self, request):
        self.status = sc_pb.launched
        return sc_pb.Response(leave_game=sc_pb.ResponseLeaveGame())

    def game_info(self, request):
        return sc_pb.Response(game_info=sc_pb.ResponseGameInfo(map_name="fake"))

    def debug(self, request):
        if request.debug.debug[0].HasField("test_process") and not self.behaviour.get("no_exit"):
            os._exit(0)
        return sc_pb.Response(error=["not today"])

    def action(self, request):
        count = len(request.action.actions)
        return sc_pb.Response(action=sc_pb.ResponseAction(result=[1] * count))

    def step(self, request):
        if self.status == sc_pb.ended:
            return sc_pb.Response(error=["Game has already ended"])
        self.loop += request.step.count
        ends_at = self.behaviour.get("ends_at")
        if ends_at is not None and self.loop >= ends_at:
            self.loop, self.status = ends_at, sc_pb.ended
        return sc_pb.Response(step=sc_pb.ResponseStep(simulation_loop=self.loop))

    def observation(self, request):
        reply = sc_pb.ResponseObservation()
        is_stub = self.behaviour.get("stub") or (
            self.behaviour.get("stub_at_end") and self.status == sc_pb.ended
        )
        reply.observation.game_loop = 2**32 - 1 if is_stub else self.loop
        for tag in range(self.units if self.behaviour.get("units_fade") else 0):
            reply.observation.raw_data.units.add(tag=tag + 1, unit_type=48, owner=1, alliance=1)
        reply.observation.raw_data.player.SetInParent()
        reply.observation.player_common.player_id = 1
        self.observations += 1
        if self.behaviour.get("drifts"):
            reply.observation.player_common.minerals = self.observations
        elif self.behaviour.get("bursts_differ"):
            reply.observation.player_common.minerals = int(self.in_burst)
        elif not self.behaviour.get("same_again"):
            reply.observation.player_common.minerals = self.episodes
        if self.status == sc_pb.ended:
            if self.results_held_back:
                self.results_held_back -= 1
            else:
                reply.player_result.add(player_id=1, result=sc_pb.Victory)
        return sc_pb.Response(observation=reply)


def send_wrong(transport, wrong: str, reply: sc_pb.Response) -> None:  # noqa: PLR0912
    """Sends wrong bytes in place of, or beside, the right reply."""
    right = reply.SerializeToString()
    match wrong:
        case "nothing":
            pass
        case "slow":
            time.sleep(0.5)
            transport.send(BINARY, right)
        case "busy":
            until = time.monotonic() + 1.0
            while time.monotonic() < until:
                pass
            transport.send(BINARY, right)
        case "garbage":
            transport.send(BINARY, b"\xff" * 40)
        case "truncated":
            transport.send(BINARY, right[:-1])
        case "duplicate":
            transport.send(BINARY, right)
            transport.send(BINARY, right)
        case "text":
            transport.send(picows.WSMsgType.TEXT, b"hello")
        case "error":
            refusal = sc_pb.Response(id=reply.id, status=reply.status, error=["no"])
            transport.send(BINARY, refusal.SerializeToString())
        case "wrong id":
            reply.id += 1
            transport.send(BINARY, reply.SerializeToString())
        case "without id":
            reply.ClearField("id")
            transport.send(BINARY, reply.SerializeToString())
        case "fragments":
            transport.send(BINARY, right[:2], fin=False)
            transport.send(picows.WSMsgType.CONTINUATION, right[2:])
        case "close":
            transport.send_close()
        case "disconnect":
            transport.underlying_transport.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        case "not a websocket":
            transport.underlying_transport.write(b"\xff" * 64)
        case "exit":
            os._exit(3)
        case "stop":
            psutil.Process().suspend()
        case _:
            raise ValueError(wrong)


async def speak_ssh(host: str, port: int) -> None:
    def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")

    server = await asyncio.start_server(greet, host, port)
    await server.serve_forever()


async def main() -> None:
    arguments = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=False))
    behaviour = json.loads((Path(arguments["-dataDir"]) / "behaviour.json").read_text())
    at_start = behaviour.get("at_start")
    print("fake game at your service", flush=True)
    if at_start == "exit":
        print("no graphics card", flush=True)
        sys.exit(7)
    if at_start == "silent":
        await asyncio.Event().wait()
    if at_start == "stopped":
        psutil.Process().suspend()
    if at_start == "port-refused":
        print("Failed to create the socket.", flush=True)
        await asyncio.Event().wait()
    if at_start == "speaks-SSH":
        await speak_ssh(arguments["-listen"], int(arguments["-port"]))
    refusals = {"not-found-first": 1, "not-found": math.inf}.get(at_start, 0)

    def accept(request):
        nonlocal refusals
        if b"origin" in {name.lower().encode() for name in request.headers}:
            return None
        if at_start == "stopped-in-handshake":
            psutil.Process().suspend()
        if refusals:
            refusals -= 1
            return None
        return FakeGame(behaviour)

    server = await picows.ws_create_server(accept, arguments["-listen"], int(arguments["-port"]))
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
