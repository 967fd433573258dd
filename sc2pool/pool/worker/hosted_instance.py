"""An instance in its worker: a player that serves the trainer's requests through a queue pair.

A hosted instance watches its channel and the exit of its game. The instance reports its first fault
and is then over, because this module repairs nothing. After `end` the instance never writes into
its slot.

The instances of a worker share one event loop, so a hook (a method of the user) sees the tasks of
all instances in `asyncio.all_tasks()`. If a hook cancels all these tasks, only the hook's own
episode must end, with an error of its env. So each instance uses an `OwnTask`, which no task of
another instance can cancel.
"""

from __future__ import annotations

import asyncio
import pickle
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

from sc2pool.deadline import Deadline
from sc2pool.errors import Fault, FaultKind, GameFault, PauseError, Phase
from sc2pool.players.operations import OPERATIONS
from sc2pool.pool import messages
from sc2pool.pool.ipc import (
    Channel,
    ChannelClosedError,
    describe,
    for_trainer,
    of_the_user,
    substitute_for,
    text_of,
    trace_of,
)
from sc2pool.pool.queues import memory
from sc2pool.pool.queues.layout import slot_layout
from sc2pool.pool.queues.slots import Slot
from sc2pool.pool.worker.worker_end import Doorbells, WorkerEnd
from sc2pool.processes.spawn import is_shortage
from sc2pool.tasks.player import Player, PlayerSpec
from sc2pool.waiting import WorkerLoop

_MOST_WARNINGS = 20
"""The most warnings that an instance sends. A game may put a different number into each warning."""


_TORCH = (
    "the task's module, or its opponent's, imports torch, which takes some 240 MB in each worker: "
    "import torch only in the functions that use it, or keep the task in a module of its own"
)


