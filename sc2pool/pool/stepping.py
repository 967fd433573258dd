"""The steps of all envs: requests, replies, and the start of the next episodes.

    IDLE ─ send ─► SENT ─ reply or fault ─┬─ not over ────────────────► SETTLED ─ recv ─► IDLE
     │                                    └─ over ─► ANSWERED ─► BEGINNING ─► SETTLED
     └ begin an episode ───────────────────────────────────────► BEGINNING ─► SETTLED.

`EnvStep` is the record of one env's step; only this module changes it. Nearly every batch is
*plain*: all envs step together, and every reply is only an observation and a reward. The actions of
a plain batch are copied for all envs together, and so are the replies. The records of the envs are
updated later, when they are needed. Rules:
* Each action, and each request for an episode, gets exactly one outcome, which after a fault is
  synthetic and marked.
* As soon as enough envs have answered for the caller, every env whose episode is over gets its next
  episode, in the order of the envs. So a seeded run does not depend on timing if all envs are
  always stepped together.
* Real-time games whose episodes begin together are held (stopped) at their first observations until
  all games have reached theirs, because some games may have to be launched first.

`Alignment` keeps real-time games aligned if their envs are stepped together. A batch waits for the
last observation, so an env whose observation comes early waits in every step.

Games that began together drift apart when one of them overruns a period, fails, or begins another
episode. After games have drifted apart, the actions of a game that is ahead are late by its lead.
So a game that is ahead is delayed: one of its decision periods is made longer by its lead, in whole
game loops.

`Alignment` only computes the delays, and has no side effects. The smallest of an env's leads in
three batches counts, so one slow answer delays no env. The env that is last is never delayed.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError

from sc2pool.deadline import Deadline
from sc2pool.pool.batch import (
    Batch,
    Gatherer,
    Outcome,
    fault_info,
    real_outcome,
    synthetic_outcome,
)
from sc2pool.pool.episodes import Episodes, Request
from sc2pool.pool.instances.event_loop import EventLoop
from sc2pool.pool.instances.instance import ACTIONS_KEPT, Instance
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.instances.states import State
from sc2pool.pool.instances.supervisor import Listener
from sc2pool.pool.queues.doorbell import Doorbell
from sc2pool.pool.queues.layout import Array, SlotLayout
from sc2pool.pool.queues.slots import Flag
from sc2pool.pool.queues.trainer_end import TrainerEnd
from sc2pool.protocol import LOOPS_PER_S
from sc2pool.tasks.opponents.results import CONTRADICTION, UNTOLD_END, outcome_of


class Stage(StrEnum):
    """The stage of an env's step."""

    NEW = "new"
    """No episode has begun yet."""
    IDLE = "idle"
    """An episode runs, and the trainer may send an action."""
    OVER = "over"
    """The episode is over, and the trainer may begin the next one."""
    QUEUED = "queued"
    """The env's request waits until fewer envs are busy (`max_concurrency`)."""
    SENT = "sent"
    """The action was sent; the reply has not arrived."""
    ANSWERED = "answered"
    """The episode is over, and its reply has arrived; the next episode has not been begun yet."""
    BEGINNING = "beginning"
    """An episode was begun; its first observation is awaited."""
    SETTLED = "settled"
    """The outcome is complete; `recv` takes it."""


@dataclass(eq=False, slots=True)
class EnvStep:
    """One env's step or reset; the env's instance has the deadline, which may cover a launch.

    Attributes:
        outcome: the outcome so far, or None for a plain reply.
        queue: the queue pair with the newest observation, even if its instance has ended, or None
            before the first observation.
        is_reset: whether the trainer asked for an episode, not for a step.
    """

    seat: Seat
    stage: Stage = Stage.NEW
    outcome: Outcome | None = None
    queue: TrainerEnd | None = None
    is_reset: bool = False


_AT_REST = (Stage.IDLE, Stage.OVER, Stage.NEW)
_UNANSWERED = (Stage.SENT, Stage.QUEUED)
_BUSY = (Stage.SENT, Stage.ANSWERED, Stage.BEGINNING)


@dataclass(frozen=True, slots=True)
class _Send:
    """The trainer's request for a step of an env."""

    action: Any
    delay_loops: int | None
    at_s: float
    deadline: Deadline


@dataclass(frozen=True, slots=True)
class _Begin:
    """The trainer's request for an episode; `request` is None for the env's next episode."""

    request: Request | None


@dataclass(slots=True)
class _PlainStep:
    """A step of all envs that is under way but not in the envs' records yet."""

    actions: Array
    sent_at_s: float


