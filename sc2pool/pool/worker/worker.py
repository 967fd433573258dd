"""A worker: one lean process that runs one player behind one queue pair.

Its one event loop waits for three things together: the trainer (doorbell and channel), the
game's socket, the end of the game. Rules: it imports nothing heavy that the user's own pickle
does not; it ends with the trainer, and all that it has started with it (`__main__`); after the
first fault it reports, lets go of its game, and exits: there is no repair in here.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sc2pool.deadline import Deadline
from sc2pool.errors import Fault, GameFault, PauseError, Phase
from sc2pool.pool.ipc import memory, messages
from sc2pool.pool.ipc.channel import Channel, ChannelClosedError
from sc2pool.pool.ipc.doorbell import Doorbell
from sc2pool.pool.ipc.layout import slot_layout
from sc2pool.pool.ipc.pickling import for_trainer
from sc2pool.pool.ipc.remote_errors import describe, trace_of
from sc2pool.pool.ipc.slot import Slot
from sc2pool.pool.worker.live_view import LiveView
from sc2pool.pool.worker.worker_end import WorkerEnd
from sc2pool.tasks.player import Player
from sc2pool.tasks.players.operations import OPERATIONS
from sc2pool.waiting import WorkerLoop

_OWN_TASKS = 2
"""Our own tasks: `Worker.serve` and the episode. A third is the user's, and needs turns."""


