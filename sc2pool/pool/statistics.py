"""A pool's statistics: the reported values (`PoolStats`) and their counters (`Counters`).

The method `stats`, the commands `top` and `watch`, Prometheus, and callbacks show snapshots of the
counters and of the instances.

To add a statistic, add a field to a dataclass here and a counter to `Counters`, and count each
event where it happens. For Prometheus, give the field the metadata `counter`, `gauge` or
`durations`.

Only the trainer's thread counts, but any thread may read the counters. A lock guards the
collections, and is taken a few times in each episode. `env_steps` is counted in every step, but
needs no lock, because it is a single value.
"""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Literal

from sc2pool.errors import Fault
from sc2pool.pool.measures import (
    DurationCounter,
    Durations,
    LatenessCounter,
    MatchCounter,
    MatchResults,
    RealtimeStats,
    figures,
)
from sc2pool.tasks.player import GameFacts

_EVENTS_KEPT = 1000
RETURNS_KEPT = 100
"""How many of the newest whole episodes `PoolStats.mean_return` covers."""
_SOFT = "soft-"
MetricKind = Literal["counter", "gauge", "durations", "matches"]


@dataclass(frozen=True)
class Metric:
    """Turns a field into the Prometheus metric `sc2pool_<field>`; a final `_s` becomes `_seconds`.

    The metric's help text is one sentence. If the field is a dict, its keys are the values of the
    label named `label`.
    """

    kind: MetricKind
    help: str
    label: str = ""


def _metadata(kind: MetricKind, about: str, label: str = "") -> dict[str, Metric]:
    return {"metric": Metric(kind, about, label)}


counter = partial(_metadata, "counter")
gauge = partial(_metadata, "gauge")
durations = partial(_metadata, "durations")
"""Metadata of a `Durations` field: a Prometheus gauge for each of its figures."""
matches = partial(_metadata, "matches")
"""Metadata of a `MatchResults` field: a Prometheus counter for each of its results."""


@dataclass(frozen=True)
class PauseStats:
    """Figures of the pauses that are over.

    Attributes:
        count: the number of times that a paused game was resumed.
        paused_s: the total time of these pauses in seconds.
        loops: the number of game loops known to have passed during these pauses; it should be 0.
    """

    count: int
    paused_s: float
    loops: int


@dataclass(frozen=True)
class PoolEvent:
    """An event: a launch, a fault, or a recycle (a planned replacement).

    Attributes:
        event: the kind of event.
        at_s: the trainer's monotonic time of the event, to compare with `PoolStats.at_s`.
        seat: the name of the seat, such as "env 3" or "spare 8".
        instance: the instance's number.
        cause: why the instance was replaced, a key of `PoolStats.replacements`; empty for a launch.
        phase: the instance's phase at the fault; empty for other events.
        detail: one sentence about the fault; empty for other events.
    """

    event: Literal["launch", "fault", "recycle"]
    at_s: float
    seat: str
    instance: int
    cause: str = ""
    phase: str = ""
    detail: str = ""


