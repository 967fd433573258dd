"""The websocket to one game, and the API of a launched game: requests out, replies back.

    Burst:  number → serialize → one write ┄┄► game.
            Future ◄ check ◄ parse ◄ frame ◄┄┄.

Rules:
* Replies come in the order of the requests; each reply is checked as it arrives.
* Anything except an expected reply breaks the connection for good: a text frame, a reply that
  cannot be decoded, a surplus reply, or the end of the connection. Every use of a broken
  connection raises the first fault. So a late reply never counts as the answer to a later request.
* A burst (several requests in one write) that is answered in time costs one task switch and no
  timer of its own. If the event loop may be blocked (`DirectReader`), no task switch is needed.
* Compiled code (`_fast`) sends a step and reads its usual replies. All other replies take the path
  in the diagram.

`GameAPI` joins the connection with the game's process and port.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import socket
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import picows
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from s2clientprotocol import sc2api_pb2 as sc_pb

from sc2pool.deadline import Deadline
from sc2pool.errors import FaultKind, GameFault
from sc2pool.foreign import printable
from sc2pool.game.hang_detection import STALL_S
from sc2pool.game.program.lease import HOST, PortLease
from sc2pool.game.program.process import GameProcess
from sc2pool.game.wire import DirectReader, NotReadyError, frames, unread_bytes
from sc2pool.protocol import compiled, replies
from sc2pool.protocol.observed import Head, SparseReply
from sc2pool.protocol.replies import Status
from sc2pool.protocol.requests import step_burst

if TYPE_CHECKING:
    from sc2pool._fast import Plain

MAX_FRAME_BYTES: Final = 1 << 28
"""Size limit of a frame in bytes. A replay, or the data of a map, is one frame."""
_READ_BUFFER_BYTES: Final = 1 << 17
"""Size of the read buffer in bytes. A usual observation fits, so that one call reads all of it."""
_GONE: Final = "the game closed the connection"
_ID_MASK: Final = (1 << 31) - 1
_STEP: Final = ("step", "observation")
_ACTION_AND_STEP: Final = ("action", *_STEP)

# Every failure raises an exception, so picows should not log it as well.
_quiet = logging.getLogger("sc2pool.websocket")
_quiet.setLevel(logging.CRITICAL + 1)

_BINARY = picows.WSMsgType.BINARY
_CONTINUATION = picows.WSMsgType.CONTINUATION
_CONTROL = frozenset({picows.WSMsgType.PING, picows.WSMsgType.PONG})

Extend = Callable[[], Deadline | None]
"""A function called at a burst's deadline; returns a later deadline, or None for a hung game."""


