"""The instances of a pool as plain facts for its statistics, read in any thread."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sc2pool.pool.instances.instance import Instance
from sc2pool.pool.instances.seats import Seat
from sc2pool.pool.machine.watchdog import Sample, cpu_s, memory_bytes
from sc2pool.pool.statistics.stats import InstanceStats

_TRIES = 10
_EXCHANGE_S = 0.001


def instance_stats(seats: Sequence[Seat], samples: Mapping[int, Sample]) -> list[InstanceStats]:
    """The statistics of each seat's instance."""
    rows = []
    workers: set[int | None] = set()
    for seat, instance in seated(seats):
        sample = samples.get(instance.number)
        row = stats_of(seat, instance, sample)
        if sample is not None and not sample.watched.alone and row.worker_pid not in workers:
            workers.add(row.worker_pid)
            worker_bytes = 0 if sample.worker is None else sample.worker.rss_bytes
            row = replace(row, memory_bytes=(row.memory_bytes or 0) + worker_bytes)
        rows.append(row)
    return rows


def seated(seats: Sequence[Seat]) -> list[tuple[Seat, Instance]]:
    """Each seat and its instance. During an exchange one instance is on two seats: read again."""
    pairs = [(seat, seat.instance) for seat in seats]
    for _ in range(_TRIES):  # not for ever: Ctrl-C may leave an exchange half done
        if len({instance.number for _, instance in pairs}) == len(pairs):
            break
        time.sleep(_EXCHANGE_S)  # the trainer's thread completes it meanwhile
        pairs = [(seat, seat.instance) for seat in seats]
    return pairs


def stats_of(seat: Seat, instance: Instance, sample: Sample | None) -> InstanceStats:
    """The statistics of one seat's instance."""
    games, episode = instance.games, instance.episode
    first = games[0] if games else None
    progress = instance.queue.progress()
    return InstanceStats(
        seat=seat.name,
        instance=instance.number,
        state=str(instance.state),
        episode=None if episode is None else episode.number,
        steps=progress.steps,
        episode_steps=progress.episode_steps,
        episode_return=finite(progress.episode_return),
        pid=first.pid if first else None,
        worker_pid=instance.worker_pid,
        port=first.port if first else None,
        listener=None if first is None else "proven" if first.listener_proven else "unproven",
        memory_bytes=memory_bytes(sample) if sample else None,
        cpu_s=cpu_s(sample) if sample else None,
        loop_cost_growth=instance.queue.loop_cost_growth() or None,
        other_games=[{"pid": game.pid, "port": game.port} for game in games[1:]],
    )


def finite(value: float) -> float | None:
    """JSON has no NaN and no infinity."""
    return value if math.isfinite(value) else None
