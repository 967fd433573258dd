"""The trainer's record of an instance: a player in a worker, its games, queue pair and state.

An instance obeys the supervisor: it sends messages, kills processes and keeps its record. Rules:
* Only this file changes an instance. The methods are named after the request or the event.
* The state of an instance changes only by the table in `states`.
* The resources that an instance uses belong to its worker, which releases them (see `workers`).
* The slot of the shared memory and the numbers of the requests belong to the queue pair (`queue`).
"""

from __future__ import annotations

import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sc2pool.config import RecyclePolicy
from sc2pool.deadline import NEVER, Deadline
from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.game.hang_detection import unless_stalled
from sc2pool.pool import messages
from sc2pool.pool.instances.states import LIVE, TRANSITIONS, Event, State, advance
from sc2pool.pool.instances.workers import Worker, Workers
from sc2pool.pool.ipc import Channel, ChannelClosedError, pickle_for_worker
from sc2pool.pool.queues.layout import slot_layout
from sc2pool.pool.queues.slots import Slots
from sc2pool.pool.queues.trainer_end import TrainerEnd
from sc2pool.processes.spawn import uninterrupted
from sc2pool.processes.tree import created_at_s, end_orphan
from sc2pool.tasks.player import Episode, GameFacts

ACTIONS_KEPT = 16
"""How many of an instance's newest actions a fault report lists."""

_PHASES = {
    State.NEW: Phase.LAUNCHING,
    State.STARTING: Phase.LAUNCHING,
    State.LAUNCHING: Phase.LAUNCHING,
    State.RESETTING: Phase.RESETTING,
    State.STEPPING: Phase.STEPPING,
}


