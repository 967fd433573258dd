"""An instance as the trainer holds it: one worker process, its game, its queue pair, its state.

It sends, kills and remembers; what to do next is the supervisor's. Rules: the state moves only
through the table in `states`; whatever ends an instance, `end()` leaves no process, descriptor,
shared memory or temp folder of it.
"""

from __future__ import annotations

import os
import pickle
import shutil
import socket
import sys
import time
from collections import deque
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sc2pool.config import RecyclePolicy
from sc2pool.deadline import NEVER, Deadline
from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.pool.instances.process import WorkerProcess
from sc2pool.pool.instances.states import LIVE, Event, State, advance
from sc2pool.pool.ipc import messages
from sc2pool.pool.ipc.channel import Channel, ChannelClosedError
from sc2pool.pool.ipc.doorbell import Doorbell
from sc2pool.pool.ipc.layout import slot_layout
from sc2pool.pool.ipc.memory import claim, create, map_memory
from sc2pool.pool.ipc.pickling import for_worker
from sc2pool.pool.ipc.slot import OUT_OF_BAND, RECYCLE_DUE, Slot
from sc2pool.pool.ipc.trainer_end import TrainerEnd
from sc2pool.processes.spawn import spawner
from sc2pool.tasks.player import Episode, GameFacts

if TYPE_CHECKING:
    from sc2pool.pool.instances.seats import Seat

_SEND_TIMEOUT_S = 5.0
_ACTIONS_KEPT = 16

_PHASES = {
    State.NEW: Phase.LAUNCHING,
    State.LAUNCHING: Phase.LAUNCHING,
    State.RESETTING: Phase.RESETTING,
    State.STEPPING: Phase.STEPPING,
}


@dataclass(frozen=True)
class Progress:
    """How far an instance has come.

    Attributes:
        steps: that it was sent, in all its episodes.
        episode_steps: that it was sent since its newest reset.
        episode_return: sum of the rewards that this episode has brought.
    """

    steps: int = 0
    episode_steps: int = 0
    episode_return: float = 0.0


