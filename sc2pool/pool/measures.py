"""Measures a pool: durations, lateness, results of matches, and the history of its figures.

`Durations` has percentiles of the newest thousand durations, and the longest of all durations. Only
this module computes percentiles of durations, with the same results as `numpy.percentile`.

The lateness of all steps is summed (`LatenessCounter`) and shown by `stats().realtime`. Lateness is
never given only as an average. The trainer's thread counts, and any thread may read the counts.

The match results of one pool are counted from the last info of each episode (`MatchCounter`). A
`SnapshotStore`, which weighs its opponents, has its own results
(`sc2pool.tasks.opponents.results`). Two kinds of episode are not counted: an episode that a fault
cut short, and an episode in which the learner plays both sides. A pool lists at most
`MOST_OPPONENTS` by name. If there are more opponents, `OTHERS` has the sums of the opponents that
were met longest ago.

The history of the figures keeps a limited number (`POINTS`) of the watchdog's samples. A page that
is opened late in a run draws its curves from the history. When the history is full, every second
sample is dropped and the interval between samples doubles. So the history always covers the whole
run evenly. `Rates` computes the growth of counters per second, from the same samples of the
watchdog.
"""

from __future__ import annotations

import math
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

import numpy as np

from sc2pool.game.clock import Tick

_RECENT = 1000


@dataclass(frozen=True)
class Durations:
    """Figures of some durations; all figures except `count` are in seconds.

    In a pool's statistics the percentiles cover the newest thousand durations; `count` and `max`
    cover all durations.

    Attributes:
        count: the number of durations, at least one.
        p50: the median of the durations.
        p95: the 95th percentile.
        p99: the 99th percentile.
        max: the longest duration.
    """

    count: int
    p50: float
    p95: float
    p99: float
    max: float

    @classmethod
    def of(cls, durations_s: Sequence[float]) -> Self:
        """The figures of these durations; at least one duration is needed."""
        ordered = np.sort(durations_s)
        # Not `np.percentile`, because its first call imports a package of 10 MB.
        # Without a free descriptor, the import in `np.percentile` would fail.
        places = np.array((0.5, 0.95, 0.99, 1.0)) * (len(ordered) - 1)
        return cls(len(ordered), *np.interp(places, np.arange(len(ordered)), ordered).tolist())


@dataclass
class DurationCounter:
    count: int = 0
    longest_s: float = 0.0
    newest_s: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))

    def add(self, duration_s: float) -> None:
        """Add a duration. If an interrupt ends this method early, `figures` still works."""
        self.newest_s.append(duration_s)
        self.longest_s = max(self.longest_s, duration_s)
        self.count += 1


def figures(*counters: DurationCounter) -> Durations | None:
    """The figures of all durations in these counters; None without durations."""
    count = sum(counter.count for counter in counters)
    if not count:
        return None
    newest = Durations.of([one_s for counter in counters for one_s in counter.newest_s])
    longest_s = max(counter.longest_s for counter in counters)
    return Durations(count, newest.p50, newest.p95, newest.p99, longest_s)


@dataclass(frozen=True)
class Lateness:
    """The lateness of the actions of an env, or of some envs together.

    Attributes:
        steps: the number of steps in real time.
        gap_s: the time from an observation to its action, without pauses; None before any step.
        misses: the number of actions that arrived after the end of their decision period.
        lost_periods: the number of decision periods that passed without a new action.
        skipped_loops: the number of game loops by which decision periods were delayed, because an
            action was late by a whole period or more (see `sc2pool.game.clock`).
    """

    steps: int
    gap_s: Durations | None
    misses: int
    lost_periods: int
    skipped_loops: int


@dataclass(frozen=True)
class HeldSpares:
    """The spares of a real-time pool, stopped at first observations until envs take them.

    Attributes:
        held: the number of spares that were stopped and have resumed.
        loops: how many game loops passed while spares were stopped; it should be 0.
        problem: why spares cannot be stopped, so that the pool has none; empty if they can be
            stopped.
    """

    held: int
    loops: int
    problem: str


@dataclass(frozen=True)
class RealtimeStats(Lateness):
    """The lateness of the actions of all envs, together and for each env.

    Attributes:
        envs: the lateness of each env, by its name (`"env 0"`).
        spares: figures of the spares that are held (stopped) at their first observation.
    """

    envs: dict[str, Lateness]
    spares: HeldSpares


@dataclass
class _EnvCounter:
    """The sums of the lateness of one env's steps."""

    gaps_s: DurationCounter = field(default_factory=DurationCounter)
    misses: int = 0
    lost_periods: int = 0
    skipped_loops: int = 0

    def note(self, tick: Tick) -> None:
        self.gaps_s.add(tick.gap_s)
        self.misses += tick.lost_periods > 0
        self.lost_periods += tick.lost_periods
        self.skipped_loops += tick.skipped_loops


class LatenessCounter:
    """Counts the lateness of all envs of a pool, and the spares that were held (stopped)."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # reentrant: a signal handler may read during a count
        self._envs: dict[int, _EnvCounter] = {}
        self._held = 0
        self._held_loops = 0
        self._problem = ""

    def note(self, env: int, tick: Tick) -> None:
        """Count a step of this env."""
        with self._lock:
            self._envs.setdefault(env, _EnvCounter()).note(tick)

    def note_hold(self, loops: int | None) -> None:
        """Count a spare that has resumed; `loops` passed during its stop (None if unknown)."""
        with self._lock:
            self._held += 1
            self._held_loops += loops or 0

    def note_problem(self, problem: str) -> bool:
        """Record why a game cannot be held; return True if this is the pool's first problem."""
        with self._lock:
            first = not self._problem
            self._problem = problem
        return first

    def snapshot(self) -> RealtimeStats:
        with self._lock:
            together = _lateness(*self._envs.values())
            return RealtimeStats(
                **vars(together),
                envs={f"env {env}": _lateness(self._envs[env]) for env in sorted(self._envs)},
                spares=HeldSpares(self._held, self._held_loops, self._problem),
            )