@dataclass(frozen=True)
class InstanceStats:
    """One instance: a game with its worker, or an env of the user in its worker.

    Attributes:
        seat: its place in the pool, such as "env 3" or "spare 8".
        instance: its number, counted from 0 in each pool.
        state: its state, one of those in `sc2pool.pool.instances.states`.
        episode: the number of the episode that it plays or prepares, or None.
        steps: the number of steps in all its episodes.
        episode_steps: the number of steps in its newest episode.
        episode_return: the sum of the newest episode's rewards in the first row, or None if the sum
            is not finite.
        pid: the pid of the game (in a match, of the host's game), that is, of the process that
            listens on `port`, even if a script has started it; None without a game.
        worker_pid: the pid of the worker, or None before the worker starts.
        port: the port on which the game listens, or None without a game.
        listener: "proven" if the operating system confirms that the game's process holds this port,
            "unproven" if the system cannot tell, None without a game.
        memory_bytes: the resident memory of the game (with its script and other processes) and the
            worker, or None before the first sample; if a worker has several instances, only the
            figure of the first instance includes the worker.
        cpu_s: the CPU time of the worker and all its descendants, or None before any sample.
        loop_cost_growth: the game's CPU time per game loop, divided by the same time in its first
            episodes, or None until both are known; at `RecyclePolicy.slowdown` the game is
            replaced.
        steps_per_s: the steps per second over the newest 5 s, or None before the second sample.
        cpu_share: the share of one core that the worker and the game have used over the newest 5 s,
            or None before the second sample.
        replacements: the number of instances replaced on this seat, by cause.
        faults: how many of these replacements followed a fault.
        episodes: the number of episodes that ended in this env, synthetic endings included.
        node: the Ray node that plays the instance; empty if this machine plays it.
        other_games: the "pid" and "port" of each further game: in a match, of the guest's game.
    """

    seat: str
    instance: int
    state: str
    episode: int | None
    steps: int
    episode_steps: int = field(metadata=gauge("Steps of the running episode."))
    episode_return: float | None = field(metadata=gauge("Sum of the running episode's rewards."))
    pid: int | None
    worker_pid: int | None
    port: int | None
    listener: Literal["proven", "unproven"] | None
    memory_bytes: int | None = field(
        metadata=gauge("Resident memory of the game and of its worker.")
    )
    cpu_s: float | None
    loop_cost_growth: float | None = field(
        default=None, metadata=gauge("CPU time of a game loop, relative to the first episodes.")
    )
    steps_per_s: float | None = None
    cpu_share: float | None = None
    replacements: dict[str, int] = field(
        default_factory=dict, metadata=counter("Replaced instances by cause.", "cause")
    )
    faults: int = 0
    episodes: int = 0
    node: str = ""
    other_games: list[dict[str, int]] = field(default_factory=list)


@dataclass(frozen=True)
class PoolStats:
    """A pool's counters since the pool was made, and the state of its instances.

    Attributes:
        at_s: when these figures were read, in the trainer's monotonic time.
        uptime_s: the number of seconds since the pool was made.
        trainer_pid: the pid of the process that owns the pool.
        task: the task's name, or None for envs of the user.
        game_version: the game's version (of the stand-in, it begins with "standin"), or None for
            envs of the user.
        base_build: the number of the game's build, or None for envs of the user.
        env_steps: the number of transitions given to the trainer, one for each row.
        steps_per_s: transitions per second over the newest 5 s, or None before the second sample.
        episodes: the number of episodes that ended, synthetic endings included.
        mean_return: the mean return, in the first row of an env, of the newest hundred episodes
            that no fault cut short, or None if there are no returns.
        matches: the results of the matches against each opponent, the most recent opponent first;
            if there are more than fifty opponents, the least recent are summed as "others" (empty
            without `opponent=`).
        launches: the number of instances whose game was launched.
        resets: the number of episodes that envs and spares have begun.
        replacements: the number of replaced instances by cause: a fault's kind, or "soft-" plus the
            name of a soft limit.
        faults: how many of these replacements followed a fault.
        reset_s: the durations of resets, by kind: "restart" (restart_game), "create" (create_game),
            "reset" (an env of the user).
        recovery_s: the times from a fault to the next instance's first observation, or None.
        untold_ends: the number of episodes whose end the game did not report, so that their last
            info has the key `sc2pool.untold_end`.
        contradictions: the number of matches whose two players got contradictory results.
        pauses: figures of the pauses that are over, see `PauseStats`.
        realtime: the lateness of actions in real time, see `RealtimeStats`.
        watchdog_cpu_s: the CPU time of the watchdog's thread.
        settled: the facts that `sc2pool doctor --full` has found out about this installation of the
            game (see `sc2pool.game.program.builds`); empty for envs of the user.
        events: the newest thousand launches, faults and recycles (planned replacements), the oldest
            first.
        instances: the figures of one instance for each env, then for each spare.
    """

    at_s: float
    uptime_s: float
    trainer_pid: int
    task: str | None
    game_version: str | None
    base_build: int | None
    env_steps: int = field(metadata=counter("Transitions handed to the trainer."))
    steps_per_s: float | None
    episodes: int = field(metadata=counter("Episodes that ended, synthetic endings included."))
    mean_return: float | None = field(
        metadata=gauge("Mean return of the newest hundred whole episodes.")
    )
    matches: dict[str, MatchResults] = field(
        metadata=matches("Matches that ended, by opponent and by the learner's result.", "opponent")
    )
    launches: int = field(metadata=counter("Instances whose game came up."))
    resets: int = field(metadata=counter("Episodes that were begun, by envs and spares."))
    replacements: dict[str, int]
    faults: int
    reset_s: dict[str, Durations] = field(
        metadata=durations("How long resets took, by kind.", "reset_kind")
    )
    recovery_s: Durations | None = field(
        metadata=durations("From a fault to the next first observation.")
    )
    untold_ends: int = field(metadata=counter("Episodes that ended without the game saying so."))
    contradictions: int = field(
        metadata=counter("Matches whose sides were told results that contradict each other.")
    )
    pauses: PauseStats
    realtime: RealtimeStats
    watchdog_cpu_s: float = field(metadata=counter("CPU time of the watchdog's thread."))
    settled: Mapping[str, Any]
    events: Sequence[PoolEvent] = field(repr=False)
    instances: Sequence[InstanceStats] = field(repr=False)

    @property
    def recycles(self) -> dict[str, int]:
        """The old name of `replacements`, until the next release."""
        warnings.warn("PoolStats.recycles is now replacements", DeprecationWarning, stacklevel=2)
        return self.replacements

    def as_dict(self) -> dict[str, Any]:
        """These figures as dicts, lists and plain values, for JSON."""
        return asdict(self)


