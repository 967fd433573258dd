"""Takes the statistics of a pool at one moment, and merges the statistics of several pools.

Any thread may take a snapshot (`take`), for example for Prometheus. The watchdog's thread computes
rates, adds to the history and writes the requested live files (`after_sample`). The step path needs
no lock, because only the trainer's thread writes. The trainer's thread writes single values (a
state, two counters, an instance's sequence number), which are read atomically. Collections
(`Counters`) have a lock that no plain step takes. So two figures of one snapshot may be read at
different moments, less than a millisecond apart. No decision depends on these figures.

When the statistics of pools are merged, counters are summed. Envs and spares are numbered
consecutively, in the order of the pools. Times of events are converted to this process's clock.
Percentiles of durations are approximate: each is the mean of the pools' percentiles, weighted by
the pools' counts. The counts and the maxima of durations are exact.

Merged curves have the time axis of the oldest pool. A pool's value at a time comes from its newest
sample at or before that time. Steps and steps per second are summed. All other figures are
averaged. (Figures that a model logs are equal in all pools of the model.)
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sc2pool.pool.measures import (
    Durations,
    HeldSpares,
    History,
    Lateness,
    MatchResults,
    Rates,
    RealtimeStats,
    summed,
)
from sc2pool.pool.report import live_files
from sc2pool.pool.statistics import (
    RETURNS_KEPT,
    Counters,
    InstanceStats,
    PauseStats,
    PoolEvent,
    PoolStats,
    fault_count,
)

RATE_WINDOW_S = 5.0
EVENTS_IN_FILE = 20
"""`pool.json` has this many of the newest events; `stats()` has more."""

RETURN, STEPS_PER_S = "mean return", "steps/s"
"""The names of the curves that the pool itself adds."""

_POOL = "pool"


class Snapshots:
    """Takes snapshots of one pool."""

    def __init__(self, counters: Counters, run: Path) -> None:
        self._counters = counters
        self._run = run
        self._rates = Rates(RATE_WINDOW_S)
        self._per_s: Mapping[str, float | None] = {}
        """The newest rates; this dict is replaced, never changed, because other threads read it."""
        self._history = History()
        self._written: int | None = None
        """The history's `changes` at the last write of the curves; None if no file is requested."""

    def take(self, instances: Sequence[InstanceStats], watchdog_cpu_s: float) -> PoolStats:
        """The pool's statistics now; may be called in any thread."""
        per_s = self._per_s
        replacements = self._counters.replacements_by_seat()
        episodes = self._counters.episodes_by_seat()
        return self._counters.snapshot(
            [
                replace(
                    row,
                    steps_per_s=per_s.get(_steps(row)),
                    cpu_share=per_s.get(_cpu(row)),
                    replacements=replacements.get(row.seat, {}),
                    faults=fault_count(replacements.get(row.seat, {})),
                    episodes=episodes.get(row.seat, 0),
                )
                for row in instances
            ],
            steps_per_s=per_s.get(_POOL),
            watchdog_cpu_s=watchdog_cpu_s,
        )

    def after_sample(self, instances: Sequence[InstanceStats]) -> None:
        """In the watchdog's thread, compute rates, add to the history and write requested files."""
        counters = self._counters
        counted: dict[str, float] = {_POOL: counters.env_steps}
        for row in instances:
            counted[_steps(row)] = row.steps
            if row.cpu_s is not None:
                counted[_cpu(row)] = row.cpu_s
        self._rates.note(time.monotonic(), counted)
        self._per_s = {name: self._rates.per_s(name) for name in counted}
        shown_figures = {
            RETURN: counters.mean_return,
            STEPS_PER_S: self._per_s[_POOL],
            **counters.learner,
        }
        self._history.note(counters.uptime_s, counters.env_steps, shown_figures)
        if not live_files.is_requested(self._run):
            self._written = None
        else:
            stats = self.take(instances, time.thread_time())
            shown = replace(stats, events=stats.events[-EVENTS_IN_FILE:])
            live_files.write(self._run / live_files.POOL_FILE, shown.as_dict())
            if self._written != self._history.changes:
                self._written = self._history.changes
                live_files.write(self._run / live_files.CURVE_FILE, self._history.as_dict())