class Stepping(Listener):
    """The steps of a pool's envs. At most `max_concurrency` envs (None: all) are busy at a time."""

    def __init__(
        self,
        loop: EventLoop,
        episodes: Episodes,
        layout: SlotLayout,
        *,
        autoreset: bool,
        realtime: bool,
        max_concurrency: int | None,
    ) -> None:
        self._loop = loop
        self._supervisor = supervisor = loop.supervisor
        self._fleet = loop.fleet
        self._slots = loop.fleet.slots
        self._bookkeeping = loop.bookkeeping
        self._stats = supervisor.stats
        self._episodes = episodes
        self._layout = layout.observation
        self._rows = layout.rows
        self._autoreset = autoreset
        self._steps = [EnvStep(seat) for seat in supervisor.env_seats]
        self.gatherer = Gatherer(layout.observation, len(self._steps), layout.rows)
        self._realtime = realtime
        self._aligned = Alignment(LOOPS_PER_S) if realtime and len(self._steps) > 1 else None
        n = len(self._steps)
        self._max_busy = max_concurrency if max_concurrency and max_concurrency < n else None
        # Real-time games send no plain replies, and their steps may carry a delay.
        self._may_be_plain = not realtime and self._max_busy is None and n > 0
        self._plain_step: _PlainStep | None = None
        self._is_arranged = False
        """True if all envs have taken only plain steps since `arrange_plain`."""
        self._instances: list[Instance] = []
        """The envs' instances at the last `arrange_plain`."""
        self._doorbells: Sequence[Doorbell] = []
        """The doorbells that wake the workers of the envs' instances."""
        self._plain_actions: deque[Array] = deque(maxlen=ACTIONS_KEPT)
        """The newest actions that are not in the records of the envs' instances yet."""
        self._queued: deque[tuple[EnvStep, _Send | _Begin]] = deque()
        self._together: list[EnvStep] = []
        """Envs whose episodes begin together, until all first observations have arrived."""

    # The methods below serve requests of the trainer.

    @property
    def began(self) -> bool:
        """True if every env has been given an episode."""
        return all(step.stage is not Stage.NEW for step in self._steps)

    @property
    def over(self) -> list[int]:
        """The envs whose episode is over and whose next episode was not requested."""
        return [env for env, step in enumerate(self._steps) if step.stage is Stage.OVER]

    def require_at_rest(self, envs: Iterable[int], call: str, then: str) -> None:
        """Raise AlreadyPendingCallError if one of these envs has a pending step or reset.

        The error's name is `call`, and its message names the operation `then` that was tried.
        """
        plain = self._plain_step is not None
        busy = [env for env in envs if plain or self._steps[env].stage not in _AT_REST]
        if busy:
            raise AlreadyPendingCallError(
                f"receive the pending step of envs {sorted(busy)} before {then}; or does another "
                "thread step them?",
                call,
            )

    def send(self, envs: Sequence[int], actions: Sequence[Any] | Array) -> None:
        """Send an action to each of these idle envs (or one per row, with several rows)."""
        now_s = time.monotonic()
        deadline = self._supervisor.step_deadline(now_s)
        delays = self._delays_loops(envs)
        for env, action in zip(envs, actions, strict=True):
            step = self._steps[env]
            delay_loops = None if delays is None else delays[env]
            self._ask(step, _Send(action, delay_loops, now_s, deadline))

    def _send(self, step: EnvStep, asked: _Send) -> None:
        step.stage = Stage.SENT
        step.is_reset = False
        if step.seat.fault is not None:  # the instance has died since the last step
            self._answer_for(step)
            return
        instance = step.seat.instance
        if asked.delay_loops is not None:
            instance.queue.delay(asked.delay_loops)
        instance.begin_step(asked.action, asked.at_s, asked.deadline)
        instance.send(asked.action)

    def begin(self, envs: Sequence[int], requests: Sequence[Request] | None) -> None:
        """Begin a new episode in each of these envs, even during an episode; see `Pool.begin`."""
        if self._realtime and len(envs) == len(self._steps):
            self._together = list(self._steps)
            for step in self._steps:
                step.seat.hold_asked()
        if requests is not None:
            self._episodes.take_back()
        for row, env in enumerate(envs):
            step = self._steps[env]
            request = None if requests is None else requests[row]
            step.outcome = Outcome.empty(self._rows)
            step.is_reset = True
            self._ask(step, _Begin(request))
        if requests is not None:
            self._episodes.spares.prepare()

    def _begin(self, step: EnvStep, asked: _Begin) -> None:
        step.stage = Stage.BEGINNING
        if asked.request is None:
            self._episodes.begin_next(step.seat)
        else:
            self._episodes.begin(step.seat, asked.request)
        self.arrived(step.seat)  # no event follows if the env has taken a spare that was ready

    def begin_if_dead(self, seat: Seat) -> bool:
        """If the game has died since the last step, begin an episode and return True.

        A call into a task needs an episode: before its first episode, a task object has no game,
        and lacks the attributes that it sets when an episode begins. During a pause no episode
        begins.
        """
        is_idle = self._steps[seat.index].stage is Stage.IDLE
        if not is_idle or seat.fault is None or seat.paused or self._episodes.is_ahead(seat):
            return False
        self._episodes.begin_ahead(seat)
        return True

    def can_be_called(self, seat: Seat) -> bool:
        """False while the first observation of an episode begun by `begin_if_dead` is awaited."""
        return not self._episodes.is_ahead(seat) or seat.arrived or seat.paused

    def _ask(self, step: EnvStep, asked: _Send | _Begin) -> None:
        """Carry out a request now, or queue it if `max_concurrency` envs are busy."""
        if self._queued or self._at_most_busy():
            step.stage = Stage.QUEUED
            self._queued.append((step, asked))
        else:
            self._carry_out(step, asked)

    def _carry_out(self, step: EnvStep, asked: _Send | _Begin) -> None:
        if isinstance(asked, _Send):
            self._send(step, asked)
        else:
            self._begin(step, asked)

    def _at_most_busy(self) -> bool:
        """True if `max_concurrency` envs are busy."""
        limit = self._max_busy
        return limit is not None and sum(step.stage in _BUSY for step in self._steps) >= limit

    def forget(self) -> None:
        """Forget all steps and episodes, because every instance is about to be replaced."""
        self._queued.clear()
        self._together.clear()
        self._plain_step = None
        self._is_arranged = False
        self._plain_actions.clear()
        for step in self._steps:
            step.stage = Stage.NEW
            step.outcome = step.queue = None

    def drop(self) -> None:
        """Wait for the replies of all pending steps, then drop them; if interrupted, drop none."""
        self._loop.wait_until(
            lambda: all(step.seat.instance.state is not State.STEPPING for step in self._steps)
        )
        self._queued.clear()
        for step in self._steps:
            step.outcome = None
            step.seat.hold_over()
            if step.stage not in _AT_REST:
                step.stage = Stage.OVER
        self._together.clear()

    # The methods below make plain steps of all envs.

    def arrange_plain(self) -> bool:
        """Arrange the slots for `send_plain`; return False unless all envs wait for an action."""
        if self._plain_step is not None:
            return False
        if not self._is_arranged and self._may_be_plain and self._all_wait():
            self._instances = [step.seat.instance for step in self._steps]
            self._slots.arrange([instance.queue.index for instance in self._instances])
            self._doorbells = self._fleet.doorbells_of(self._instances)
            self._is_arranged = True
        return self._is_arranged

    def _all_wait(self) -> bool:
        for step in self._steps:
            if step.stage is not Stage.IDLE or step.seat.instance.state is not State.PLAYING:
                return False
        return True

    def send_plain(self, actions: Array) -> None:
        """Send all rows their `actions`, an array (n * rows, …). Call `arrange_plain` first.

        No record shows this step until `note_plain_steps` is called. So in the first poll interval
        of the trainer's wait, other threads see the state "playing" instead of "stepping".
        """
        actions = actions.copy()  # the trainer may overwrite the original array
        if self._rows > 1:
            actions = actions.reshape(len(self._steps), self._rows, *actions.shape[1:])
        self._bookkeeping.torn = True  # set directly, because a `with` block is slower
        self._slots.batch.send(actions)
        for doorbell in self._doorbells:
            doorbell.ring()
        # Read the time last: if this process is stopped before the rings, workers lose no time.
        self._plain_step = _PlainStep(actions, time.monotonic())
        self._bookkeeping.torn = False

    def recv_plain(self) -> Batch | None:
        """Return the batch of all envs, or None if a reply is not plain.

        Also returns None if another event has happened or a poll is due. If None is returned,
        nothing was received, and the caller must call `recv`.
        """
        sent = self._plain_step
        if sent is None or self._loop.look_for_more():
            return None
        slots = self._slots  # no variable for `batch`, whose memory a traceback would keep
        while unanswered := slots.batch.unanswered():
            # The env with the highest index usually answers last.
            if not self._loop.wait_for_ring(self._instances[unanswered[-1]]):
                return None
        if slots.batch.flags() & Flag.TELLING:
            return None
        self._bookkeeping.torn = True
        self._plain_step = None
        self._plain_actions.append(sent.actions)
        self._stats.env_steps += self.gatherer.n_rows
        self._bookkeeping.torn = False
        return self.gatherer.gather_plain(slots.batch)

    def note_plain_steps(self) -> None:
        """Write the plain steps, also a plain step under way, into the records of the envs."""
        sent, self._plain_step = self._plain_step, None
        self._is_arranged = False
        for env, instance in enumerate(self._instances):
            instance.played(actions[env] for actions in self._plain_actions)
        self._plain_actions.clear()
        self._instances = []
        if sent is None or self._bookkeeping.closed:
            return
        deadline = self._supervisor.step_deadline(sent.sent_at_s)
        for step, action in zip(self._steps, sent.actions, strict=True):
            step.seat.instance.begin_step(action, sent.sent_at_s, deadline)
            step.stage = Stage.SENT
            step.is_reset = False

    # The methods below handle replies of the instances.

    def replied(self, seat: Seat, flags: int) -> None:
        if seat.is_spare:
            return
        step = self._steps[seat.index]
        step.queue = seat.instance.queue
        if step.stage is Stage.SENT:
            self._answer(step, real_outcome(step.queue, flags))

    def failed(self, seat: Seat) -> None:
        if seat.is_spare:
            return
        step = self._steps[seat.index]
        if step.stage is not Stage.SENT:
            return  # no action awaits a reply: a later outcome reports the fault
        self._queue_of(step).void()
        self._answer_for(step)

    def _answer_for(self, step: EnvStep) -> None:
        """Settle a step with a synthetic outcome, because the instance has died."""
        report = step.seat.fault_told()
        assert report is not None, "a failed env has a fault"
        self._answer(step, synthetic_outcome(report, self._queue_of(step), self._layout))

    @staticmethod
    def _queue_of(step: EnvStep) -> TrainerEnd:
        assert step.queue is not None, "an episode has begun"
        return step.queue

    def _answer(self, step: EnvStep, outcome: Outcome | None) -> None:
        step.outcome = outcome
        if outcome is not None and outcome.over and self._autoreset:
            step.stage = Stage.ANSWERED
        else:
            step.stage = Stage.SETTLED
        if outcome is not None and outcome.tick is not None:
            self._stats.lateness.note(step.seat.index, outcome.tick)

    def arrived(self, seat: Seat) -> None:
        if seat.is_spare or self._steps[seat.index].stage is not Stage.BEGINNING:
            return
        waiting = [self._steps[seat.index]]
        if self._together:
            if not all(self._has_arrived(step) for step in self._together):
                return
            waiting, self._together = self._together, []
        for step in waiting:
            step.seat.hold_over()
            self._supervisor.resume(step.seat)
            if step.seat.instance.state is State.READY:
                self._settle_episode(step)

    @staticmethod
    def _has_arrived(step: EnvStep) -> bool:
        return step.stage is Stage.BEGINNING and step.seat.arrived

    def _settle_episode(self, step: EnvStep) -> None:
        """Settle a reset: the env takes the episode that is ready on its seat."""
        seat, outcome = step.seat, step.outcome
        assert outcome is not None, "an episode begins with an outcome, which may be empty"
        fault = seat.taken()
        step.queue = seat.instance.queue
        outcome.observation, infos = step.queue.out_of_band()
        if fault is not None:
            told = fault_info(fault)
            for info in infos:
                info["sc2pool.fault"] = dict(told)
        outcome.reset_infos = infos
        step.stage = Stage.SETTLED

    # The methods below collect results for the trainer.

    def wait(self, wanted: int | None, deadline: Deadline) -> int:
        """Wait until `wanted` envs (None: all pending) are settled; return how many are settled."""
        goal = self.pending if wanted is None else wanted

        def n_settled() -> int:
            return sum(step.stage is Stage.SETTLED for step in self._steps)

        self._loop.wait_until(
            lambda: n_settled() >= goal, deadline, advance=lambda: self._advance(goal)
        )
        return n_settled()

    def _advance(self, goal: int) -> bool:
        """Carry out queued requests; if `goal` envs have answered, begin the next episodes.

        Returns True if a request was sent to an instance.
        """
        has_asked = self._ask_queued()
        while self._may_deal(goal):
            self._begin_next_episodes()
            self._ask_queued()  # an env that got a ready episode frees a place for another env
            has_asked = True
        return has_asked

    def _may_deal(self, goal: int) -> bool:
        """True if all envs whose episodes are over may begin their next ones."""
        stages = [step.stage for step in self._steps]
        if Stage.ANSWERED not in stages:
            return False
        if self._max_busy is not None:
            return True  # with a limit, an env counts as busy until its next episode has begun
        return self.pending - sum(map(stages.count, _UNANSWERED)) >= goal

    def _ask_queued(self) -> bool:
        has_asked = False
        while self._queued and not self._at_most_busy():
            self._carry_out(*self._queued.popleft())
            has_asked = True
        return has_asked

    def _begin_next_episodes(self) -> None:
        answered = [step for step in self._steps if step.stage is Stage.ANSWERED]
        for step in answered:
            step.stage = Stage.BEGINNING
            self._episodes.begin_next(step.seat)
        for step in answered:
            self.arrived(step.seat)

    @property
    def pending(self) -> int:
        """How many envs have a pending step or reset."""
        if self._plain_step is not None:
            return len(self._steps)
        return sum(step.stage not in _AT_REST for step in self._steps)

    def recv(self, min_ready: int | None, timeout_s: float | None) -> Batch:
        """See `Pool.recv`."""
        pending = self.pending
        if not pending:
            raise NoAsyncCallError("send actions before receiving what came of them", "step")
        wanted = None if min_ready is None else min(min_ready, pending)
        self.wait(wanted, Deadline.after(timeout_s))
        return self._take()

    def _take(self) -> Batch:
        envs = [env for env, step in enumerate(self._steps) if step.stage is Stage.SETTLED]
        steps = [self._steps[env] for env in envs]
        outcomes = [step.outcome for step in steps]
        self._align(outcomes)
        for step in steps:
            outcome = step.outcome
            began = outcome is None or not outcome.over or outcome.reset_infos is not None
            step.stage = Stage.IDLE if began else Stage.OVER
            step.outcome = None
            if outcome is not None:
                if outcome.over:
                    self._stats.count_episode(step.seat.name, outcome.episode_return)
                    self._count_end(outcome.infos[0])
                self._supervisor.keep_replay(step.seat, outcome.infos[0])
            self._stats.env_steps += 0 if step.is_reset else self._rows
        return self.gatherer.gather(envs, [self._queue_of(step) for step in steps], outcomes)

    def _count_end(self, last_info: Mapping[str, Any]) -> None:
        match = outcome_of(last_info)
        if match is not None:
            self._stats.count_match(*match)
        untold, contradiction = UNTOLD_END in last_info, CONTRADICTION in last_info
        if untold or contradiction:
            self._stats.count_odd_end(untold=untold, contradiction=contradiction)

    def _delays_loops(self, envs: Sequence[int]) -> list[int] | None:
        """By how many loops to delay each env's next period; None if envs are not aligned."""
        aligned = self._aligned
        if aligned is None:
            return None
        if len(envs) < len(self._steps):
            aligned.note(None)
        return aligned.delays_loops() or [0] * len(self._steps)

    def _align(self, outcomes: Sequence[Outcome | None]) -> None:
        """Record how late each env was, if all envs were stepped together and no episode ended."""
        if self._aligned is not None:
            gaps_s = [one.tick.gap_s for one in outcomes if one and one.tick and not one.over]
            self._aligned.note(gaps_s if len(gaps_s) == len(self._steps) else None)

    def newest_observations(self) -> Any:
        """The newest observation of every env, in the structure of a batch of all envs."""
        return self.gatherer.newest([self._queue_of(step) for step in self._steps])

    def action_mask(self, env: int, row: int) -> Array | None:
        """The action mask that came with this row's newest observation; None without a mask."""
        queue = self._steps[env].queue
        return None if queue is None else queue.mask(row)


_BATCHES: Final = 3


class Alignment:
    def __init__(self, loops_per_s: float) -> None:
        self._loops_per_s = loops_per_s
        self._leads_s: list[list[float]] = []

    def note(self, gaps_s: Sequence[float] | None) -> None:
        """Record, for one batch, the time from each env's observation to its action.

        `gaps_s` is None unless all envs were stepped together and no episode ended.
        """
        if gaps_s is None:
            self._leads_s.clear()
            return
        last_s = min(gaps_s)
        self._leads_s.append([gap_s - last_s for gap_s in gaps_s])

    def delays_loops(self) -> list[int] | None:
        """By how many loops to delay each env's next period; None if no env is delayed."""
        if len(self._leads_s) < _BATCHES:
            return None
        leads_s = [min(of_env) for of_env in zip(*self._leads_s, strict=True)]
        self._leads_s.clear()
        loops = [int(lead_s * self._loops_per_s) for lead_s in leads_s]
        return loops if any(loops) else None