class Worker:
    """Serves the trainer until it says so, is gone, or the game fails."""

    def __init__(
        self,
        loop: WorkerLoop,
        channel: Channel,
        request_bell: Doorbell,
        reply_bell: Doorbell,
        *,
        spec_fd: int,
        memory_fd: int,
    ) -> None:
        self._loop = loop
        self._channel = channel
        self._spec_fd = spec_fd
        self._memory_fd = memory_fd
        self._request_bell = request_bell
        self._reply_bell = reply_bell
        self._player: Player | None = None  # until Start
        self._pair: WorkerEnd | None = None  # until UseMemory
        self._episode: asyncio.Task[None] | None = None
        self._newest_reset: messages.Reset | None = None
        self._launching: asyncio.Task[None] | None = None
        self._pausing: asyncio.Task[None] | None = None
        self._over: asyncio.Future[None]
        self._handlers: dict[type, Callable[[Any], None]] = {
            messages.Start: self._start,
            messages.UseMemory: self._use_memory,
            messages.Launch: self._launch,
            messages.Reset: self._reset,
            messages.ActionOutOfBand: self._action_out_of_band,
            messages.Call: self._call,
            messages.Pause: self._pause,
            messages.Resume: self._resume,
            messages.Close: self._close,
        }

    @property
    def player(self) -> Player:
        assert self._player is not None, "Start comes first"
        return self._player

    @property
    def pair(self) -> WorkerEnd:
        assert self._pair is not None, "UseMemory comes before any reset or action"
        return self._pair

    async def serve(self) -> None:
        """Handle messages and rings until the end."""
        self._over = self._loop.create_future()
        self._loop.add_reader(self._channel.fileno(), self._on_message)
        await self._over

    def _on_message(self) -> None:
        try:
            for message in self._channel.receive():
                self._handlers[type(message)](message)
        except ChannelClosedError:
            self._finish()
        except BaseException as error:
            self._report(error)

    def _start(self, message: messages.Start) -> None:
        sys.path[:] = message.sys_path
        spec = pickle.loads(memory.read(self._spec_fd, message.spec_bytes))
        os.close(self._spec_fd)
        self._player = player = spec.player()
        self._channel.send(
            messages.Hello(
                player.observation_space,
                player.action_space,
                dict(player.metadata),
                player.render_mode,
                player.strict,
                player.realtime,
            )
        )

    def _use_memory(self, message: messages.UseMemory) -> None:
        layout = slot_layout(self.player.observation_space, self.player.action_space)
        row = memory.map_memory(self._memory_fd, layout.size_bytes, message.offset_bytes)
        slot = Slot(memoryview(row), layout)
        self._pair = WorkerEnd(
            slot,
            self._request_bell,
            self._reply_bell,
            self.player,
            send_out_of_band=self._send_out_of_band,
            hold=self._hold,
        )

    def _send_out_of_band(self, sequence: int, payload: bytes) -> None:
        self._channel.send(messages.OutOfBand(sequence, payload))

    def _launch(self, message: messages.Launch) -> None:
        self._launching = asyncio.ensure_future(self._run_launch(message.timeout_s))

    async def _run_launch(self, timeout_s: float) -> None:
        try:
            facts = await self.player.launch(Deadline.after(timeout_s))
            exited_fd = self.player.exited_fd
            if exited_fd is not None:
                self._loop.add_reader(exited_fd, self._on_game_exit)
            self._channel.send(messages.Launched(facts))
        except BaseException as error:
            self._report(error)

    def _on_game_exit(self) -> None:
        self._report(self.player.exit_fault())

    def _reset(self, message: messages.Reset) -> None:
        self._newest_reset = message
        self.pair.abandon()
        self._episode = asyncio.ensure_future(self._play(message, self._episode))

    async def _play(self, message: messages.Reset, previous: asyncio.Task[None] | None) -> None:
        if previous is not None:
            await asyncio.wait([previous])
        if message is not self._newest_reset:
            return  # another episode was wanted before this one could begin
        self.player.resume_now()  # it may be held at a first observation that is no longer wanted
        self.pair.begin(message.sequence, hold=message.hold)
        self.player.attributes = pickle.loads(message.attributes) if message.attributes else {}
        try:
            await self.player.play(message.episode, self.pair)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and (
                self.pair.abandoned or self._over.done()
            ):
                return  # cancelled by this class, not by the user's code
            replay = b""
            if not isinstance(error, GameFault):
                # Code of the user's failed on a game that still answers: keep what it played.
                with suppress(Exception):  # its own error is the one that counts
                    replay = await self.player.replay()
            self._report(error, replay)

    def _action_out_of_band(self, message: messages.ActionOutOfBand) -> None:
        self.pair.deliver(message.sequence, pickle.loads(message.payload))

    def _call(self, message: messages.Call) -> None:
        try:
            arguments = pickle.loads(message.payload)
            result = OPERATIONS[message.operation](self.player.target(), *arguments)
            self._channel.send(messages.Answer(message.number, for_trainer(result)))
        except (ChannelClosedError, GameFault):
            raise
        except Exception as error:
            raised = describe(error, f"{message.operation} call")
            self._channel.send(messages.Answer(message.number, None, raised))

    def _pause(self, _: messages.Pause) -> None:
        self._pausing = asyncio.ensure_future(self._run_pause())

    async def _run_pause(self) -> None:
        try:
            problem = ""
            try:
                await self.player.pause()
            except PauseError as error:
                problem = str(error)
            self._channel.send(messages.Paused(problem))
        except BaseException as error:
            self._report(error)

    def _hold(self) -> bool:
        try:
            self.player.hold()
        except PauseError as error:
            self._channel.send(messages.NotHeld(str(error)))
            return False
        return True

    def _resume(self, _: messages.Resume) -> None:
        self._pausing = asyncio.ensure_future(self._run_resume())

    async def _run_resume(self) -> None:
        try:
            self._channel.send(messages.Resumed(await self.player.resume()))
        except BaseException as error:
            self._report(error)

    def _close(self, _: messages.Close) -> None:
        self._finish()

    def _report(self, error: BaseException, replay: bytes = b"") -> None:
        """Tell the trainer why this instance is over, and end it."""
        if self._over.done():
            return
        message: messages.Faulted | messages.Raised
        phase = self._phase()
        log_tail = self._player.log_tail() if self._player is not None else ""
        evidence = messages.Evidence(log_tail, trace_of(error), replay)
        if isinstance(error, GameFault):
            message = messages.Faulted(Fault(error.kind, phase, error.detail), evidence)
        else:
            message = describe(error, str(phase), evidence)
        with suppress(ChannelClosedError):
            self._channel.send(message)
        self._finish()

    def _phase(self) -> Phase:
        if self._launching is None or not self._launching.done():
            return Phase.LAUNCHING
        return Phase.IDLE if self._pair is None else self._pair.phase()

    def _finish(self) -> None:
        self._loop.own_tasks = 0  # no other task may keep it from ending `serve`
        if not self._over.done():
            self._over.set_result(None)

    def close(self) -> None:
        """Close the player, if there is one."""
        if self._player is not None:
            self._player.resume_now()  # so that it can close its game in its own way
            self._player.close()


def main(arguments: list[str]) -> None:
    """Run one worker; `arguments` as in `__main__`, without the first."""
    channel_fd, _, spec_fd, memory_fd, request_fd, reply_fd = map(int, arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel(socket.socket(fileno=channel_fd))
    request_bell = Doorbell(listening=request_fd)
    reply_bell = Doorbell(ringing=reply_fd)
    loop = WorkerLoop(_OWN_TASKS)
    worker = Worker(loop, channel, request_bell, reply_bell, spec_fd=spec_fd, memory_fd=memory_fd)
    # The trainer made TMPDIR the instance's own.
    LiveView(Path(os.environ["TMPDIR"]), lambda: worker._player).begin(loop)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(worker.serve())
    worker.close()
    # Nothing of the user's may keep the process alive now: not a thread, not an atexit handler.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