def _steps(row: InstanceStats) -> str:
    return f"steps {row.instance}"


def _cpu(row: InstanceStats) -> str:
    return f"cpu {row.instance}"


_SPARE = "spare"


def merge_stats(
    parts: Sequence[tuple[str, PoolStats]],
    past: Sequence[PoolStats] = (),
    losses: Sequence[PoolEvent] = (),
    recoveries_s: Sequence[float] = (),
) -> PoolStats:
    """Merge the statistics of several pools.

    Args:
        parts: the node's name and the statistics of each pool; at least one pool.
        past: the last statistics of ended pools, of which only the counters are used.
        losses: faults of whole pools: one event for each env, with the env's name in the result.
        recoveries_s: the recovery times of the faults in `losses`.
    """
    now_s = time.monotonic()
    living = [part for _, part in parts]
    every = [*living, *past]
    first = living[0]
    names = _names(living)
    lost_s = Durations.of(recoveries_s) if recoveries_s else None
    replacements = Counter(event.cause for event in losses)
    for part in every:
        replacements.update(part.replacements)
    events = list(losses)
    instances: list[InstanceStats] = []
    for index, (node, part) in enumerate(parts):
        for event in part.events:
            seat = names.get((index, event.seat), event.seat)
            number = event.instance * len(parts) + index
            at_s = event.at_s - part.at_s + now_s
            events.append(replace(event, seat=seat, instance=number, at_s=at_s))
        for row in part.instances:
            seat = names[index, row.seat]
            lost = Counter(event.cause for event in losses if event.seat == seat)
            own = dict(lost + Counter(row.replacements))
            instances.append(
                replace(
                    row,
                    seat=seat,
                    instance=row.instance * len(parts) + index,
                    replacements=own,
                    faults=fault_count(own),
                    node=node,
                )
            )
    return PoolStats(
        at_s=now_s,
        uptime_s=max(part.uptime_s for part in every),
        trainer_pid=os.getpid(),
        task=first.task,
        game_version=first.game_version,
        base_build=first.base_build,
        env_steps=sum(part.env_steps for part in every),
        steps_per_s=_sum_of_known([part.steps_per_s for part in living]),
        episodes=sum(part.episodes for part in every),
        mean_return=_mean_return(living),
        matches=summed(part.matches for part in every),
        launches=sum(part.launches for part in every),
        resets=sum(part.resets for part in every),
        replacements=dict(replacements),
        faults=fault_count(replacements),
        reset_s={
            kind: took
            for kind in dict.fromkeys(kind for part in every for kind in part.reset_s)
            if (took := _durations([part.reset_s.get(kind) for part in every]))
        },
        recovery_s=_durations([lost_s, *(part.recovery_s for part in every)]),
        untold_ends=sum(part.untold_ends for part in every),
        contradictions=sum(part.contradictions for part in every),
        pauses=PauseStats(
            sum(part.pauses.count for part in every),
            sum(part.pauses.paused_s for part in every),
            sum(part.pauses.loops for part in every),
        ),
        realtime=_realtime([part.realtime for part in living], names),
        watchdog_cpu_s=sum(part.watchdog_cpu_s for part in every),
        settled=first.settled,
        events=sorted(events, key=lambda event: event.at_s),
        instances=sorted(instances, key=lambda row: row.seat.startswith(_SPARE)),
    )


def _names(parts: Sequence[PoolStats]) -> dict[tuple[int, str], str]:
    """A dict from (index of a part, name in that part) to the seat's name in the merged result."""
    seats = [(index, row.seat) for index, part in enumerate(parts) for row in part.instances]
    envs = [seat for seat in seats if not seat[1].startswith(_SPARE)]
    spares = [seat for seat in seats if seat[1].startswith(_SPARE)]
    names = {seat: f"env {number}" for number, seat in enumerate(envs)}
    return names | {seat: f"{_SPARE} {len(envs) + k}" for k, seat in enumerate(spares)}


