"""An instance as the trainer holds it: a player in a worker, its game, its queue pair, its state.

It sends, kills and remembers; what to do next is the supervisor's. Rules: only this file changes
it, in a method named after what is asked of it or has happened. The state moves only through the
table in `states`. What it has made belongs to its worker, which gives it back
(`workers`). What belongs to one player (memory, sequence numbers) is in `queue`; an instance with
several players has one for each.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from sc2pool.config import RecyclePolicy
from sc2pool.deadline import NEVER, Deadline
from sc2pool.errors import Fault, FaultKind, Phase
from sc2pool.game.hang_detection import unless_stalled
from sc2pool.pool.instances.states import LIVE, TRANSITIONS, Event, State, advance
from sc2pool.pool.instances.workers import Worker, Workers
from sc2pool.pool.ipc import messages
from sc2pool.pool.ipc.channel import Channel, ChannelClosedError
from sc2pool.pool.ipc.pickling import for_worker
from sc2pool.pool.queues.layout import slot_layout
from sc2pool.pool.queues.slots import Slots
from sc2pool.pool.queues.trainer_end import TrainerEnd
from sc2pool.processes.tree import created_at_s, end_orphan
from sc2pool.processes.uninterrupted import uninterrupted
from sc2pool.tasks.player import Episode, GameFacts

ACTIONS_KEPT = 16
"""How many of its newest actions a fault report has."""

_PHASES = {
    State.NEW: Phase.LAUNCHING,
    State.STARTING: Phase.LAUNCHING,
    State.LAUNCHING: Phase.LAUNCHING,
    State.RESETTING: Phase.RESETTING,
    State.STEPPING: Phase.STEPPING,
}


class Instance:
    """One player and, if it has any, its games: one, or two of a match.

    Args:
        number: of the instance.
        spec: of its player, as its worker takes it (`System.packed`).
        slots: the pool's shared memory.
        slot: the index of its queue pair's slot there.

    Attributes:
        number: counts the instances of a pool, from 0.
        state: see `states`.
        deadline: when what it does now must be done.
        call_deadline: when the calls that it has been sent must be answered.
        asked_at_s: when the pool asked for what is awaited now.
        start_not_before_s: when its worker may be started.
        worker: in which it lives; None until it does.
        channel: to it, once it does.
        queue: its player's queue pair.
        hello: what the worker said of its player; None until it has.
        games: facts of its games, once they run.
        episode: the episode it plays or prepares.
        reset_kind: how that episode was reached.
        holds: it was asked to stop its game at that episode's first observation.
        was_spare: that episode was prepared on a spare's seat.
        episodes: how many envs have taken from it, the running one included.
        memory_problem: the soft memory limit that it has reached; empty for none.
        last_actions: the newest actions, the last one last.
        pauses: how often its game was stopped.
        stopped_at_s: when its game was stopped last.
        pause_problem: why its game could not be stopped; empty if it was.
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
        """Of each game that could be inspected: the root's pid, and when it was created."""

    def wait_before_start(self, until_s: float) -> None:
        """Its worker is not started before this monotonic time."""
        self.start_not_before_s = until_s

    def start(
        self, make_directory: Callable[[], Path], workers: Workers, timeout_s: float
    ) -> OSError | None:
        """Have a worker host it.

        Args:
            make_directory: makes its folder for temporary files.
            timeout_s: when the worker must have said what its player is.

        Returns:
            What the system refused: a process, a thread, memory, descriptors, a folder; then
            `Workers.dismiss` gives back what has been made. It is not raised, because an `OSError`
            that comes out of the wait is one that a signal handler of the user's has raised.
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
        """None until it lives in a worker."""
        return None if self.worker is None else self.worker.process.pid

    @property
    def live(self) -> bool:
        return self.state in LIVE

    def on(self, event: Event) -> None:
        """Note what happened."""
        self.state = advance(self.state, event)

    def greeted(self, hello: messages.Hello) -> None:
        """The worker says what its player is."""
        self.hello = hello
        self.deadline = NEVER

    def attach(self) -> None:
        """Give the worker its slot of the shared memory.

        Raises:
            ConfigError: its spaces are not those of the pool's other players.
        """
        assert self.hello is not None, "its spaces are known"
        hello = self.hello
        self.queue.attach(slot_layout(hello.observation_space, hello.action_space, hello.rows))
        self._send(messages.UseMemory(self.queue.offset_bytes))

    def launch(self, timeout_s: float, grace_s: float) -> None:
        """Start the game; the worker gets `timeout_s`, and we give up on it `grace_s` later."""
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
        """Play this episode; the worker drops what it plays now.

        Args:
            attributes: as `Seat` has them.
            hold: stop the game at its first observation, if it would not wait by itself.
            of_spare: it sits on a spare's seat.
        """
        self.was_spare = of_spare
        self.on(Event.RESET)
        assert self.hello is not None, "it is up"
        self.holds = hold and self.hello.realtime
        self.episode = episode
        self.deadline = deadline
        self.asked_at_s = time.monotonic()
        of_rows = [attributes.get(row, {}) for row in range(self.hello.rows)]
        sequence = self.queue.begin_episode()
        self._send(messages.Reset(sequence, episode, of_rows, self.holds))

    def began(self, *, held: bool) -> float:
        """The episode's first observation is there.

        Returns:
            How long the reset took, in seconds.
        """
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
        """An env takes the episode."""
        self.on(Event.TAKEN)
        self.episodes += 1

    def begin_step(self, action: Any, now_s: float, deadline: Deadline) -> None:
        """An action is about to be sent."""
        self.state = TRANSITIONS[self.state, Event.STEP]  # as `on`, but on the path of each step
        self.last_actions.append(action)
        self.asked_at_s = now_s
        self.deadline = deadline

    def send(self, action: Any) -> None:
        """Send any action: through the slot if it fits, else out of band."""
        if not self.queue.try_send(action):
            sequence = self.queue.next_sequence()
            self._send(messages.ActionOutOfBand(sequence, for_worker(action)))

    def end_step(self, event: Event) -> None:
        """The step is answered."""
        self.state = TRANSITIONS[self.state, event]
        self.deadline = NEVER

    def pause(self, deadline: Deadline) -> None:
        """Have the worker stop the game."""
        self.on(Event.PAUSE)
        self._note_stop()
        self.deadline = deadline
        self._send(messages.Pause())

    def pause_asked(self) -> None:
        """The trainer wants its game to stop: what kept it from that before does not count."""
        self.pause_problem = ""

    def paused(self, problem: str) -> None:
        """Its game is stopped; or it continues, because of this problem."""
        if self.state not in (State.RESUMING, State.RELEASING):
            self.deadline = NEVER
        self.pause_problem = problem
        self.on(Event.NOT_PAUSED if problem else Event.PAUSED)

    def resumed(self) -> None:
        """Its game continues."""
        self.deadline = NEVER
        self.on(Event.RESUMED)

    def _note_stop(self) -> None:
        """The game stops now."""
        self.pauses += 1
        self.pause_problem = ""
        self.stopped_at_s = time.monotonic()

    def resume(self, deadline: Deadline) -> None:
        """Have the worker let the game go on."""
        self.on(Event.RESUME)
        self.deadline = deadline
        self._send(messages.Resume())

    def call(
        self, number: int, row: int, operation: str, payload: bytes, deadline: Deadline
    ) -> None:
        """Have the worker run an operation on its player's target of this row."""
        self._unanswered_calls += 1
        self.call_deadline = deadline
        self._send(messages.Call(number, operation, payload, row))

    def answered(self) -> None:
        """A call is answered."""
        self._unanswered_calls -= 1
        if not self._unanswered_calls:
            self.call_deadline = NEVER

    def played(self, actions: Iterable[Any]) -> None:
        """It has been sent these actions, in steps that are answered."""
        self.last_actions.extend(actions)

    def starved(self, grace_s: float) -> None:
        """Its processes wait for a processor: it has this much more time from now on."""
        later = Deadline.after(grace_s)
        if self.deadline.instant_s < later.instant_s:
            self.deadline = later

    def too_large(self, problem: str) -> None:
        """It has reached the soft memory limit, as these words say."""
        self.memory_problem = problem

    def extend_stalled_deadlines(self, grace_s: float) -> None:
        """Where this process stood still until long after a deadline, wait `grace_s` more."""
        if self.deadline.expired():
            self.deadline = unless_stalled(self.deadline, grace_s)
        if self.call_deadline.expired():
            self.call_deadline = unless_stalled(self.call_deadline, grace_s)

    def close(self) -> None:
        """No more is awaited of it."""
        self.deadline = NEVER
        self.on(Event.CLOSE)

    def ask_to_close(self) -> None:
        """Have the worker close its player and exit."""
        self._send(messages.Close())

    def _send(self, message: Any) -> None:
        # A worker that is gone, or does not read, shows by its end of file or its deadline.
        with suppress(ChannelClosedError):
            self.channel.send(message)

    def recycle_due(self, policy: RecyclePolicy) -> str | None:
        """Which soft limit it has reached, as a word for the counters; None for none."""
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
        """Its phase, as faults name it."""
        return _PHASES.get(self.state, Phase.IDLE)

    def launched(self, games: Sequence[GameFacts]) -> None:
        """Its player is up, with its games if it has any."""
        self.on(Event.LAUNCHED)
        self.games = games
        self.deadline = NEVER
        for game in games:
            created_s = created_at_s(game.root_pid)
            if created_s is not None:
                self._roots.append((game.root_pid, created_s))

    def exit_fault(self) -> Fault:
        """The channel ended: why, as far as the worker's exit status says."""
        assert self.worker is not None, "who has a channel has a worker"
        self.worker.process.end()
        how = self.worker.process.how_it_ended()
        return Fault(FaultKind.WORKER_EXITED, self.phase(), f"the worker {how}")

    def kill(self, *, with_worker: bool) -> None:
        """SIGKILL to its games; to all of its worker if that has no other, or `with_worker`."""
        worker = self.worker
        if worker is None:
            return
        if with_worker or worker.alone:
            worker.kill()
            return
        for root_pid, created_s in self._roots:
            end_orphan(root_pid, created_s)
