"""The websocket of a session, and the game process.

The server listens only at the given address, and has one client at a time. It refuses any client,
such as a web page, whose `Origin` header names another server. It answers requests in the order of
arrival: while a request waits for its loop, later requests wait, too. The server reads a text
message like a binary one, because pysc2 and SMAC send text, by the package websocket-client.

We do not know how the real game continues in real time after it was stopped by SIGSTOP and then
continued by SIGCONT. So the stand-in has two modes:
* Mode catch-up: the game's clock goes on, and the missed loops are played as fast as possible.
* Mode freeze: the game's clock stands still, and the game continues where it was stopped.

A process can handle the signal SIGCONT, but not the signal SIGSTOP. So `FrozenStops` records the
time every few milliseconds. After SIGCONT, `FrozenStops` excludes the time since the last record
from the game's time.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import select
import signal
import struct
import sys
import time
from collections import deque
from collections.abc import Callable
from enum import StrEnum
from http import HTTPStatus
from typing import Final, NoReturn

from picows import (
    WSCloseCode,
    WSFrame,
    WSListener,
    WSMsgType,
    WSTransport,
    WSUpgradeRequest,
    WSUpgradeResponse,
    WSUpgradeResponseWithListener,
    ws_create_server,
)
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2standin.meeting import Invitation, Meeting, begin_meeting
from sc2standin.process import session
from sc2standin.process.state import Fate, Hooks, State

if sys.platform != "win32":
    import resource

API_PATH = b"/sc2api"
MAX_FRAME_BYTES = 64 * 1024 * 1024
WHOLE_BINARY = 0x82
"""The first byte of a websocket frame that contains a whole binary message."""
TURN_S = 0.1
"""The longest time for which requests are answered before asyncio handles new frames and timers."""
_BINARY, _PING, _PONG, _CLOSE = WSMsgType.BINARY, WSMsgType.PING, WSMsgType.PONG, WSMsgType.CLOSE
_LENGTH_16, _LENGTH_64 = struct.Struct("!BBH").pack, struct.Struct("!BBQ").pack


class Client(WSListener):
    """The connected client: receives frames and sends replies."""

    def __init__(self, server: GameServer) -> None:
        self._server = server
        self._transport: WSTransport | None = None
        self._has_left: Callable[[], bool] = lambda: False
        """Returns True if the client has closed its side, even if asyncio does not know it yet."""
        self._fragments: list[bytes] = []
        self._waiting: deque[tuple[sc_pb.Request | None, bytes]] = deque()
        """The requests that are not answered yet, each with its bytes."""
        self._timer: asyncio.Handle | None = None
        """The timer of the next answer; None if no answer is scheduled."""

    def on_ws_connected(self, transport: WSTransport) -> None:
        """Register this client. From now on the server refuses other clients."""
        self._transport = transport
        if self._server.state.temper.fatal_close:
            self._has_left = _watch_for_leaving(transport.underlying_transport)
        self._server.client_came(self)

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        """Handle one frame; a message may consist of several frames."""
        kind = frame.msg_type
        if kind is _BINARY and frame.fin:  # nearly every frame is a whole message
            content = frame.get_payload_as_bytes()
            self._waiting.append((session.decode(content), content))
        elif kind is _CLOSE:
            transport.send_close(WSCloseCode.OK)
            transport.disconnect()
            return
        elif kind is _PING:
            transport.send_pong(frame.get_payload_as_bytes())
        elif kind is not _PONG:
            self._fragments.append(frame.get_payload_as_bytes())
            if frame.fin:
                content = b"".join(self._fragments)
                self._waiting.append((session.decode(content), content))
                self._fragments.clear()
        # Requests that arrived together are answered together, with one system call.
        if frame.last_in_buffer and self._timer is None:
            self._answer_waiting()

    def on_ws_disconnected(self, _transport: WSTransport) -> None:
        """Forget the client's requests; the game keeps its state for the next client."""
        self._transport = None
        if self._waiting and self._server.state.temper.fatal_close:
            request = self._waiting[0][0]
            due = None if request is None else request.WhichOneof("request")
            if due != "quit":  # the request quit has no reply
                self._server.close_fatally(due)
        self.forget_waiting()
        self._server.client_left(self)

    def go_on(self) -> None:
        """Schedule the answers to all waiting requests that can be answered now."""
        if self._waiting and self._timer is None:
            self._timer = asyncio.get_running_loop().call_soon(self._answer_waiting)

    def forget_waiting(self) -> None:
        """Drop the requests that are not answered yet."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _answer_waiting(self) -> None:
        self._timer = None
        state = self._server.state
        replies: list[bytes] = []
        turn_ends_s = time.monotonic() + TURN_S
        while self._waiting:
            wait_s = session.wait_s(state, self._waiting[0][0])
            if wait_s == math.inf:
                break
            if wait_s > 0.0 or time.monotonic() > turn_ends_s:
                self._timer = asyncio.get_running_loop().call_later(wait_s, self._answer_waiting)
                break
            reply = session.answer(state, *self._waiting.popleft())
            if state.fate is not None:
                self._send(replies)
                replies.clear()
                if not self._server.meet(state.fate):
                    self._waiting.clear()
                    return
            replies.append(reply)
        self._send(replies)

    def _send(self, replies: list[bytes]) -> None:
        if replies and self._transport is not None:
            # A canned map needs no check: its steps are too short for a client to leave during one.
            if not self._server.state.canned and self._has_left():
                due = sc_pb.Response.FromString(replies[0]).WhichOneof("response")
                self._server.close_fatally(due)
            parts: list[bytes] = []
            for reply in replies:
                parts += _header(len(reply)), reply
            self._transport.underlying_transport.write(b"".join(parts))


class GameServer:
    """The listening socket, the connected client, and the end of the process."""

    def __init__(self, state: State, after_stop: AfterStop) -> None:
        self.state = state
        state.hooks = Hooks(self._meet, self._wake)
        self._after_stop = after_stop
        self._client: Client | None = None
        self._origins: set[str] = set()
        """The accepted values of the header `Origin`, which no web page can send."""
        self._ended = asyncio.Event()

    async def serve(self, host: str, port: int) -> int:
        """Listen until the process must end; returns its exit status."""
        loop = asyncio.get_running_loop()
        self._origins = {f"http://{name}:{port}" for name in (host, "localhost")}

        def on_end_signal(*_: object) -> None:
            self.state.fate, self.state.fate_delay_s = Fate.EXIT, 0.0
            loop.call_soon_threadsafe(self._end)

        for number in (signal.SIGTERM, signal.SIGINT):
            # A signal handler of asyncio would run only after the current step.
            signal.signal(number, on_end_signal)
        if self._after_stop is AfterStop.FREEZE:
            FrozenStops(self.state).watch()
        crowd = self.state.temper.crowd
        if crowd is not None:
            if not crowd.may_start():
                _print("Fatal error encountered! Another game started in the same instant.")
                return 1
            while not self._ended.is_set() and (wait_s := crowd.remaining_s()) > 0.0:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), wait_s)
        try:
            server = await ws_create_server(
                self._admit,
                host,
                port,
                max_frame_size=MAX_FRAME_BYTES,
                enable_auto_pong=False,  # `on_ws_frame` must get every frame
            )
        except OSError as error:
            print(f"Failed to create the socket. {error}", flush=True)
            return 1
        _print(f"Listening on: {host}:{port}\nStartup Phase 3 complete. Ready for commands.")
        if crowd is not None:
            crowd.leave()
        await self._ended.wait()
        server.close()
        self.state.forget_game()
        return 0

    def client_came(self, client: Client) -> None:
        """Remember the client. From now on other clients are refused."""
        self._client = client

    def client_left(self, client: Client) -> None:
        """Forget the client. From now on another client is accepted."""
        if self._client is client:
            self._client = None
            if self.state.temper.crowd is not None:
                self.state.temper.crowd.leave()
            if self.state.meeting is not None:
                self.state.meeting.cancel()
                self.state.meeting = None
            if self.state.match is not None:
                self.state.match.end_step()

    def _wake(self) -> None:
        if self._client is not None:
            self._client.go_on()

    def _meet(self, invitation: Invitation) -> Meeting:
        return begin_meeting(invitation, self._wake)

    def meet(self, fate: Fate) -> bool:
        """End or hang the process, now or after a delay; returns True if a reply can be sent."""
        delay_s, self.state.fate = self.state.fate_delay_s, None
        if delay_s > 0.0:
            asyncio.get_running_loop().call_later(delay_s, self._carry_out, fate)
            return True
        self._carry_out(fate)
        return False

    def _end(self) -> None:
        """End the process; pending requests get no reply."""
        self._ended.set()
        if self._client is not None:
            self._client.forget_waiting()

    def _carry_out(self, fate: Fate) -> None:
        if fate is Fate.EXIT:
            self._end()
            return
        if fate is not Fate.HANG:
            self._crash(fate)
        _hang()

    def _crash(self, fate: Fate) -> None:
        temper = self.state.temper
        as_reported = fate is Fate.SEGFAULT or temper.fatal_close
        if as_reported:
            _print("Error signal: '11'\nBacktrace:")
        if temper.error_box:
            _hang()
        if not temper.fatal_close and sys.platform != "win32":
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # write no core file
        if as_reported:
            os.kill(os.getpid(), signal.SIGSEGV)
        os.abort()

    def close_fatally(self, due: str | None) -> None:
        """Crash, spin or flood the log, as users report for games whose client leaves too early."""
        number = sc_pb.Response.DESCRIPTOR.fields_by_name[due].number if due else 0
        _print(
            "Error terminating: trying to process a request this response pending: "
            f"{number}.\nFatal error encountered!"
        )
        how = self.state.temper.fatal_close
        while how == "spin":
            pass
        while how == "flood":
            _print("DataHandler: unable to parse websocket frame.")
        self._crash(Fate.SEGFAULT)

    def _admit(self, request: WSUpgradeRequest) -> WSListener | WSUpgradeResponseWithListener:
        if request.path.split(b"?")[0] != API_PATH:
            return _refuse(HTTPStatus.NOT_FOUND, b"the API is at /sc2api")
        if not self._origins.issuperset(request.headers.getall("Origin", ())):
            return _refuse(HTTPStatus.FORBIDDEN, b"web pages may not play")
        if self._client is not None:
            return _refuse(HTTPStatus.SERVICE_UNAVAILABLE, b"a client is already connected")
        return Client(self)


def _watch_for_leaving(transport: asyncio.Transport) -> Callable[[], bool]:
    """A function that returns True if the peer has closed its side; always False outside Linux."""
    if sys.platform != "linux":
        return lambda: False
    poll = select.poll()
    poll.register(transport.get_extra_info("socket"), select.POLLRDHUP)
    # TCP_INFO (getsockopt) gives the same answer, but costs ten times as much if many games step.
    return lambda: bool(poll.poll(0))


def _print(text: str) -> None:
    with contextlib.suppress(OSError):  # stdout may be closed, or the disk may be full
        print(text, flush=True)


def _hang() -> NoReturn:
    while True:  # keep the event loop from running again
        time.sleep(3600)


def _header(size: int) -> bytes:
    """The websocket header of a whole binary message from a server."""
    if size < 126:
        return bytes((WHOLE_BINARY, size))
    if size < 1 << 16:
        return _LENGTH_16(WHOLE_BINARY, 126, size)
    return _LENGTH_64(WHOLE_BINARY, 127, size)


def _refuse(status: HTTPStatus, why: bytes) -> WSUpgradeResponseWithListener:
    response = WSUpgradeResponse.create_error_response(status, why)
    return WSUpgradeResponseWithListener(response, None)


def run_server(host: str, port: int, state: State, after_stop: AfterStop) -> int:
    """Run a game process until it ends; returns its exit status."""
    try:
        return asyncio.run(GameServer(state, after_stop).serve(host, port))
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130


_BEAT_S: Final = 0.01


class AfterStop(StrEnum):
    """The ways to treat the loops that were due while a signal had stopped the process."""

    CATCH_UP = "catch-up"
    FREEZE = "freeze"


class FrozenStops:
    """Subtracts from the game's time the time for which a signal had stopped the process."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._alive_s = time.monotonic()

    def watch(self) -> None:
        """Begin to record the time, in the running event loop."""
        if sys.platform != "win32":
            # A signal handler of asyncio would run only after the game has read the clock.
            signal.signal(signal.SIGCONT, self._on_continued)
        self._beat()

    def _beat(self) -> None:
        self._alive_s = time.monotonic()
        asyncio.get_running_loop().call_later(_BEAT_S, self._beat)

    def _on_continued(self, *_: object) -> None:
        now_s = time.monotonic()
        if self._state.clock is not None:
            self._state.clock.skip(now_s - self._alive_s)
        self._alive_s = now_s