class Instance:
    """One worker and, where its player has one, its game.

    Attributes:
        number: counts the instances of a pool, from 0.
        seat: where it sits.
        state: see `states`.
        deadline: until when what it does now must be done.
        hello: what the worker said of its player, once it has.
        facts: of the game, once it runs.
        episode: the episode it plays or prepares.
        rung: how that episode was reached.
        asked_at_s: when what is awaited now was asked for.
        episodes: how many it has ended.
        soft_limit: which soft limit it has reached; empty for none.
        last_actions: the newest, the last one last.
        pauses: how often it was paused.
        paused_at_s: when it was paused last.
        at_rest: what the worker said of the newest pause; None until it has.
        to_be_held: the worker is to stop its game at the first observation.
        held: it has, and the game has not gone on yet.
        was_spare: the newest reset found it on a spare's seat.
    """

    seat: Seat

    def __init__(self, number: int, spec: bytes, directory: Path) -> None:
        self.number = number
        self.made_at_s = time.monotonic()
        self.episodes = 0
        self.soft_limit = ""
        self.last_actions: deque[Any] = deque(maxlen=_ACTIONS_KEPT)
        self.pauses = 0
        self.paused_at_s = 0.0
        self.at_rest: messages.Paused | None = None
        self.to_be_held = False
        self.held = False
        self.was_spare = False
        self._was_playing = False
        self._going_on = False
        self.launch_not_before_s = 0.0
        self.state = State.NEW
        self.deadline = NEVER
        self.hello: messages.Hello | None = None
        self.facts: GameFacts | None = None
        self.episode: Episode | None = None
        self.rung = ""
        self.asked_at_s = 0.0
        self.end: TrainerEnd
        self._resets = 0
        self._reset_sequence = 0
        self._aside: messages.OutOfBand | None = None
        with ExitStack() as owned:  # gives back what there is, wherever Ctrl-C strikes
            owned.callback(shutil.rmtree, directory, ignore_errors=True)
            ours, theirs = socket.socketpair()
            self.channel = Channel(ours, _SEND_TIMEOUT_S)
            owned.callback(self.channel.close)
            lifeline_read, lifeline_write = os.pipe()
            owned.callback(os.close, lifeline_write)
            self._memory_fd = create()
            owned.callback(os.close, self._memory_fd)
            # Not on the channel: it may be large, and the worker does not read before it is up.
            os.pwrite(self._memory_fd, spec, 0)
            self._request_bell = Doorbell.create()
            owned.callback(self._request_bell.close)
            self.reply_bell = Doorbell.create()
            owned.callback(self.reply_bell.close)
            try:
                self._process = WorkerProcess(
                    spawner().spawn(
                        (
                            theirs.fileno(),
                            lifeline_read,
                            self._memory_fd,
                            self._request_bell.listening,
                            self.reply_bell.ringing,
                        ),
                        directory,
                    )
                )
            finally:
                theirs.close()
                os.close(lifeline_read)
            owned.callback(self._process.end)
            self._send(messages.Start(list(sys.path), len(spec)))
            self._owned = owned.pop_all()

    @property
    def worker_pid(self) -> int:
        return self._process.pid

    @property
    def live(self) -> bool:
        return self.state in LIVE

    def on(self, event: Event) -> None:
        """Take note of what happened."""
        self.state = advance(self.state, event)

    def welcome(self, hello: messages.Hello) -> None:
        """The worker named its spaces: give it memory for them."""
        self.hello = hello
        layout = slot_layout(hello.observation_space, hello.action_space)
        self.deadline = NEVER
        claim(self._memory_fd, layout.size_bytes)
        slot = Slot(map_memory(self._memory_fd, layout.size_bytes), layout)
        self.end = TrainerEnd(slot, self._request_bell)
        self._send(messages.UseMemory(layout.size_bytes))

    def launch(self, timeout_s: float, grace_s: float) -> None:
        """Start the game; the worker gets `timeout_s`, and we give up on it a little later."""
        self.on(Event.LAUNCH)
        self.asked_at_s = time.monotonic()
        self.deadline = Deadline.after(timeout_s + grace_s)
        self._send(messages.Launch(timeout_s))

    def reset(
        self,
        episode: Episode,
        attributes: dict[str, Any],
        deadline: Deadline,
        *,
        hold: bool = False,
    ) -> None:
        """Play this episode; the worker drops what it plays now.

        Args:
            hold: stop the game at its first observation, where it would not wait by itself.
        """
        self.to_be_held = hold and self.hello is not None and self.hello.realtime
        self.on(Event.TICKET)
        self.episode = episode
        self.deadline = deadline
        self.asked_at_s = time.monotonic()
        self._reset_sequence = self.end.next_sequence()
        self._resets += 1
        self._send(
            messages.Reset(
                self._reset_sequence,
                episode,
                for_worker(attributes) if attributes else b"",  # mostly there are none
                self.to_be_held,
            )
        )

    def plain_reply(self) -> None:
        """The step is answered, and nothing else has happened."""
        self.state = advance(self.state, Event.REPLY)
        self.deadline = NEVER

    def _begin_step(self, action: Any, now_s: float, deadline: Deadline) -> None:
        self.state = advance(self.state, Event.STEP)
        self.last_actions.append(action)
        self.asked_at_s = now_s
        self.deadline = deadline

    def step_checked(self, action: Any, now_s: float, deadline: Deadline) -> None:
        """Send an action that is known to fit an array action space."""
        self._begin_step(action, now_s, deadline)
        self.end.send_checked(action)

    def step(self, action: Any, now_s: float, deadline: Deadline) -> None:
        """Send any action, through the slot where it fits, else aside."""
        self._begin_step(action, now_s, deadline)
        if not self.end.try_send(action):
            self._send(messages.ActionOutOfBand(self.end.next_sequence(), for_worker(action)))

    def pause(self, deadline: Deadline) -> None:
        """Have the worker stop the game."""
        self._note_pause()
        self.at_rest = None
        self.deadline = deadline
        self._send(messages.Pause())

    def was_held(self) -> None:
        """The worker has stopped the game at its first observation."""
        self._note_pause()
        self.at_rest = messages.Paused("")
        self.held = True

    def _note_pause(self) -> None:
        self._was_playing = self.state is State.PLAYING
        self.on(Event.PAUSE)
        self.pauses += 1
        self.paused_at_s = time.monotonic()
        self._going_on = False

    def go_on(self, deadline: Deadline) -> None:
        """Have the worker let a paused game go on; may be called again until it has."""
        if not self._going_on:
            self._going_on = True
            self.at_rest = None
            self.deadline = deadline
            self._send(messages.Resume())

    def went_on(self) -> None:
        """The game is no longer stopped."""
        self.deadline = NEVER
        self.held = False
        self.on(Event.GOES_ON_PLAYING if self._was_playing else Event.GOES_ON_READY)

    def call(self, number: int, operation: str, payload: bytes) -> None:
        self._send(messages.Call(number, operation, payload))

    def ask_to_close(self) -> None:
        self._send(messages.Close())

    def _send(self, message: Any) -> None:
        # A worker that is gone, or does not read, shows by its end of file or its deadline.
        with suppress(ChannelClosedError):
            self.channel.send(message)

    def take_aside(self, message: messages.OutOfBand) -> None:
        self._aside = message

    def replied(self) -> bool:
        """Whether the whole answer to the newest request is there."""
        return self.reply_flags() is not None

    def reply_flags(self) -> int | None:
        """The flags of the answer to the newest request; None until all of it is there."""
        end = self.end
        flags = end.reply_flags()
        if flags is not None and flags & OUT_OF_BAND:
            aside = self._aside
            return flags if aside is not None and aside.sequence == end.sequence else None
        return flags

    def opened_aside(self) -> tuple[Any, dict[str, Any]]:
        """Observation (None where it is in the slot) and info of the newest reply."""
        if not self.end.flags() & OUT_OF_BAND or self._aside is None:
            return None, {}
        observation, info = pickle.loads(self._aside.payload)
        return observation, info

    def progress(self) -> Progress:
        """How far it has come; any thread may ask, and no step pays for it."""
        end: TrainerEnd | None = getattr(self, "end", None)  # `unmap` may take it meanwhile
        if end is None:
            return Progress()
        resets, began = self._resets, self._reset_sequence  # before the number that grows
        sequence = end.sequence
        return Progress(max(0, sequence - resets), sequence - began, end.episode_return())

    def soft_limit_reached(self, policy: RecyclePolicy) -> str | None:
        """Which soft limit it has reached, as a word for the counters; None for none."""
        if self.soft_limit:
            return "memory"
        if self.end.flags() & RECYCLE_DUE:
            return "game-loops"
        if policy.episodes is not None and self.episodes >= policy.episodes:
            return "episodes"
        if policy.age_s is not None and time.monotonic() - self.made_at_s >= policy.age_s:
            return "age"
        return None

    def phase(self) -> Phase:
        return _PHASES.get(self.state, Phase.IDLE)

    def exit_fault(self) -> Fault:
        """The channel ended: why, as far as the worker's exit status tells."""
        self._process.end()
        how = self._process.how_it_ended()
        return Fault(FaultKind.WORKER_EXITED, self.phase(), f"the worker {how}")

    def kill(self) -> None:
        """SIGKILL to the worker, its game and all else in their group."""
        self._process.kill()

    def wait_for_exit(self, deadline: Deadline) -> None:
        """Wait for the worker's own end, no longer than this."""
        self._process.wait(deadline)

    def dispose(self) -> None:
        """End the processes and give everything back; may be called again."""
        self._owned.close()

    def unmap(self) -> None:
        """Let go of the queue pair's memory too, which outlives `dispose` to be read once more."""
        vars(self).pop("end", None)