class Connection(picows.WSListener):
    """An open connection; used by one asyncio task at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self.warn: Callable[[str], None] = lambda _: None
        """A function for error texts that the game adds to the reply to a successful request."""
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._transport: picows.WSTransport | None = None
        self._reader: DirectReader | None = None
        self._fault: GameFault | None = None
        self._next_id = 1
        self._fragments: list[bytes] = []
        # The fields below belong to the running burst.
        self._expected: list[tuple[int, str]] = []
        self._replies: list[Any] = []
        self._answered: asyncio.Future[None] | None = None
        self._deadline_s = 0.0
        self._extend: Extend | None = None
        self._sparse = False
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    async def open(cls, port: int, deadline: Deadline, sock: socket.socket) -> Connection:
        """Opens the websocket of the game on `port`, over `sock`; the connection then owns `sock`.

        Raises NotReadyError if no websocket answers yet, GameFault DEADLINE if none answers in
        time.
        """
        connection = cls(sock)
        timeout_s = deadline.remaining_s()
        try:
            await picows.ws_connect(
                lambda: connection,
                f"ws://{HOST}:{port}/sc2api",
                socket_factory=lambda _url: sock,
                logger_name=_quiet,
                max_frame_size=MAX_FRAME_BYTES,
                read_buffer_init_size=_READ_BUFFER_BYTES,
                websocket_handshake_timeout=None if timeout_s == math.inf else timeout_s,
            )
        except TimeoutError:
            connection.abort()
            raise GameFault(
                FaultKind.DEADLINE, f"no websocket handshake on port {port} before the deadline"
            ) from None
        except (picows.WSError, OSError) as error:
            connection.abort()
            answer, final = "", False
            if isinstance(error, picows.WSHandshakeError):
                head = error.raw_header or b""
                answer = printable(head.decode(errors="replace").partition("\r\n")[0])
                final = not head.upper().startswith(b"HTTP/")
            why = f"no websocket on port {port}: {error}"
            raise NotReadyError(why, answer, final=final) from error
        except asyncio.CancelledError:
            # The event loop still reads this socket, so only shut it down; the loop will close it.
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            raise
        if connection._transport is None:
            connection.abort()
            raise NotReadyError(f"port {port} closed the connection during the handshake")
        return connection

    async def burst(
        self,
        requests: Sequence[sc_pb.Request],
        deadline: Deadline,
        extend: Extend | None = None,
        sparse: bool = False,
    ) -> list[Any]:
        """Sends the requests in one write, each with an id; returns their replies in this order.

        Each reply is a `sc2api_pb2.Response`, a `SparseReply` or a `_fast.Plain`, and has passed
        `replies.check`. The caller checks for refusals. The deadline is for the last reply. If
        `sparse`, an observation is not decoded in full, but read as a `Head` or by compiled code.
        """
        reader = self._reader
        direct = reader is not None and reader.take_over()
        if direct:
            self._read_directly()  # an unexpected message must not count as an answer
        elif reader is not None:
            reader.give_back()
        if self._fault is not None:
            raise self._fault
        assert reader is not None
        kinds = [replies.expected_kind(request) for request in requests]
        self._expect(kinds, deadline, extend, sparse=sparse)
        for request, (request_id, _) in zip(requests, self._expected, strict=True):
            request.id = request_id
        try:
            reader.send(frames(requests))
        except OSError as error:
            self._lose(error)
        return await self._answers(direct=direct)

    async def step(
        self,
        actions: Sequence[sc_pb.Action],
        loops: int,
        deadline: Deadline,
        extend: Extend | None = None,
    ) -> Plain | list[Any]:
        """Sends one step as a sparse `burst`; returns a `Plain` if all replies are usual."""
        reader = self._reader
        if reader is None or self._fault is not None or not reader.has_compiled:
            return await self.burst(step_burst(actions, loops), deadline, extend, sparse=True)
        first_id = self._next_id
        serialized = list(map(sc_pb.Action.SerializeToString, actions))
        try:
            outcome = await reader.step(first_id, serialized, loops, deadline.instant_s)
        except asyncio.CancelledError:
            # Break the connection, because late replies would count as answers to the next burst.
            self.fail(GameFault(FaultKind.CONNECTION_LOST, "a request was abandoned"))
            raise
        kinds = _ACTION_AND_STEP if actions else _STEP
        if not isinstance(outcome, tuple):
            self._next_id = (first_id + len(kinds)) & _ID_MASK
            return outcome
        sent, data, received = outcome
        if not sent:
            self._go_on_with(received)
            return await self.burst(step_burst(actions, loops), deadline, extend, sparse=True)
        self._expect(kinds, deadline, extend, sparse=True)
        reader.send_rest(data[sent:])
        self._go_on_with(received)
        return await self._answers(direct=True)

    def fail(self, fault: GameFault) -> None:
        """Breaks the connection, and wakes the waiting call. Only the first fault is kept."""
        if self._fault is not None:
            return
        self._fault = fault
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(fault)

    def unread_bytes(self) -> int | None:
        """The number of sent bytes that the game has not read; None if unknown."""
        return unread_bytes(self._sock)

    def abort(self) -> None:
        """Closes the descriptor without a message to the game; may be called again."""
        self.fail(GameFault(FaultKind.CONNECTION_LOST, "the connection was closed by this side"))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            with contextlib.suppress(RuntimeError):  # raised if the event loop is closed
                self._disconnected.cancel()
            try:
                self._transport.disconnect(graceful=False)
            except RuntimeError:  # raised if the loop is closed, or now runs in another thread
                with contextlib.suppress(RuntimeError):
                    transport: Any = self._transport.underlying_transport
                    transport._force_close(None)  # unlike `abort`, any thread may call this
            self._transport = None
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._sock.close()

    # ---- called by picows -------------------------------------------------------------------

    def on_ws_connected(self, transport: picows.WSTransport) -> None:
        """Handle the end of the handshake; called by picows."""
        self._transport = transport
        # asyncio complains if no task reads the cause of a disconnect, so this task reads it.
        # The loop does not create the task, so that `WorkerLoop.tasks` does not count it.
        self._disconnected = asyncio.Task(transport.wait_disconnected(), loop=self._loop)
        self._disconnected.add_done_callback(lambda task: task.cancelled() or task.exception())
        self._reader = DirectReader(self._sock, transport.underlying_transport)

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        """Handle a frame: the next reply, or a reason to break the connection; called by picows."""
        del transport
        if self._reader is not None:
            self._reader.between_messages = frame.fin and frame.tail_size == 0
        if self._fault is not None:
            return
        try:
            if frame.msg_type == _BINARY and frame.fin and not self._fragments:
                self._take(frame.get_payload_as_bytes())
            else:
                self._take_other(frame)
        except GameFault as fault:
            self.fail(fault)

    def on_ws_disconnected(self, transport: picows.WSTransport) -> None:
        """Handle a connection that the game has closed; called by picows."""
        del transport
        self.fail(GameFault(FaultKind.CONNECTION_LOST, _GONE))

    # ---- private methods --------------------------------------------------------------------

    def _expect(
        self, kinds: Sequence[str], deadline: Deadline, extend: Extend | None, *, sparse: bool
    ) -> None:
        for kind in kinds:
            self._expected.append((self._next_id, kind))
            self._next_id = (self._next_id + 1) & _ID_MASK
        self._deadline_s = deadline.instant_s
        self._extend = extend
        self._sparse = sparse

    async def _answers(self, *, direct: bool) -> list[Any]:
        if not (direct and self._answered_directly()):
            await self._answered_in_loop()
        if self._fault is not None and self._expected:  # raise only if a reply is missing
            raise self._fault
        answered, self._replies = self._replies, []
        return answered

    async def _answered_in_loop(self) -> None:
        """Run the event loop until the last reply, the deadline, or the end of the connection."""
        assert self._reader is not None
        if self._fault is not None:
            return
        self._answered = self._loop.create_future()
        self._reader.give_back()
        self._set_timer()
        try:
            await self._answered
        except GameFault:
            pass  # `_answers` raises the fault, which is in `_fault`
        except asyncio.CancelledError:
            # Break the connection, because late replies would count as answers to the next burst.
            self.fail(GameFault(FaultKind.CONNECTION_LOST, "a request was abandoned"))
            raise

    def _answered_directly(self) -> bool:
        """Block until all replies have come; False if the event loop has to run first."""
        assert self._reader is not None
        while self._expected and self._fault is None:
            timeout_s = self._deadline_s - time.monotonic()
            if not self._reader.wait(-1 if timeout_s == math.inf else max(0.0, timeout_s)):
                return False
            self._read_directly()
        return True

    def _read_directly(self) -> None:
        assert self._reader is not None
        try:
            if not self._reader.read():
                self.fail(GameFault(FaultKind.CONNECTION_LOST, _GONE))
        except OSError as error:
            self._lose(error)

    def _go_on_with(self, received: bytes) -> None:
        """Continue in pure Python with the bytes that the compiled path has read."""
        assert self._reader is not None
        if self._reader.feed(received):
            self._read_directly()  # more bytes, or the end of the connection, may have come
        else:
            self.fail(GameFault(FaultKind.CONNECTION_LOST, _GONE))

    def _lose(self, error: OSError) -> None:
        self.fail(GameFault(FaultKind.CONNECTION_LOST, f"the connection broke: {error}"))

    def _take(self, payload: bytes) -> None:
        got = len(self._replies)
        if got >= len(self._expected):
            raise GameFault(FaultKind.BAD_REPLY, "a reply came without a request")
        request_id, kind = self._expected[got]
        self._replies.append(self._read(payload, request_id, kind))
        if got + 1 == len(self._expected):
            self._expected.clear()
            if self._answered is not None and not self._answered.done():
                self._answered.set_result(None)

    def _read(self, payload: bytes, request_id: int, kind: str) -> Any:
        """The reply, decoded and checked."""
        sparse = self._sparse and kind == "observation"
        if sparse and compiled.fast is not None:
            plain = compiled.fast.observation(payload, request_id)
            if plain is not None:
                return plain
        try:
            reply = (Head if sparse else sc_pb.Response).FromString(payload)
        except DecodeError as error:
            raise GameFault(
                FaultKind.BAD_REPLY, f"the reply to {kind} cannot be decoded: {error}"
            ) from None
        replies.check(reply, request_id, kind)
        if reply.error and not replies.is_refusal(reply):
            self.warn(f"the game says beside its reply to {kind}: {'; '.join(reply.error)}")
            reply.ClearField("error")  # a task or a bot would take an error text for a refusal
        return SparseReply(payload, reply) if sparse else reply

    def _take_other(self, frame: Any) -> None:
        """Handle a frame with a part of a reply, a control frame or an unexpected frame."""
        kind = frame.msg_type
        if kind in _CONTROL:
            return
        if kind == picows.WSMsgType.CLOSE:
            raise GameFault(FaultKind.CONNECTION_LOST, "the game closed the websocket")
        if kind != (_CONTINUATION if self._fragments else _BINARY):
            raise GameFault(FaultKind.BAD_REPLY, f"a {kind.name} frame came, expected BINARY")
        self._fragments.append(frame.get_payload_as_bytes())
        if frame.fin:
            payload = b"".join(self._fragments)
            self._fragments = []
            self._take(payload)

    def _set_timer(self) -> None:
        # The timer of an earlier burst stays armed, so most bursts touch no timer.
        # When this timer fires, it is armed again for the deadline of the running burst.
        if self._timer is not None and self._timer.when() > self._deadline_s:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._arm()

    def _arm(self) -> None:
        if self._deadline_s != math.inf:
            self._timer = self._loop.call_at(self._deadline_s, self._on_timer)

    def _on_timer(self) -> None:
        assert self._timer is not None
        now_s = time.monotonic()
        late_s = now_s - self._timer.when()
        self._timer = None
        if self._answered is None or self._answered.done():
            return
        if late_s > STALL_S:
            # This process was stopped (Ctrl-Z, a closed lid): add the stop's time to the deadline.
            self._deadline_s += late_s
        if now_s >= self._deadline_s:
            later = self._extend() if self._extend is not None else None
            if later is None:
                waiting_for = self._expected[len(self._replies)][1]
                self.fail(
                    GameFault(FaultKind.DEADLINE, f"no reply to {waiting_for} before the deadline")
                )
                return
            self._deadline_s = later.instant_s
        self._arm()


_EXIT_GRACE_S: Final = 1.0
"""Time limit, in seconds, to notice the exit of a process that has closed its socket."""
_POLL_S: Final = 0.005


class GameAPI:
    """A game's process, its port and its connection; used by one asyncio task at a time."""

    def __init__(
        self,
        process: GameProcess,
        lease: PortLease,
        connection: Connection,
        listener_pid: int | None,
    ) -> None:
        self.process = process
        self.pid = process.pid if listener_pid is None else listener_pid
        """The pid of the process that listens on the port, or (if unknown) of the started
        process."""
        self.port = lease.port
        self.listener_proven = listener_pid is not None
        """False if the system does not reveal which process listens."""
        self.status = Status.UNKNOWN
        """The status in the newest reply; every reply has one."""
        self._lease = lease
        self.connection = connection
        self._closed = False

    async def ask(
        self, request: sc_pb.Request, deadline: Deadline, extend: Extend | None = None
    ) -> sc_pb.Response:
        """Sends a request that must succeed; raises the errors of `burst` and `replies.require`."""
        reply: sc_pb.Response
        (reply,) = await self.burst([request], deadline, extend)
        replies.require(reply, replies.expected_kind(request))
        return reply

    async def burst(
        self,
        requests: Sequence[sc_pb.Request],
        deadline: Deadline,
        extend: Extend | None = None,
        *,
        sparse: bool = False,
    ) -> list[Any]:
        """Like `Connection.burst`; raises GAME_EXITED if the game's end broke the connection."""
        try:
            answered = await self.connection.burst(requests, deadline, extend, sparse)
        except GameFault as fault:
            await self._raise_if_exited(fault)
            raise
        self.status = Status(answered[-1].status)
        return answered

    async def step(
        self,
        actions: Sequence[sc_pb.Action],
        loops: int,
        deadline: Deadline,
        extend: Extend | None = None,
    ) -> Plain | list[Any]:
        """Like `Connection.step`; raises GAME_EXITED if the game's end broke the connection."""
        try:
            answered = await self.connection.step(actions, loops, deadline, extend)
        except GameFault as fault:
            await self._raise_if_exited(fault)
            raise
        # The compiled path accepts only replies with the status `IN_GAME`.
        self.status = Status(answered[-1].status) if isinstance(answered, list) else Status.IN_GAME
        return answered

    def close(self) -> None:
        """Kills the game and releases everything, in bounded time; may be called again."""
        if self._closed:
            return
        self._closed = True
        # Kill the process first: if its socket closed before a reply, the real game would fail.
        # It would then write a core file, spin, or flood its log.
        self.process.kill()
        self.connection.abort()
        self.process.close()
        self._lease.release()

    async def _raise_if_exited(self, fault: GameFault) -> None:
        lost = fault.kind is FaultKind.CONNECTION_LOST and not self._closed
        if lost and await self._ends_soon():
            raise self.process.exit_fault() from fault

    async def _ends_soon(self) -> bool:
        grace = Deadline.after(_EXIT_GRACE_S)
        while self.process.exit_code() is None:
            if grace.expired():
                return False
            await asyncio.sleep(_POLL_S)
        return True
