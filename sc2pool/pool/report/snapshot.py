"""The state of a whole pool as plain data, taken from whichever thread wants it.

    describe   ─► what `Pool.stats` returns
    Publisher  ─► the same with rates, into the run's window, from the watchdog's thread

Why it needs no lock on the step path: the trainer's thread is the only writer; what the step path
writes (a state, two counters, an instance's sequence number) are single values, each read once and
whole; everything that grows (`Stats`) has a lock of its own, which no step takes. So each figure
is true at some moment while the snapshot is taken, and two figures of one snapshot may lie that
far apart, well under a millisecond. Nothing here decides anything.
"""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from sc2pool.pool.instances.instance import Instance
from sc2pool.pool.instances.roster import Roster
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.instances.watchdog import Sample, cpu_s, memory_bytes
from sc2pool.pool.report import live_files
from sc2pool.pool.report.stats import Stats

RATE_WINDOW_S = 5.0
"""Rates are those of the newest so many seconds."""
EVENTS_SHOWN = 20

_PROVEN = {True: "proven", False: "unproven"}
_TRIES = 10
_EXCHANGE_S = 0.001


def describe(stats: Stats, roster: Roster, samples: Mapping[int, Sample]) -> dict[str, Any]:
    """Counters and instances of a pool.

    It is plain data. `Pool.stats` adds `watchdog_cpu_s` to

    - `game_version`: begins with "standin" on the stand-in; None for envs of the user; `base_build`
    - `launches`, `resets`, `env_steps`, `episodes`; `recycles`: count by cause
    - `reset_s` by rung, and `recovery_s`, from a fault to the next first observation: `count`,
      `p50`, `p95`, `max` of the newest thousand, as the trainer saw them
    - `events`: the newest thousand launches and recycles
    - `pauses`: `count` of games that were paused and went on, `paused_s` in sum, and the `loops`
      that passed meanwhile, of games in real time
    - `realtime`: how late actions came: `steps`; `gap_s` from observation to action (`p50` and
      `p99` of the newest thousand, `max` of all); `misses`, actions whose decision period was over;
      `lost_periods` without a new action; `skipped_loops`, by which periods were put off because
      one overran by a whole one (see `sc2pool.game.clock`); the same for each of `envs`; `spares`:
      how many were `held`, the `loops` that passed meanwhile, and the `problem` that leaves the
      pool without spares, if any
    - `instances`, a dict per seat: `seat`, `instance`, `state`, `episode`, `steps`,
      `episode_steps`, `episode_return` (None where it is not finite), `pid`, `worker_pid`, `port`,
      `listener` ("proven" where the system told that the port belongs to the game),
      `memory_bytes`, `cpu_s` (worker and game), `recycles` (of the seat, by cause)
    """
    recycles = stats.recycles_by_seat()
    return {
        **stats.as_dict(),
        "instances": [
            {
                **describe_instance(seat, instance, samples.get(instance.number)),
                "recycles": recycles.get(seat.name, {}),
            }
            for seat, instance in seated(roster.seats)
        ],
    }


def seated(seats: list[Seat]) -> list[tuple[Seat, Instance]]:
    """Who sits where. In the middle of an exchange an instance is on two seats: look again."""
    pairs = [(seat, seat.instance) for seat in seats]
    for _ in range(_TRIES):  # not for ever: Ctrl-C may leave an exchange half done
        if len({instance.number for _, instance in pairs}) == len(pairs):
            break
        time.sleep(_EXCHANGE_S)  # the trainer's thread goes on with it meanwhile
        pairs = [(seat, seat.instance) for seat in seats]
    return pairs


def describe_instance(seat: Seat, instance: Instance, sample: Sample | None) -> dict[str, Any]:
    """What one seat's instance is and does, as plain data."""
    facts, episode = instance.facts, instance.episode
    progress = instance.progress()
    return {
        "seat": seat.name,
        "instance": instance.number,
        "state": str(instance.state),
        "episode": None if episode is None else episode.number,
        "steps": progress.steps,
        "episode_steps": progress.episode_steps,
        "episode_return": finite(progress.episode_return),
        "pid": facts.pid if facts else None,
        "worker_pid": instance.worker_pid,
        "port": facts.port if facts else None,
        "listener": _PROVEN[facts.listener_proven] if facts else None,
        "memory_bytes": memory_bytes(sample) if sample else None,
        "cpu_s": cpu_s(sample) if sample else None,
    }


def finite(value: float) -> float | None:
    """JSON has no NaN and no infinity."""
    return value if math.isfinite(value) else None


class Rates:
    """How fast counters grew over the newest `RATE_WINDOW_S`."""

    def __init__(self) -> None:
        self._noted: deque[tuple[float, dict[str, float]]] = deque()

    def note(self, now_s: float, counters: dict[str, float]) -> None:
        """Take note of what the counters stand at."""
        self._noted.append((now_s, counters))
        while self._noted[0][0] < now_s - RATE_WINDOW_S and len(self._noted) > 2:
            self._noted.popleft()

    def per_s(self, name: str) -> float | None:
        """A counter's rate; None where it has not been there for two notes."""
        now_s, newest = self._noted[-1]
        for then_s, counters in self._noted:
            if name in counters and name in newest and now_s > then_s:
                return (newest[name] - counters[name]) / (now_s - then_s)
        return None


class Publisher:
    """Shows a pool in its run's window; all but the constructor runs in the watchdog's thread."""

    def __init__(self, stats: Stats, roster: Roster) -> None:
        self._stats = stats
        self._roster = roster
        self._rates = Rates()
        self._began_s = time.monotonic()
        live_files.prepare(roster.run)

    def after_look(self, samples: Mapping[int, Sample]) -> None:
        """Keep the rates, and show the pool if someone looks."""
        now_s = time.monotonic()
        counters: dict[str, float] = {"": self._stats.env_steps}
        for seat in self._roster.seats:
            instance = seat.instance
            counters[f"steps {instance.number}"] = instance.progress().steps
            sample = samples.get(instance.number)
            if sample is not None:
                counters[f"cpu {instance.number}"] = cpu_s(sample)
        self._rates.note(now_s, counters)
        if live_files.is_asked(self._roster.run):
            live_files.show(self._roster.run / live_files.POOL_FILE, self._snapshot(now_s, samples))

    def _snapshot(self, now_s: float, samples: Mapping[int, Sample]) -> dict[str, Any]:
        told = describe(self._stats, self._roster, samples)
        for row in told["instances"]:
            row["steps_per_s"] = self._rates.per_s(f"steps {row['instance']}")
            row["cpu_share"] = self._rates.per_s(f"cpu {row['instance']}")
        events = [
            {**event, "ago_s": now_s - event["at_s"]} for event in told["events"][-EVENTS_SHOWN:]
        ]
        return {
            **told,
            "trainer_pid": os.getpid(),
            "uptime_s": now_s - self._began_s,
            "steps_per_s": self._rates.per_s(""),
            "watchdog_cpu_s": time.thread_time(),
            "events": events,
        }