class HostedInstance:
    """Serves the trainer until `Close`, the channel's end or a fault, then calls `is_over`.

    The argument of `is_over` is False after a fault, else True. If `raised` is given, an error of
    the user's code is passed to `raised`, and not sent to the trainer. The player is None until
    `Start`. The function `spec` is called once; `owned` is then closed, to release the resources
    that the call needed.
    """

    def __init__(
        self,
        number: int,
        loop: asyncio.AbstractEventLoop,
        doorbells: Doorbells,
        channel: Channel,
        directory: Path,
        *,
        spec: Callable[[], PlayerSpec],
        owned: ExitStack,
        memory_fd: int,
        is_over: Callable[[bool], None],
        raised: Callable[[BaseException], None] | None = None,
    ) -> None:
        self._number = number
        self._loop = loop
        self._doorbells = doorbells
        self._channel = channel
        self.directory = directory
        self._spec = spec
        self._owned = owned
        self._memory_fd = memory_fd
        self._is_over = is_over
        self._raised = raised
        self.player: Player | None = None
        self._pair: WorkerEnd | None = None  # set when the message `UseMemory` arrives
        self._episode: asyncio.Task[None] | None = None
        self._newest_reset: messages.Reset | None = None
        self._launching: asyncio.Task[None] | None = None
        self._pausing: asyncio.Task[None] | None = None
        self._watched_games: Sequence[int] = ()
        self._over = False
        self._warned: set[str] = set()
        """The warnings that were sent."""
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
        loop.add_reader(channel.fileno(), self._on_message)

    @property
    def _its_player(self) -> Player:
        assert self.player is not None, "Start comes first"
        return self.player

    @property
    def _its_pair(self) -> WorkerEnd:
        assert self._pair is not None, "UseMemory comes before any reset or action"
        return self._pair

    def _on_message(self) -> None:
        try:
            for message in self._channel.receive():
                self._handlers[type(message)](message)
        except ChannelClosedError:
            self._finish(closed=True)
        except BaseException as error:
            self.report(error)

    def _start(self, message: messages.Start) -> None:
        import_module("google")  # import this namespace package before the path changes
        sys.path[:] = message.sys_path
        had_torch = "torch" in sys.modules  # another instance's model may have imported torch
        spec = self._spec()
        self._owned.close()
        self.player = player = spec.player()
        player.directory = self.directory
        player.warn = self._warn
        self._channel.send(
            messages.Hello(
                player.observation_space,
                player.action_space,
                dict(player.metadata),
                player.render_mode,
                player.strict,
                player.realtime,
                player.rows,
                player.is_a_pool,
            )
        )
        if player.strict and not had_torch and "torch" in sys.modules:  # no warning for user envs
            self._warn(_TORCH)

    def _use_memory(self, message: messages.UseMemory) -> None:
        player = self._its_player
        layout = slot_layout(player.observation_space, player.action_space, player.rows)
        own = memory.map_memory(self._memory_fd, layout.size_bytes, message.offset_bytes)
        self._pair = WorkerEnd(
            Slot(memoryview(own), layout),
            self._doorbells,
            player,
            send_out_of_band=self._send_out_of_band,
            hold=self._hold,
        )

    def _warn(self, text: str) -> None:
        if text not in self._warned and len(self._warned) < _MOST_WARNINGS:
            self._warned.add(text)
            with suppress(ChannelClosedError):
                self._channel.send(messages.Warned(text))

    def _send_out_of_band(self, sequence: int, payload: bytes) -> None:
        self._channel.send(messages.OutOfBand(sequence, payload))

    def _task(self, work: Coroutine[Any, Any, None]) -> OwnTask:
        return OwnTask(work, self._loop, self._number)

    def _launch(self, message: messages.Launch) -> None:
        self._launching = self._task(self._run_launch(message.timeout_s))

    async def _run_launch(self, timeout_s: float) -> None:
        player = self._its_player
        try:
            games = await player.launch(Deadline.after(timeout_s))
            self._watched_games = player.exited_fds
            for game in self._watched_games:
                self._loop.add_reader(game, self._on_game_exit)
            self._channel.send(messages.Launched(games))
        except BaseException as error:
            self.report(error)

    def _on_game_exit(self) -> None:
        self.report(self._its_player.exit_fault())

    def _reset(self, message: messages.Reset) -> None:
        self._newest_reset = message
        self._its_pair.abandon()
        self._episode = self._task(self._play(message, self._episode))

    async def _play(self, message: messages.Reset, previous: asyncio.Task[None] | None) -> None:
        if previous is not None:
            await asyncio.wait([previous])
        if message is not self._newest_reset:
            return  # the trainer has meanwhile requested another reset
        player, pair = self._its_player, self._its_pair
        player.resume_now()  # the game may be held at the first observation of an old reset
        pair.begin(message.sequence, hold=message.hold)
        try:
            player.attributes = [
                {name: pickle.loads(value) for name, value in of_row.items()}
                for of_row in message.attributes
            ]
            episode = message.episode
            if message.options:
                episode = replace(episode, options=pickle.loads(message.options))
            await player.play(episode, pair)
        except BaseException as raised:
            error = of_the_user(raised)
            if isinstance(error, asyncio.CancelledError) and (pair.abandoned or self._over):
                return  # this class has cancelled the episode, not the user's code
            replay = b""
            if not isinstance(error, GameFault):
                # The user's code failed, and the game still answers: keep the replay.
                with suppress(Exception):  # an error here must not hide the user's error
                    replay = await player.replay()
            self.report(error, replay)

    def _action_out_of_band(self, message: messages.ActionOutOfBand) -> None:
        self._its_pair.deliver(message.sequence, pickle.loads(message.payload))

    def _call(self, message: messages.Call) -> None:
        try:
            arguments = pickle.loads(message.payload)
            target = self._its_player.target(message.row)
            result = OPERATIONS[message.operation](target, *arguments)
            self._channel.send(messages.Answer(message.number, for_trainer(result)))
        except (ChannelClosedError, GameFault):
            raise
        except Exception as error:
            raised = describe(error, f"{message.operation} call")
            self._channel.send(messages.Answer(message.number, None, raised))

    def _pause(self, _: messages.Pause) -> None:
        self._pausing = self._task(self._run_pause())

    async def _run_pause(self) -> None:
        try:
            problem = ""
            try:
                await self._its_player.pause()
            except PauseError as error:
                problem = str(error)
            self._channel.send(messages.Paused(problem))
        except BaseException as error:
            self.report(error)

    def _hold(self) -> bool:
        try:
            self._its_player.hold()
        except PauseError as error:
            self._channel.send(messages.NotHeld(str(error)))
            return False
        return True

    def _resume(self, _: messages.Resume) -> None:
        self._pausing = self._task(self._run_resume())

    async def _run_resume(self) -> None:
        try:
            self._channel.send(messages.Resumed(await self._its_player.resume()))
        except BaseException as error:
            self.report(error)

    def _close(self, _: messages.Close) -> None:
        self._finish(closed=True)

    def report(self, error: BaseException, replay: bytes = b"") -> None:
        """Tell the trainer why this instance is over, and end it."""
        if self._over:
            return
        error = of_the_user(error)
        if self._raised is not None and not isinstance(error, GameFault):
            self._finish(closed=False)
            self._raised(error)
            return
        try:
            with suppress(ChannelClosedError):
                self._channel.send(self._words_for(error, replay))
        finally:  # if memory is too short to send the error, the trainer sees the channel's end
            self._finish(closed=False)

    def _words_for(self, error: BaseException, replay: bytes) -> messages.Faulted | messages.Raised:
        try:
            return self._last_words(error, replay)
        except Exception as broken:  # the user's subclass of `GameFault` or `OSError` may raise
            why = f"it raises {type(of_the_user(broken)).__name__} when it is reported"
            return self._last_words(substitute_for(error, why), replay)

    def _last_words(
        self, error: BaseException, replay: bytes
    ) -> messages.Faulted | messages.Raised:
        phase = self._phase()
        if isinstance(error, OSError) and is_shortage(error) and phase is Phase.LAUNCHING:
            detail = f"the system refuses what the instance needs: {error}"
            error = GameFault(FaultKind.LAUNCH_FAILED, detail, refused=True)
        log_tail = self.player.log_tail() if self.player is not None else ""
        evidence = messages.Evidence(log_tail, trace_of(error), replay)
        if isinstance(error, GameFault):
            detail = error.detail or text_of(error) or f"{type(error).__name__} was raised"
            kind = FaultKind(error.kind)
            fault = Fault(kind, phase, detail, error.refused, error.map_note)
            return messages.Faulted(fault, evidence)
        return describe(error, str(phase), evidence)

    def _phase(self) -> Phase:
        if self._launching is None or not self._launching.done():
            return Phase.LAUNCHING
        return Phase.IDLE if self._pair is None else self._pair.phase

    def _finish(self, *, closed: bool) -> None:
        if not self._over:
            self._over = True
            self._is_over(closed)

    async def end(self) -> None:
        """Close the player and its games, and release the channel and the slot."""
        self._over = True
        self._loop.remove_reader(self._channel.fileno())
        for game in self._watched_games:
            self._loop.remove_reader(game)
        if self._pair is not None:
            self._pair.abandon()
        if self.player is not None:
            self.player.resume_now()  # a stopped game cannot close by itself
        tasks = [self._launching, self._pausing, self._episode]
        running = [task for task in tasks if task is not None and not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        if self._pair is not None:
            self._doorbells.forget(self._pair)
        try:
            if self.player is not None:
                self.player.close()
        finally:  # an env's own `close` may raise
            self._owned.close()
            self._channel.close()


def directory_of(frame: FrameType) -> Path | None:
    """The instance's folder, if this is the frame of a method of `HostedInstance`; else None."""
    if frame.f_code.co_filename != __file__:
        return None
    hosted = frame.f_locals.get("self")
    return hosted.directory if isinstance(hosted, HostedInstance) else None


class OwnTask(asyncio.Task[None]):
    """A task that only the tasks of the same instance, and those of the worker, can cancel.

    `instance` is the number of the task's instance, or None for a task of the worker.
    """

    def __init__(
        self,
        work: Coroutine[Any, Any, None],
        loop: asyncio.AbstractEventLoop,
        instance: int | None = None,
    ) -> None:
        super().__init__(work, loop=loop)
        self._instance = instance
        if isinstance(loop, WorkerLoop):
            loop.count_in(self)

    def cancel(self, msg: Any | None = None) -> bool:
        canceller = None
        with suppress(RuntimeError):  # raised if no loop runs, because the loop is about to close
            canceller = asyncio.current_task()
        ours = isinstance(canceller, OwnTask) and canceller._instance in (None, self._instance)
        return super().cancel(msg) if ours or canceller is None else False


async def until_done(task: OwnTask) -> None:
    """Wait until a task is done, even if this wait is cancelled."""
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    task.result()