class Counters:
    """The counters of one pool; `newest_game` is the game that was launched last.

    The dict `learner` has the newest figures that the training has logged; it is replaced as a
    whole.
    """

    def __init__(self) -> None:
        self.launches = 0
        self.resets = 0
        self.env_steps = 0
        self.episodes = 0
        self.task: str | None = None
        self.learner: Mapping[str, float] = {}
        self.settled: Mapping[str, Any] = {}
        self._untold_ends = 0
        self._contradictions = 0
        self.lateness = LatenessCounter()
        self._made_at_s = time.monotonic()
        self.newest_game: GameFacts | None = None
        self._returns: deque[float] = deque(maxlen=RETURNS_KEPT)
        self._episodes_by_seat: Counter[str] = Counter()
        self._matches = MatchCounter()
        self._pauses = 0
        self._paused_s = 0.0
        self._paused_loops = 0
        self._reset_s: dict[str, DurationCounter] = {}
        self._recovery_s = DurationCounter()
        self._replacements: Counter[str] = Counter()
        self._replacements_by_seat: dict[str, Counter[str]] = {}
        self._events: deque[PoolEvent] = deque(maxlen=_EVENTS_KEPT)
        self._lock = threading.RLock()  # reentrant: a signal handler may read during a count

    def count_launch(self, seat: str, instance: int, games: Sequence[GameFacts]) -> None:
        """Count the launch of an instance, with its games if it has any."""
        with self._lock:
            self.launches += 1
            self.newest_game = games[0] if games else None
            self._events.append(PoolEvent("launch", time.monotonic(), seat, instance))

    def count_reset(self, kind: str, took_s: float) -> None:
        """Count an episode that was begun."""
        with self._lock:
            self.resets += 1
            self._reset_s.setdefault(kind, DurationCounter()).add(took_s)

    def count_episode(self, seat: str, episode_return: float | None) -> None:
        """Count an ended episode; `episode_return` is None if a fault, not the policy, ended it."""
        with self._lock:
            self.episodes += 1
            self._episodes_by_seat[seat] += 1
            if episode_return is not None and math.isfinite(episode_return):
                self._returns.append(episode_return)

    def count_match(self, opponent: str, result: str) -> None:
        """Count a match that ended; see `MatchCounter.count`."""
        with self._lock:
            self._matches.count(opponent, result)

    def count_odd_end(self, *, untold: bool, contradiction: bool) -> None:
        """Count an episode whose end was not reported, or whose results contradict each other."""
        with self._lock:
            self._untold_ends += untold
            self._contradictions += contradiction

    def count_recovery(self, took_s: float) -> None:
        """Count a recovery: a new instance has its first observation, `took_s` after a fault."""
        with self._lock:
            self._recovery_s.add(took_s)

    def count_pause(self, lasted_s: float, loops: int | None) -> None:
        """Count a pause that is over, and the loops that passed during it (None if unknown)."""
        with self._lock:
            self._pauses += 1
            self._paused_s += lasted_s
            self._paused_loops += loops or 0

    def count_fault(self, seat: str, instance: int, fault: Fault) -> None:
        """Count an instance that failed."""
        about = (str(fault.kind), str(fault.phase), fault.detail)
        self._count_replaced(PoolEvent("fault", time.monotonic(), seat, instance, *about))

    def count_recycle(self, seat: str, instance: int, limit: str) -> None:
        """Count an instance that is replaced because it reached a soft limit."""
        cause = f"{_SOFT}{limit}"
        self._count_replaced(PoolEvent("recycle", time.monotonic(), seat, instance, cause))

    def _count_replaced(self, event: PoolEvent) -> None:
        with self._lock:
            self._replacements[event.cause] += 1
            self._replacements_by_seat.setdefault(event.seat, Counter())[event.cause] += 1
            self._events.append(event)

    def replacements_by_seat(self) -> dict[str, dict[str, int]]:
        """Replaced instances by cause, for each seat with at least one replacement."""
        with self._lock:
            return {seat: dict(causes) for seat, causes in self._replacements_by_seat.items()}

    def episodes_by_seat(self) -> dict[str, int]:
        """The number of ended episodes, for each seat with at least one."""
        with self._lock:
            return dict(self._episodes_by_seat)

    @property
    def uptime_s(self) -> float:
        return time.monotonic() - self._made_at_s

    @property
    def mean_return(self) -> float | None:
        with self._lock:
            return sum(self._returns) / len(self._returns) if self._returns else None

    def snapshot(
        self,
        instances: Sequence[InstanceStats],
        *,
        steps_per_s: float | None,
        watchdog_cpu_s: float,
    ) -> PoolStats:
        """The present figures, together with the given figures, which other modules count."""
        realtime = self.lateness.snapshot()
        at_s = time.monotonic()
        with self._lock:
            game = self.newest_game
            return PoolStats(
                at_s=at_s,
                uptime_s=at_s - self._made_at_s,
                trainer_pid=os.getpid(),
                task=self.task,
                game_version=None if game is None else game.version,
                base_build=None if game is None else game.base_build,
                env_steps=self.env_steps,
                steps_per_s=steps_per_s,
                episodes=self.episodes,
                mean_return=self.mean_return,
                matches=self._matches.results(),
                launches=self.launches,
                resets=self.resets,
                replacements=dict(self._replacements),
                faults=fault_count(self._replacements),
                reset_s={
                    kind: took for kind, each in self._reset_s.items() if (took := figures(each))
                },
                recovery_s=figures(self._recovery_s),
                untold_ends=self._untold_ends,
                contradictions=self._contradictions,
                pauses=PauseStats(self._pauses, self._paused_s, self._paused_loops),
                realtime=realtime,
                watchdog_cpu_s=watchdog_cpu_s,
                settled=self.settled,
                events=list(self._events),
                instances=instances,
            )


def fault_count(replacements: Mapping[str, int]) -> int:
    """The number of the given replacements that followed a fault, not a soft limit."""
    return sum(count for cause, count in replacements.items() if not cause.startswith(_SOFT))