def _lateness(*envs: _EnvCounter) -> Lateness:
    return Lateness(
        steps=sum(env.gaps_s.count for env in envs),
        gap_s=figures(*(env.gaps_s for env in envs)),
        misses=sum(env.misses for env in envs),
        lost_periods=sum(env.lost_periods for env in envs),
        skipped_loops=sum(env.skipped_loops for env in envs),
    )


MOST_OPPONENTS: Final = 50
"""How many opponents are listed by name: the default number that a `SnapshotStore` keeps."""
OTHERS: Final = "others"
"""The entry for all opponents without an entry of their own."""


@dataclass(frozen=True)
class MatchResults:
    """The finished matches against one opponent, from the learner's view.

    Attributes:
        win: how many of the matches the learner won.
        loss: how many matches the learner lost.
        tie: how many matches ended in a tie.
        undecided: how many matches the task ended before the game had a result.
    """

    win: int = 0
    loss: int = 0
    tie: int = 0
    undecided: int = 0

    @property
    def played(self) -> int:
        """The number of matches."""
        return self.win + self.loss + self.tie + self.undecided

    @property
    def win_rate(self) -> float:
        """The share of matches won; 0 before the first match."""
        return self.win / self.played if self.played else 0.0


class MatchCounter:
    def __init__(self) -> None:
        self._by_opponent: OrderedDict[str, Counter[str]] = OrderedDict()
        """Counts of results by opponent, without `OTHERS`; the most recent opponent comes last."""
        self._others: Counter[str] = Counter()

    def count(self, opponent: str, result: str) -> None:
        """Count a finished match; the result is the name of a field of `MatchResults`."""
        counts = self._by_opponent.setdefault(opponent, Counter())
        counts[result] += 1
        self._by_opponent.move_to_end(opponent)
        if len(self._by_opponent) > MOST_OPPONENTS:
            _, oldest = self._by_opponent.popitem(last=False)
            self._others.update(oldest)

    def results(self) -> dict[str, MatchResults]:
        """The results by opponent: the most recent opponent comes first, `OTHERS` last."""
        found = {name: MatchResults(**each) for name, each in reversed(self._by_opponent.items())}
        if not self._others:
            return found
        return summed([found, {OTHERS: MatchResults(**self._others)}])


def summed(parts: Iterable[Mapping[str, MatchResults]]) -> dict[str, MatchResults]:
    """The results of several pools, summed by opponent."""
    whole: dict[str, Counter[str]] = {}
    for part in parts:
        for name, results in part.items():
            whole.setdefault(name, Counter()).update(vars(results))
    return {name: MatchResults(**counts) for name, counts in whole.items()}


POINTS = 400
"""How many samples are kept; a chart on a page cannot show more."""
NAMES_KEPT = 32
"""How many curves are kept; to limit the memory, later names get no curve."""


class History:
    """Samples of some figures at even intervals, initially of `interval_s`. Not thread-safe."""

    def __init__(self, interval_s: float = 1.0) -> None:
        self._interval_s = interval_s
        self._next_s = -math.inf
        self._samples: list[tuple[float, int, dict[str, float]]] = []
        self._names: dict[str, None] = {}  # a dict, because a set would not keep the names' order
        self.changes = 0

    def note(self, at_s: float, steps: int, figures: Mapping[str, float | None]) -> None:
        """Keep a sample if the interval has passed; `at_s` is the time since the pool was made."""
        if at_s < self._next_s:
            return
        self._next_s = at_s + self._interval_s
        known: dict[str, float] = {}
        for name, value in figures.items():
            if value is None or not math.isfinite(value):
                continue
            if len(self._names) < NAMES_KEPT:
                self._names[name] = None
            if name in self._names:
                known[name] = float(value)
        self._samples.append((at_s, steps, known))
        self.changes += 1
        if len(self._samples) >= POINTS:
            del self._samples[1::2]
            self._interval_s *= 2

    def as_dict(self) -> dict[str, Any]:
        """All samples: lists `at_s` and `steps`; `figures` has a list per name (None: a gap)."""
        return {
            "at_s": [round(at_s, 1) for at_s, _, _ in self._samples],
            "steps": [steps for _, steps, _ in self._samples],
            "figures": {
                name: [_short(figures.get(name)) for _, _, figures in self._samples]
                for name in self._names
            },
        }


def _short(value: float | None) -> float | None:
    """The value with five significant digits, enough for a chart."""
    return None if value is None else float(f"{value:.5g}")


class Rates:
    """Rates of some counters over a window of time. Not thread-safe.

    Args:
        window_s: the time in seconds that a rate covers; if two calls of `note` are further apart,
            a rate covers the time between the newest two calls.
    """

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._notes: deque[tuple[float, Mapping[str, float]]] = deque()

    def note(self, now_s: float, counters: Mapping[str, float]) -> None:
        """Record the counters' values at this monotonic time."""
        self._notes.append((now_s, counters))
        while len(self._notes) > 2 and self._notes[0][0] < now_s - self._window_s:
            self._notes.popleft()

    def per_s(self, name: str) -> float | None:
        """A counter's growth per second; None until two calls of `note` have named the counter."""
        now_s, newest = self._notes[-1]
        for then_s, counters in self._notes:
            if name in counters and name in newest and now_s > then_s:
                return (newest[name] - counters[name]) / (now_s - then_s)
        return None