class Instance:
    """One player and its games: no game, one game, or the two games of a match.

    Attributes:
        deadline: the time by which its current operation must be done.
        call_deadline: the time by which all its pending calls must be answered.
        asked_at_s: when the pool sent the current request.
        worker: the worker that hosts the instance, if there is one.
        channel: the connection to the instance in its worker; unset without a worker.
        hello: the worker's description of the player, or None before it arrives.
        games: facts about its games; empty until they run.
        episode: the episode that it plays or prepares.
        reset_kind: how this episode began.
        holds: whether it was asked to stop its game at this episode's first observation.
        was_spare: whether this episode was prepared on a spare's seat.
        episodes: the number of its episodes that an env has taken, including the current episode.
        memory_problem: how it has reached the soft memory limit; empty if it has not.
        last_actions: its newest actions, in the order in which they were sent.
        pauses: how often its game was stopped.
        pause_problem: why its game could not be stopped; empty if it was stopped.
    """

    def __init__(self, number: int, spec: Any, slots: Slots, slot: int) -> None:
        self.number = number
        self._spec = spec
        self.made_at_s = time.monotonic()
        self.state = State.NEW
        self.deadline = NEVER
        self.call_deadline = NEVER
        self.asked_at_s = 0.0
        self.start_not_before_s = 0.0
        self.hello: messages.Hello | None = None
        self.games: Sequence[GameFacts] = ()
        self.episode: Episode | None = None
        self.reset_kind = ""
        self.holds = False
        self.was_spare = False
        self.episodes = 0
        self.memory_problem = ""
        self.last_actions: deque[Any] = deque(maxlen=ACTIONS_KEPT)
        self.pauses = 0
        self.stopped_at_s = 0.0
        self.pause_problem = ""
        self._unanswered_calls = 0
        self.channel: Channel
        self.queue = TrainerEnd(slots, slot)
        self.worker: Worker | None = None
        self._roots: list[tuple[int, float]] = []
        """The pid and creation time of the root process of each game, if it could be inspected."""

    def wait_before_start(self, until_s: float) -> None:
        """Delay the start of the instance's worker until this monotonic time."""
        self.start_not_before_s = until_s

    def start(
        self, make_directory: Callable[[], Path], workers: Workers, timeout_s: float
    ) -> OSError | None:
        """Let a worker host the instance, which must send its `Hello` message within `timeout_s`.

        If the system refuses a process, a thread, memory, descriptors or a folder, the error is
        returned, and `Workers.dismiss` releases all resources made so far. The error is not
        raised, because a raised `OSError` could also come from a signal handler of the user.
        """
        self.deadline = Deadline.after(timeout_s)
        self.on(Event.START)
        return uninterrupted(partial(self._make, make_directory, workers))

    def _make(self, make_directory: Callable[[], Path], workers: Workers) -> OSError | None:
        try:
            directory = make_directory()
            with ExitStack() as undo:
                undo.callback(shutil.rmtree, directory, ignore_errors=True)
                worker = workers.worker_for(self.number)
                self.channel = worker.host(self, directory, self._spec)
                undo.pop_all()
            self.queue.open(worker.request_doorbell)
            self.worker = worker
            self._send(messages.Start(list(sys.path)))
        except OSError as error:
            return error
        return None

    def __repr__(self) -> str:
        return f"<instance {self.number} {self.state}>"

    @property
    def worker_pid(self) -> int | None:
        """The worker's pid; None before a worker hosts the instance."""
        return None if self.worker is None else self.worker.process.pid

    @property
    def live(self) -> bool:
        return self.state in LIVE

    def on(self, event: Event) -> None:
        """Advance the state on an event."""
        self.state = advance(self.state, event)

    def greeted(self, hello: messages.Hello) -> None:
        """Record the worker's description of its player."""
        self.hello = hello
        self.deadline = NEVER

    def attach(self) -> None:
        """Take the slot and send its offset; ConfigError if the players' spaces are not equal."""
        assert self.hello is not None, "its spaces are known"
        hello = self.hello
        self.queue.attach(slot_layout(hello.observation_space, hello.action_space, hello.rows))
        self._send(messages.UseMemory(self.queue.offset_bytes))

    def launch(self, timeout_s: float, grace_s: float) -> None:
        """Start the game within `timeout_s`; the trainer waits `grace_s` longer than the worker."""
        self.on(Event.LAUNCH)
        self.asked_at_s = time.monotonic()
        self.deadline = Deadline.after(timeout_s + grace_s)
        self._send(messages.Launch(timeout_s))

    def reset(
        self,
        episode: Episode,
        attributes: Mapping[int, Mapping[str, bytes]],
        deadline: Deadline,
        *,
        hold: bool,
        of_spare: bool,
    ) -> None:
        """Begin this episode (see `messages.Reset`); the worker abandons the current one."""
        self.was_spare = of_spare
        self.on(Event.RESET)
        assert self.hello is not None, "it is up"
        self.holds = hold and self.hello.realtime
        self.episode = episode
        self.deadline = deadline
        self.asked_at_s = time.monotonic()
        of_rows = [attributes.get(row, {}) for row in range(self.hello.rows)]
        sequence = self.queue.begin_episode()
        options = b""
        if episode.options:
            options = pickle_for_worker(episode.options)
            episode = replace(episode, options={})
        self._send(messages.Reset(sequence, episode, options, of_rows, self.holds))

    def began(self, *, held: bool) -> float:
        """Record that the first observation has arrived; return how many seconds the reset took."""
        self.deadline = NEVER
        took_s = time.monotonic() - self.asked_at_s
        self.reset_kind = self.queue.reset_kind()
        if held:
            self.on(Event.FIRST_OBSERVATION_HELD)
            self._note_stop()
        else:
            self.on(Event.FIRST_OBSERVATION)
        return took_s

    def taken(self) -> None:
        """Record that an env takes the episode."""
        self.on(Event.TAKEN)
        self.episodes += 1

    def begin_step(self, action: Any, now_s: float, deadline: Deadline) -> None:
        """Record a step whose action is about to be sent."""
        self.state = TRANSITIONS[self.state, Event.STEP]  # `on` would cost each step a call
        self.last_actions.append(action)
        self.asked_at_s = now_s
        self.deadline = deadline

    def send(self, action: Any) -> None:
        """Send an action: through the slot if it fits there, else on the channel."""
        if not self.queue.try_send(action):
            sequence = self.queue.next_sequence()
            self._send(messages.ActionOutOfBand(sequence, pickle_for_worker(action)))

    def end_step(self, event: Event) -> None:
        """Record that the instance has answered the step."""
        self.state = TRANSITIONS[self.state, event]
        self.deadline = NEVER

    def pause(self, deadline: Deadline) -> None:
        """Order the worker to stop the game."""
        self.on(Event.PAUSE)
        self._note_stop()
        self.deadline = deadline
        self._send(messages.Pause())

    def pause_asked(self) -> None:
        """Forget an earlier pause problem, because the trainer asks for a new pause."""
        self.pause_problem = ""

    def paused(self, problem: str) -> None:
        """Record that the game is stopped or, if there is a `problem`, that it continues."""
        if self.state not in (State.RESUMING, State.RELEASING):
            self.deadline = NEVER
        self.pause_problem = problem
        self.on(Event.NOT_PAUSED if problem else Event.PAUSED)

    def resumed(self) -> None:
        """Record that the game continues."""
        self.deadline = NEVER
        self.on(Event.RESUMED)

    def _note_stop(self) -> None:
        """Record that the game stops now."""
        self.pauses += 1
        self.pause_problem = ""
        self.stopped_at_s = time.monotonic()

    def resume(self, deadline: Deadline) -> None:
        """Order the worker to let the game continue."""
        self.on(Event.RESUME)
        self.deadline = deadline
        self._send(messages.Resume())

    def call(
        self, number: int, row: int, operation: str, payload: bytes, deadline: Deadline
    ) -> None:
        """Order the worker to run an operation on the player's target of this row."""
        self._unanswered_calls += 1
        self.call_deadline = deadline
        self._send(messages.Call(number, operation, payload, row))

    def answered(self) -> None:
        """Record that the instance has answered a call."""
        self._unanswered_calls -= 1
        if not self._unanswered_calls:
            self.call_deadline = NEVER

    def played(self, actions: Iterable[Any]) -> None:
        """Record the actions of completed steps, for a later fault report."""
        self.last_actions.extend(actions)

    def starved(self, grace_s: float) -> None:
        """Extend the deadline to at least `grace_s` from now, because processes get no CPU time."""
        later = Deadline.after(grace_s)
        if self.deadline.instant_s < later.instant_s:
            self.deadline = later

    def too_large(self, problem: str) -> None:
        """Record that the instance has reached the soft memory limit; `problem` describes how."""
        self.memory_problem = problem

    def extend_stalled_deadlines(self, grace_s: float) -> None:
        """If the trainer's process has stalled, extend expired deadlines by `grace_s`."""
        if self.deadline.expired():
            self.deadline = unless_stalled(self.deadline, grace_s)
        if self.call_deadline.expired():
            self.call_deadline = unless_stalled(self.call_deadline, grace_s)

    def close(self) -> None:
        """Record that the instance is closed, and clear its deadline."""
        self.deadline = NEVER
        self.on(Event.CLOSE)

    def ask_to_close(self) -> None:
        """Ask the worker to close this player; the worker exits when its last player is closed."""
        self._send(messages.Close())

    def _send(self, message: Any) -> None:
        # If the worker has exited or reads nothing, the end of file or the deadline will show that.
        with suppress(ChannelClosedError):
            self.channel.send(message)

    def recycle_due(self, policy: RecyclePolicy) -> str | None:
        """The name of the soft limit that the instance has reached, for the counters; else None."""
        if self.memory_problem:
            return "memory"
        if self.queue.recycle_due():
            return self.queue.recycle_due()
        if policy.slowdown is not None and self.queue.loop_cost_growth() >= policy.slowdown:
            return "slowdown"
        if policy.episodes is not None and self.episodes >= policy.episodes:
            return "episodes"
        if policy.age_s is not None and time.monotonic() - self.made_at_s >= policy.age_s:
            return "age"
        return None

    def phase(self) -> Phase:
        """The phase of the instance's work, for faults and logs."""
        return _PHASES.get(self.state, Phase.IDLE)

    def launched(self, games: Sequence[GameFacts]) -> None:
        """Record that the player, with its games if it has any, has started."""
        self.on(Event.LAUNCHED)
        self.games = games
        self.deadline = NEVER
        for game in games:
            created_s = created_at_s(game.root_pid)
            if created_s is not None:
                self._roots.append((game.root_pid, created_s))

    def exit_fault(self) -> Fault:
        """End the worker after its channel's end; return a fault with the worker's exit status."""
        assert self.worker is not None, "a channel implies a worker"
        self.worker.process.end()
        how = self.worker.process.how_it_ended()
        return Fault(FaultKind.WORKER_EXITED, self.phase(), f"the worker {how}")

    def kill(self, *, with_worker: bool) -> None:
        """Kill the games; also the worker if `with_worker` or if it has no other instance."""
        worker = self.worker
        if worker is None:
            return
        if with_worker or worker.alone:
            worker.kill()
            return
        for root_pid, created_s in self._roots:
            end_orphan(root_pid, created_s)