def _sum_of_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean_return(parts: Sequence[PoolStats]) -> float | None:
    """The mean of the parts' mean returns, weighted by their episodes (`RETURNS_KEPT` at most)."""
    known = [
        (part.mean_return, min(part.episodes, RETURNS_KEPT))
        for part in parts
        if part.mean_return is not None
    ]
    if not known:
        return None
    return sum(mean * count for mean, count in known) / sum(count for _, count in known)


def _durations(parts: Sequence[Durations | None]) -> Durations | None:
    known = [part for part in parts if part is not None]
    count = sum(part.count for part in known)
    if not count:
        return None

    def weighted(name: str) -> float:
        return sum(float(getattr(part, name)) * part.count for part in known) / count

    longest_s = max(part.max for part in known)
    return Durations(count, weighted("p50"), weighted("p95"), weighted("p99"), longest_s)


def _realtime(
    parts: Sequence[RealtimeStats], names: Mapping[tuple[int, str], str]
) -> RealtimeStats:
    problems = [part.spares.problem for part in parts if part.spares.problem]
    return RealtimeStats(
        steps=sum(part.steps for part in parts),
        gap_s=_durations([part.gap_s for part in parts]),
        misses=sum(part.misses for part in parts),
        lost_periods=sum(part.lost_periods for part in parts),
        skipped_loops=sum(part.skipped_loops for part in parts),
        envs={
            names.get((index, seat), seat): late
            for index, part in enumerate(parts)
            for seat, late in part.envs.items()
        },
        spares=HeldSpares(
            sum(part.spares.held for part in parts),
            sum(part.spares.loops for part in parts),
            problems[0] if problems else "",
        ),
    )


def stats_from_dict(data: Mapping[str, Any]) -> PoolStats:
    """Convert a dict from `PoolStats.as_dict` back to statistics."""
    late = data["realtime"]
    realtime = {
        **_lateness(late),
        "envs": {seat: Lateness(**_lateness(one)) for seat, one in late["envs"].items()},
        "spares": HeldSpares(**late["spares"]),
    }
    return PoolStats(
        **{
            **data,
            "reset_s": {kind: Durations(**took) for kind, took in data["reset_s"].items()},
            "recovery_s": _durations_of(data["recovery_s"]),
            "matches": {name: MatchResults(**each) for name, each in data["matches"].items()},
            "pauses": PauseStats(**data["pauses"]),
            "realtime": RealtimeStats(**realtime),
            "events": [PoolEvent(**event) for event in data["events"]],
            "instances": [InstanceStats(**row) for row in data["instances"]],
        }
    )


def _durations_of(data: Mapping[str, Any] | None) -> Durations | None:
    return None if data is None else Durations(**data)


def _lateness(data: Mapping[str, Any]) -> dict[str, Any]:
    return {**data, "gap_s": _durations_of(data["gap_s"])}


Curves = Mapping[str, Any]
"""See `History.as_dict`."""


def merge_curves(parts: Sequence[tuple[float, Curves]]) -> dict[str, Any]:
    """Merge the curves of several pools.

    Args:
        parts: each pool's uptime in seconds and its curves; at least one pool.
    """
    oldest_s, axis = max(parts, key=lambda part: part[0])
    times_s = axis["at_s"]

    def column(at_s: float, name: str | None) -> list[float]:
        """The value of one figure in each pool at one time; `name` is None for the steps."""
        found = []
        for uptime_s, curves in parts:
            values = curves["steps"] if name is None else curves["figures"].get(name)
            newest = bisect_right(curves["at_s"], at_s - (oldest_s - uptime_s) + 1e-6) - 1
            if values is not None and newest >= 0 and values[newest] is not None:
                found.append(values[newest])
        return found

    names = dict.fromkeys(name for _, curves in parts for name in curves["figures"])
    return {
        "at_s": times_s,
        "steps": [sum(column(at_s, None)) for at_s in times_s],
        "figures": {
            name: [_joined(name, column(at_s, name)) for at_s in times_s] for name in names
        },
    }


def _joined(name: str, values: Sequence[float]) -> float | None:
    if not values:
        return None
    return sum(values) if name == STEPS_PER_S else sum(values) / len(values)
